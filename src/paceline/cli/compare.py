"""`paceline compare A B ...`: what changed between studies or runs, which changes are significant, and their causes."""

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
    b: Annotated[Path, Parameter(name="B", completer=completers.study_folders, help="A folder of the same kind.")],
    /,
    *more: Annotated[
        Path,
        Parameter(name="MORE", completer=completers.study_folders, help="More folders; each is compared with A."),
    ],
    out: Annotated[
        Path | None,
        Parameter(name="--out", metavar="FILE", help="HTML page to write; default: runs/compare-NAMES.html."),
    ] = None,
    fail_if_slower: Annotated[
        float | None,
        Parameter(
            metavar="PERCENT",
            help="Exit with 1 if B is significantly slower by more than this (lower end of the interval).",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Compare studies or runs with the first one: what changed, which changes are significant, and their causes.

    Points of two studies are matched if they have the same number of ranks and agree in every setting that both
    studies share. Settings that differ are listed first. Single runs are compared step by step. The comparison is
    also written as an HTML page with plots.

    For example:

        paceline compare runs/digits runs/digits-flat
        paceline compare runs/before runs/after --fail-if-slower 5 --json
        paceline compare runs/ddp runs/flat runs/mpi --out strategies.html
    """
    from paceline import app

    console = Console.standard()
    if fail_if_slower is not None and not 0 <= fail_if_slower < math.inf:
        raise RequestError(
            f"--fail-if-slower {fail_if_slower:g} is not a percentage of A's time.",
            right="Use a percentage of at least 0: --fail-if-slower 5",
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
        console.result(f"Next    See where the time went: {shlex.join(['paceline', 'trace', last])}")
    return 0 if fail_if_slower is None else _checked(found, slower, fail_if_slower, console)


def _checked(found: ComparedFolders, slower: Sequence[str], percent: float, console: Console) -> int:
    """Exit code of --fail-if-slower; prints the slower points, or those with too few runs to decide."""
    if slower:
        side = "B is" if len(found.comparison.against) == 1 else "Sides are"
        console.status("FAIL", f"{side} significantly slower than A by more than {percent:g} %: {'; '.join(slower)}.")
        return 1
    if unchecked := found.unchecked():
        console.status("WARN", f"Not checked, too few runs: {'; '.join(unchecked)}.")
    return 0
