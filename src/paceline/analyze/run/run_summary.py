"""The trace summary of a run: all metrics of its traces, in one pass.

    RunTrace ─▶ messages ─▶ timelines ─▶ ledger, message table, matrix, arrivals, critical path, efficiency tree

The timed steps are all but the first, which warms up: from the second step of the first rank to the last step of the
last rank. A run without steps has a ledger, a message table and a matrix only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyze.run.arrivals import arrivals
from paceline.analyze.run.critical_path import critical_path
from paceline.analyze.run.efficiencies import Work, efficiencies, work
from paceline.analyze.run.ledger import in_seconds, ledger_ns, rank_line
from paceline.analyze.run.message_matrix import host_matrix, message_matrix
from paceline.analyze.run.message_table import lateness, message_table
from paceline.analyze.run.messages import Messages, messages
from paceline.analyze.run.run_timeline import TimeLine, finished_steps
from paceline.records.rank_trace import RankTrace
from paceline.records.trace_summary import RunTrace, TraceSummary
from paceline.units import seconds


def trace_summary(run: RunTrace, windows: Sequence[tuple[int, int]] | None = None) -> TraceSummary:
    """The summary of a run's traces; `windows` replace its timed steps."""
    return run_analysis(run, windows).summary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnalysis:
    """A trace summary and its intermediate results."""

    summary: TraceSummary
    lines: tuple[TimeLine, ...]
    """Timelines of the training ranks; segments begin at both ends of each window."""
    windows: tuple[tuple[int, int], ...]
    work: Work | None
    """None if ranks are missing, or exposed time is not divided."""


def run_analysis(
    run: RunTrace, windows: Sequence[tuple[int, int]] | None = None, found: Sequence[Messages] | None = None
) -> RunAnalysis:
    """The trace summary and the timelines of a run; `windows` replace its timed steps, `found` are its messages."""
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
    cells = message_matrix(run.traces, found, groups)
    host_names, host_cells = host_matrix(cells, run.hosts)
    summary = TraceSummary(
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
    return RunAnalysis(summary=summary, lines=tuple(lines), windows=tuple(windows), work=spent)


def timed_steps(traces: Sequence[RankTrace]) -> tuple[int, int] | None:
    """Start of the first rank's second step and end of the last rank's last, in ns; None below two steps."""
    begins, ends = [], []
    for trace in traces:
        rows = finished_steps(trace)
        if len(rows) < 2:
            return None
        begins.append(int(trace.start_ns[rows[1]]))
        ends.append(int(trace.end_ns[rows].max()))
    return (min(begins), max(ends)) if begins and min(begins) < max(ends) else None


def num_steps(traces: Sequence[RankTrace]) -> int:
    """Number of optimizer steps that every rank has finished."""
    return min((len(finished_steps(trace)) for trace in traces), default=0)
