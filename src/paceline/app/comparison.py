"""`paceline.compare`: what changed between studies or runs, which changes are significant, and their causes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.app.compared_sides import LETTERS, compared
from paceline.app.shown import NOTEBOOK_WIDTH, ShownText
from paceline.errors import PacelineError, RequestError

if TYPE_CHECKING:
    from paceline.records.changes import Change, Comparison

_MAX_NAME_CHARACTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ComparedFolders(ShownText):
    """A comparison of folders with the first one."""

    comparison: Comparison
    page: Path | None
    """The HTML page with tables and plots; None if it could not be written."""
    notes: tuple[str, ...] = ()
    """Problems, as sentences."""

    def slower(self, fraction: float) -> tuple[str, ...]:
        """Labels of points that are slower than A by more than `fraction`, at the lower end of the interval."""
        from paceline.analyze.compare.side_changes import slower_than

        return tuple(
            self._label(each.letter, change)
            for each in self.comparison.against
            for change in slower_than(each.changes, fraction)
        )

    def unchecked(self) -> tuple[str, ...]:
        """Labels of points with too few runs to detect any difference."""
        against = self.comparison.against
        undecided = [
            self._label(each.letter, change)
            for each in against
            for change in each.changes
            if change.smallest_seen is None
        ]
        undecided += [f"{each.letter}, nothing could be compared" for each in against[1:] if not each.changes]
        return tuple(undecided) or (() if any(each.changes for each in against) else ("nothing could be compared",))

    def _label(self, letter: str, change: Change) -> str:
        """The point of a change, with its side if there are several."""
        return change.label if len(self.comparison.against) == 1 else f"{letter}, {change.label}"

    @property
    def headline(self) -> str:
        first, *others = (side.name for side in self.comparison.sides)
        return f"{', '.join(others)} compared with {first}"

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """Different settings, changes and their causes as text."""
        from paceline.reporting.text import changes_text

        first, *others = self.comparison.against
        if others:
            return changes_text.render_sides(self.comparison, width=width, color=color)
        return changes_text.render(first, width=width, color=color)

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`, without its key `slower`."""
        from paceline.storage.codec import plain

        first, *others = self.comparison.against
        return {
            **plain(first),
            "more": [plain(each) for each in others],
            "figures": [plain(each) for each in self.comparison.figures],
            "page": None if self.page is None else str(self.page),
        }


def compare(a: str | Path, b: str | Path, /, *more: str | Path, out: str | Path | None = None) -> ComparedFolders:
    """Compare study folders, or run folders, with the first one, and write the comparison as an HTML page.

    `out` is the path of the page; runs/compare-NAMES.html if None.
    """
    from paceline.reporting.html.compare_page import render
    from paceline.storage.codec import write_atomically

    folders = [Path(folder).expanduser() for folder in (a, b, *more)]
    if len(folders) > len(LETTERS):
        raise RequestError(
            f"{len(folders)} folders are too many for one comparison.",
            right=f"Up to {len(LETTERS)} folders can be compared, each with the first.",
        )
    path = _page_path(out, folders)
    found = compared(folders)
    try:
        write_atomically(path, render(found).encode("utf-8", "replace"))
    except PacelineError as error:
        return ComparedFolders(comparison=found, page=None, notes=(f"The page was not written: {error.what}",))
    return ComparedFolders(comparison=found, page=path)


def _page_path(out: str | Path | None, folders: Sequence[Path]) -> Path:
    """The path of the page; RequestError if `out` is not an HTML file."""
    if out is None:
        names = "-".join(_slug(folder) for folder in folders)
        return Path("runs") / f"compare-{names}.html"
    path = Path(out).expanduser()
    if path.is_dir() or path.suffix.lower() not in (".html", ".htm"):
        what = "is a folder" if path.is_dir() else "does not end in .html"
        raise RequestError(
            f"The output {out} {what}.", right="A comparison is one HTML file.", next=f"Use the output {out}.html"
        )
    return path


def _slug(folder: Path) -> str:
    """The name of a folder for a file name; for a run of a study: study, point and number."""
    parts = folder.absolute().parts
    named = [*parts[-5:-4], parts[-3], parts[-1]] if parts[-2:-1] == ("runs",) and parts[-1].isdecimal() else parts[-1:]
    text = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(named)).strip("-.")
    return text[:_MAX_NAME_CHARACTERS] or "side"
