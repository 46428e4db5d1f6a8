"""`paceline.compare`: what changed between studies or runs, what of it is real, and where it comes from."""

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

_MOST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ComparedFolders(ShownText):
    """Every side of a comparison beside the first."""

    comparison: Comparison
    page: Path | None
    """The page with tables and plots; None where it could not be written."""
    notes: tuple[str, ...] = ()
    """What could not be done, in sentences."""

    def slower(self, fraction: float) -> tuple[str, ...]:
        """Labels of the points that are slower than the first side's by more than `fraction`, with their intervals."""
        from paceline.analyze.compare.side_changes import slower_than

        return tuple(
            self._label(each.letter, change)
            for each in self.comparison.against
            for change in slower_than(each.changes, fraction)
        )

    def unchecked(self) -> tuple[str, ...]:
        """Labels of what has too few runs for any difference to be seen."""
        against = self.comparison.against
        blind = [
            self._label(each.letter, change)
            for each in against
            for change in each.changes
            if change.smallest_seen is None
        ]
        blind += [f"{each.letter}, nothing could be compared" for each in against[1:] if not each.changes]
        return tuple(blind) or (() if any(each.changes for each in against) else ("nothing could be compared",))

    def _label(self, letter: str, change: Change) -> str:
        """A change by its point, and by its side where there are several."""
        return change.label if len(self.comparison.against) == 1 else f"{letter}, {change.label}"

    @property
    def headline(self) -> str:
        first, *others = (side.name for side in self.comparison.sides)
        return f"{', '.join(others)} beside {first}"

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """What differed beforehand, what changed, and where it comes from."""
        from paceline.reporting.text import changes_text

        first, *others = self.comparison.against
        if others:
            return changes_text.render_sides(self.comparison, width=width, color=color)
        return changes_text.render(first, width=width, color=color)

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`, but for the points that are slower than was asked for."""
        from paceline.storage.codec import plain

        first, *others = self.comparison.against
        return {
            **plain(first),
            "more": [plain(each) for each in others],
            "figures": [plain(each) for each in self.comparison.figures],
            "page": None if self.page is None else str(self.page),
        }


def compare(a: str | Path, b: str | Path, /, *more: str | Path, out: str | Path | None = None) -> ComparedFolders:
    """Compare study folders, or run folders, with the first of them, and write the comparison as a page.

    `out` is the page's path; below runs/ and named after the sides where None.
    """
    from paceline.reporting.html.compare_page import render
    from paceline.storage.codec import write_atomically

    folders = [Path(folder).expanduser() for folder in (a, b, *more)]
    if len(folders) > len(LETTERS):
        raise RequestError(
            f"{len(folders)} folders do not fit beside one another.",
            right=f"Up to {len(LETTERS)} are compared, each with the first.",
        )
    path = _page_path(out, folders)
    found = compared(folders)
    try:
        write_atomically(path, render(found).encode("utf-8", "replace"))
    except PacelineError as error:
        return ComparedFolders(comparison=found, page=None, notes=(f"The page was not written: {error.what}",))
    return ComparedFolders(comparison=found, page=path)


def _page_path(out: str | Path | None, folders: Sequence[Path]) -> Path:
    """Where the page goes; RequestError where that cannot be."""
    if out is None:
        names = "-".join(_slug(folder) for folder in folders)
        return Path("runs") / f"compare-{names}.html"
    path = Path(out).expanduser()
    if path.is_dir() or path.suffix.lower() not in (".html", ".htm"):
        what = "is a folder" if path.is_dir() else "does not end in .html"
        raise RequestError(
            f"--out {out} {what}.", right="A comparison is one page: --out FILE.html", next=f"Say: --out {out}.html"
        )
    return path


def _slug(folder: Path) -> str:
    """A folder's name as a part of a file's; of a run in a study, the study's, the point's and its number."""
    parts = folder.absolute().parts
    named = [*parts[-5:-4], parts[-3], parts[-1]] if parts[-2:-1] == ("runs",) and parts[-1].isdecimal() else parts[-1:]
    text = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(named)).strip("-.")
    return text[:_MOST_NAME] or "side"
