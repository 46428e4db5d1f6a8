"""`paceline trace DIR`: where the time of one run went, by rank and by message."""

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
        help="Show the traffic between all pairs of ranks as a matrix, for any number of ranks.",
    ),
]
Top = Annotated[Count, Parameter(help="Maximum rows of long tables, such as kinds of messages or pairs of ranks.")]


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
    """Show where the time of one run went: the ledger of every rank, the efficiency tree, every kind of message.

    Also shows the traffic between ranks, the stragglers and their causes, and the critical path. In a study folder,
    the median run of the point with the most ranks is shown. The trace of a killed run is shown up to its end.

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
