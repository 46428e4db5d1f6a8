"""`paceline compare A B ...`: what changed between studies or runs, what of it is real, and where it comes from."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.app.comparison import ComparedFolders

_FOLDER = "A study folder, such as runs/digits, or the folder of one run."


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
    from paceline import app

    console = Console.standard()
    if fail_if_slower is not None and not 0 <= fail_if_slower < math.inf:
        raise RequestError(
            f"--fail-if-slower {fail_if_slower:g} is not a share of A's time.",
            right="It is a number of per cent from 0 on: --fail-if-slower 5",
        )
    found = app.compare(a, b, *more, out=out)
    for note in found.notes:
        console.status("WARN", note)
    slower = () if fail_if_slower is None else found.slower(fail_if_slower / 100)
    if as_json:
        console.json({**found.to_dict(), "slower": slower})
    else:
        last = found.comparison.sides[-1].name
        console.result(found.text(width=console.width, color=console.color))
        console.result(f"\nPage    {found.page or 'not written'}")
        console.result(f"Next    Where the time of one went: {shlex.join(['paceline', 'trace', last])}")
    return 0 if fail_if_slower is None else _checked(found, slower, fail_if_slower, console)


def _checked(found: ComparedFolders, slower: Sequence[str], percent: float, console: Console) -> int:
    """The exit code of a check, with a line about what it rests on."""
    if slower:
        side = "B is" if len(found.comparison.against) == 1 else "Sides are"
        console.status("FAIL", f"{side} really slower than A by more than {percent:g} %: {'; '.join(slower)}.")
        return 1
    if unchecked := found.unchecked():
        console.status("WARN", f"Not checked, for want of runs: {'; '.join(unchecked)}.")
    return 0
