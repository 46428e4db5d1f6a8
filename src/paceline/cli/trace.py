"""`paceline trace DIR`: where the time of one run went, rank by rank and message by message."""

from __future__ import annotations

import shlex
from typing import Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Count, Json, PointName, RunNumber, RunOrStudy

Matrix = Annotated[
    bool,
    Parameter(
        negative="",
        show_default=False,
        help="Show what went between each two ranks as a square, however many ranks there are.",
    ),
]
Top = Annotated[Count, Parameter(help="Rows of a table that has one for each kind of message, pair of ranks, ...")]


def trace(
    folder: RunOrStudy,
    /,
    *,
    point: PointName = None,
    run: RunNumber = None,
    top: Top = 10,
    matrix: Matrix = False,
    as_json: Json = False,
) -> None:
    """Where the time of one run went: every rank's ledger, the efficiency tree, every kind of message.

    Who sent how much to whom, who came last and what it was doing, and what the critical path is made of. Of a study
    it is the median run of the point with the most ranks. A run that was killed is read as far as it got.

    For example:

        paceline trace runs/digits
        paceline trace runs/digits --point 2-ranks --run 1 --top 20
    """
    from paceline import app

    console = Console.standard()
    found = app.trace(folder, point=point, run=run, top=top, matrix=matrix)
    if found.chosen:
        console.say(found.chosen)
    if as_json:
        console.json(found.to_dict())
        return
    chosen = [*(("--point", point) if point else ()), *(("--run", str(run)) if run else ())]
    following = shlex.join(["paceline", "export", str(folder), *chosen, "--format", "chrome"])
    text = found.text(width=console.width, color=console.color)
    console.result(f"{text}\nNext    See every span in Perfetto: {following}")
