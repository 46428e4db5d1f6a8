"""`paceline trace DIR`: where the time of one run went, rank by rank and message by message."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli.chosen_run import Folder, PointName, RunNumber, read_chosen
from paceline.cli.console import Console
from paceline.cli.options import Count, Json
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.records.anatomy import Anatomy, RunTrace
    from paceline.records.counters import CpuTimes
    from paceline.records.suspects import Suspect

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
    folder: Folder,
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
    from paceline.records.codec import plain
    from paceline.report.trace_text import render

    if top < 1:
        raise RequestError(
            f"--top {top} leaves nothing to show.", right="For example: --top 20", next="See: paceline trace --help"
        )
    console = Console.standard()
    read = read_chosen(folder, point, run, console.say)
    found, lost_to, slow, cpu = _analysed(read)
    if as_json:
        more = {"suspects": [plain(each) for each in slow], "cpu": plain(cpu) if cpu else None}
        console.json({"folder": read.name, "hosts": read.hosts, "explained": lost_to, **plain(found), **more})
        return
    shown = render(
        read,
        found,
        lost_to,
        cpu=cpu,
        suspects=slow,
        top=top,
        whole_matrix=matrix,
        width=console.width,
        color=console.color,
    )
    chosen = [*(("--point", point) if point else ()), *(("--run", str(run)) if run else ())]
    following = shlex.join(["paceline", "export", str(folder), *chosen, "--format", "chrome"])
    console.result(f"{shown}\nNext    See every span in Perfetto: {following}")


def _analysed(read: RunTrace) -> tuple[Anatomy, dict[str, float], tuple[Suspect, ...], CpuTimes | None]:
    """What the traces of a run show, how much of the loss each factor explains, what made it slow, and what it used."""
    from paceline.analyze.run.anatomy import dissect
    from paceline.analyze.run.cpu_time import cpu_times
    from paceline.analyze.run.efficiencies import explained
    from paceline.analyze.run.suspects import suspects
    from paceline.records.counters_of_run import read_counters
    from paceline.records.folder import RunFolder

    dissected = dissect(read)
    tree = dissected.anatomy.efficiencies
    counters = read_counters(RunFolder(Path(read.name)))
    cpu = cpu_times(
        counters,
        ranks=read.ranks,
        started_at_ns=read.started_at_ns,
        ended_at_ns=read.ended_at_ns,
        lines=dissected.lines,
    )
    return dissected.anatomy, dict(explained(tree)) if tree else {}, suspects(read, dissected, counters), cpu
