"""What an update takes, over all repeats: exchange and optimizer of a step.

    of a run     mean over its ranks of (comm-wait + comm-transfer + optimizer within its steps) ÷ steps
    of a point   the median over its runs, with its interval

What ranks say to each other between steps, after an epoch or in a test, is no part of it. An update is published as a
figure of its own, beside epochs that have repeats behind them: so it has them, too, at the cost of a look at the spans
of every run. Of a run that was resumed, or whose spans break off, the steps count that were seen.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from paceline.analyze.run.ledger import rank_line
from paceline.analyze.run.messages import Messages, messages
from paceline.analyze.stats.intervals import median_interval
from paceline.errors import PacelineError
from paceline.published.records import PublishedStudy
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS, RankTrace
from paceline.records.results import Interval
from paceline.records.run import RunResult
from paceline.records.trace_summary import RunTrace
from paceline.units import seconds

MEASURE = "update_s"
_STEP = SPAN_KINDS.index("step")
_PARTS = [LEDGER_KINDS.index(kind) for kind in ("comm-wait", "comm-transfer", "optimizer")]


def asks_for_updates(published: PublishedStudy, study: str) -> bool:
    """Whether the published tables that a study of ours has beside it have a column for them."""
    tables = () if study in published.asked_alone else published.tables
    return any(column.measure == MEASURE for table in tables for column in table.columns)


def update_intervals(runs: Iterable[RunResult], traces: Callable[[RunResult], RunTrace]) -> dict[str, Interval]:
    """Seconds of an update by point, over those of its runs that show it; `traces` gives a run's spans."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if run.device == "cuda":
            continue  # the host's spans show when work was queued, not when it ran
        try:
            update_s = run_update_s(traces(run))
        except PacelineError:  # spans that cannot be read: one repeat less
            continue
        if update_s is not None:
            found[run.point_id].append(update_s)
    return {point_id: median_interval(values) for point_id, values in found.items()}


def run_update_s(run: RunTrace) -> float | None:
    """Seconds of an update of one run; None where a rank shows none."""
    window = (run.started_at_ns, max(run.started_at_ns, run.ended_at_ns))
    sides = zip(run.traces, messages(run.traces, run.ranks), strict=True)
    found = [_rank_update_s(trace, own, window, run.ranks) for trace, own in sides if trace.rank < run.ranks]
    known = [update_s for update_s in found if update_s is not None]
    return statistics.fmean(known) if known and len(known) == run.ranks else None


def _rank_update_s(trace: RankTrace, own: Messages, window: tuple[int, int], ranks: int) -> float | None:
    """Seconds of an update on one rank; None without steps, and where its exchange could not be divided."""
    steps = np.flatnonzero((trace.kind == _STEP) & (trace.end_ns >= 0))
    steps = steps[np.argsort(trace.start_ns[steps])]
    begins, ends = trace.start_ns[steps], trace.end_ns[steps]
    line = rank_line(trace, own, window, ranks, cuts=[*begins.tolist(), *ends.tolist()])
    if not len(steps) or not line.divided:
        return None
    step = np.searchsorted(begins, line.start_ns, side="right") - 1
    inside = (step >= 0) & (line.start_ns < ends[step])
    spent_ns = line.length_ns[inside & np.isin(line.kind, _PARTS)].sum()
    return seconds(int(spent_ns)) / len(steps)
