"""`paceline compare A B ...`: what changed between studies or runs, what of it is real, and where it comes from."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json
from paceline.errors import PacelineError, RequestError

if TYPE_CHECKING:
    from paceline.records.changes import Change, Comparison

_FOLDER = "A study folder, such as runs/digits, or the folder of one run."
_MOST_NAME = 40


def compare(
    a: Annotated[Path, Parameter(name="A", completer=completers.study_folders, help=_FOLDER)],
    b: Annotated[Path, Parameter(name="B", completer=completers.study_folders, help="Another of the same kind.")],
    /,
    *more: Annotated[
        Path,
        Parameter(name="MORE", completer=completers.study_folders, help="Further ones: each is compared with A."),
    ],
    out: Annotated[
        Path | None,
        Parameter(
            name="--out", metavar="FILE", help="The page to write; below runs/, named after the sides, where not given."
        ),
    ] = None,
    fail_if_slower: Annotated[
        float | None,
        Parameter(
            metavar="PERCENT", help="Exit with 1 where B is really slower by more, with the lower end of its interval."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Compare studies or runs with the first of them: what changed, what is real, and where it comes from.

    Points of studies are put together that agree in ranks and in every setting that the studies have in
    common; what they do not have in common is listed first. Of single runs the steps are compared. The same,
    with plots, is written as a page.

    For example:

        paceline compare runs/digits runs/digits-flat
        paceline compare runs/before runs/after --fail-if-slower 5 --json
        paceline compare runs/ddp runs/flat runs/mpi --out strategies.html
    """
    from paceline.analyze.changes.changes import slower_than
    from paceline.cli.compared_sides import LETTERS, compared

    console = Console.standard()
    if fail_if_slower is not None and not 0 <= fail_if_slower < math.inf:
        raise RequestError(
            f"--fail-if-slower {fail_if_slower:g} is not a share of A's time.",
            right="It is a number of per cent from 0 on: --fail-if-slower 5",
        )
    folders = [folder.expanduser() for folder in (a, b, *more)]
    if len(folders) > len(LETTERS):
        raise RequestError(
            f"{len(folders)} folders do not fit beside one another.",
            right=f"Up to {len(LETTERS)} are compared, each with the first.",
        )
    path = _place(out, folders)
    found = compared(folders)
    fraction = None if fail_if_slower is None else fail_if_slower / 100
    slower = [] if fraction is None else [(each.letter, slower_than(each.changes, fraction)) for each in found.against]
    page = _written(found, path, console)
    labels = [_label(letter, change, found) for letter, changes in slower for change in changes]
    _show(found, labels, page, console, as_json=as_json)
    return 0 if fail_if_slower is None else _checked(found, labels, fail_if_slower, console)


def _show(found: Comparison, slower: list[str], page: Path | None, console: Console, *, as_json: bool) -> None:
    from paceline.records.codec import plain
    from paceline.report import changes_text, sides_text

    first, *others = found.against
    if as_json:
        further = {"more": [plain(each) for each in others], "figures": [plain(each) for each in found.figures]}
        console.json({**plain(first), **further, "page": None if page is None else str(page), "slower": slower})
        return
    if others:
        console.result(sides_text.render(found, width=console.width, color=console.color))
    else:
        console.result(changes_text.render(first, width=console.width, color=console.color))
    console.result(f"\nPage    {page or 'not written'}")
    console.result(f"Next    Where the time of one went: {shlex.join(['paceline', 'trace', found.sides[-1].name])}")


def _place(out: Path | None, folders: Sequence[Path]) -> Path:
    """Where the page goes; RequestError where that cannot be."""
    if out is None:
        names = "-".join(_slug(folder) for folder in folders)
        return Path("runs") / f"compare-{names}.html"
    path = out.expanduser()
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


def _written(found: Comparison, path: Path, console: Console) -> Path | None:
    """Write the page; what keeps it from being written does not keep the answer back."""
    from paceline.records.codec import write_atomically
    from paceline.report.compare_page import render

    try:
        write_atomically(path, render(found).encode("utf-8", "replace"))
    except PacelineError as error:
        console.status("WARN", f"The page was not written: {error.what}")
        return None
    return path


def _label(letter: str, change: Change, found: Comparison) -> str:
    return change.label if len(found.against) == 1 else f"{letter}, {change.label}"


def _checked(found: Comparison, slower: Sequence[str], percent: float, console: Console) -> int:
    """The exit code of a check, with a line about what it rests on."""
    if slower:
        side = "B is" if len(found.against) == 1 else "Sides are"
        console.status("FAIL", f"{side} really slower than A by more than {percent:g} %: {'; '.join(slower)}.")
        return 1
    changes = [(each.letter, change) for each in found.against for change in each.changes]
    blind = [_label(letter, change, found) for letter, change in changes if change.smallest_seen is None]
    blind += [f"{each.letter}, nothing could be compared" for each in found.against[1:] if not each.changes]
    if blind or not changes:
        which = "; ".join(blind) or "nothing could be compared"
        console.status("WARN", f"Not checked, for want of runs: {which}.")
    return 0
