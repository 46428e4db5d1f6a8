"""The anatomy of a run: everything that its traces show, from one pass over them.

    RunTrace ─▶ messages ─▶ time lines ─▶ ledger, message table, matrix, arrivals, critical path, efficiency tree

The steps that are looked at are those after the first, which warms up: from the first rank's second step to the last
rank's last. A run without steps has a ledger, a message table and a matrix, and the rest is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.arrivals import arrivals
from paceline.analyze.run.critical_path import critical_path
from paceline.analyze.run.efficiencies import Work, efficiencies, work
from paceline.analyze.run.ledger import in_seconds, ledger_ns, rank_line
from paceline.analyze.run.message_matrix import between_hosts, matrix
from paceline.analyze.run.message_table import lateness, message_table
from paceline.analyze.run.messages import Messages, messages
from paceline.analyze.run.run_timeline import TimeLine
from paceline.records.rank_trace import SPAN_KINDS, RankTrace
from paceline.records.trace_summary import RunTrace, TraceSummary
from paceline.units import seconds

_STEP = SPAN_KINDS.index("step")


def anatomy(run: RunTrace, windows: Sequence[tuple[int, int]] | None = None) -> TraceSummary:
    """All that the traces of a run show; `windows` are instead of its timed steps."""
    return dissect(run, windows).anatomy


@dataclass(frozen=True, slots=True, kw_only=True)
class Dissection:
    """An anatomy with what it was made of."""

    anatomy: TraceSummary
    lines: tuple[TimeLine, ...]
    """Of the ranks that train; segments begin where windows do."""
    windows: tuple[tuple[int, int], ...]
    work: Work | None
    """None where ranks are missing, or exposed time could not be divided."""


def dissect(
    run: RunTrace, windows: Sequence[tuple[int, int]] | None = None, found: Sequence[Messages] | None = None
) -> Dissection:
    """The anatomy of a run, and its time lines; `windows` are instead of its timed steps.

    `found` are its messages, where they are known already.
    """
    whole = (run.started_at_ns, max(run.started_at_ns, run.ended_at_ns))
    training = [trace for trace in run.traces if trace.rank < run.ranks]
    if windows is None:
        steps = timed_steps(training)
        windows = [] if steps is None else [steps]
    windows = [window for window in windows if whole[0] <= window[0] < window[1] <= whole[1]]
    found = messages(run.traces, run.ranks) if found is None else found
    own = [each for each, trace in zip(found, run.traces, strict=True) if trace.rank < run.ranks]
    cuts = [instant for window in windows for instant in window]
    lines = [rank_line(trace, mine, whole, run.ranks, cuts) for trace, mine in zip(training, own, strict=True)]
    complete = len(lines) == run.ranks
    groups = {name: ranks for trace in run.traces for name, ranks in trace.groups.items()}
    members = {name: len(ranks) for name, ranks in groups.items()}
    spent = work(lines, own, windows) if complete else None
    cells = matrix(run.traces, found, groups)
    host_names, host_cells = between_hosts(cells, run.hosts)
    shown = TraceSummary(
        ranks=run.ranks,
        wall_s=seconds(whole[1] - whole[0]),
        steps=num_steps(training),
        ledgers_s=tuple(in_seconds(ledger_ns(line)) for line in lines),
        messages=message_table(training, lines, own, members),
        matrix=cells,
        host_names=host_names,
        host_matrix=host_cells,
        arrivals=arrivals(training, lines, own, windows, error_ns=run.clock_error_ns) if windows else (),
        path=critical_path(lines, own, windows) if complete else (),
        efficiencies=efficiencies(spent, 0) if spent else None,
        lateness=lateness(training, own),
        clock_error_s=seconds(run.clock_error_ns),
        problems=run.problems,
    )
    return Dissection(anatomy=shown, lines=tuple(lines), windows=tuple(windows), work=spent)


def timed_steps(traces: Sequence[RankTrace]) -> tuple[int, int] | None:
    """From the first rank's second step to the end of the last rank's last; None where there are fewer than two."""
    begins, ends = [], []
    for trace in traces:
        rows = np.flatnonzero((trace.kind == _STEP) & (trace.end_ns >= 0))
        if len(rows) < 2:
            return None
        begins.append(int(np.partition(trace.start_ns[rows], 1)[1]))
        ends.append(int(trace.end_ns[rows].max()))
    return (min(begins), max(ends)) if begins and min(begins) < max(ends) else None


def num_steps(traces: Sequence[RankTrace]) -> int:
    """Optimizer steps that every rank has finished."""
    return min((int(((trace.kind == _STEP) & (trace.end_ns >= 0)).sum()) for trace in traces), default=0)
