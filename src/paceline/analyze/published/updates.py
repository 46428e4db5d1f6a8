"""What an update takes, over all repeats: exchange and optimizer of a step.

    of a run     mean over its ranks of (comm-wait + comm-transfer + optimizer) ÷ steps
    of a point   the median over its runs, with its interval

The ledger of a point is that of its median run. An update is published as a figure of its own, beside epochs that have
repeats behind them: so it has them, too, at the cost of a look at the spans of every run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from paceline.analyze.run.ledger import in_seconds, ledger_ns, mean_ledger, rank_lines
from paceline.analyze.study.stats import median_interval
from paceline.errors import PacelineError
from paceline.records.anatomy import RunTrace
from paceline.records.published import PublishedStudy
from paceline.records.results import Interval
from paceline.records.run import RunResult

MEASURE = "update_s"
_PARTS = ("comm-wait", "comm-transfer", "optimizer")


def asks_for_updates(published: PublishedStudy) -> bool:
    """Whether a table of a published study has a column for them."""
    return any(column.measure == MEASURE for table in published.tables for column in table.columns)


def update_intervals(runs: Iterable[RunResult], traces: Callable[[RunResult], RunTrace]) -> dict[str, Interval]:
    """Seconds of an update by point, of those whose runs show any; `traces` gives a run's spans."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        # Of a resumed run only a part was seen; on a GPU the host's spans show when work was queued, not when it ran.
        if run.total_s is None or run.device == "cuda":
            continue
        try:
            update_s = run_update_s(traces(run), run.steps)
        except PacelineError:  # spans that cannot be read: said where the median run's are
            continue
        if update_s is not None:
            found[run.point_id].append(update_s)
    return {point_id: median_interval(values) for point_id, values in found.items()}


def run_update_s(run: RunTrace, steps: int) -> float | None:
    """Seconds of one run's update; None where ranks are missing, or their exchange could not be divided."""
    lines = rank_lines(run)
    if len(lines) < run.ranks or not steps:
        return None
    ledger = mean_ledger([in_seconds(ledger_ns(line)) for line in lines])
    parts = [part for kind in _PARTS if (part := ledger[kind]) is not None]
    return sum(parts) / steps if len(parts) == len(_PARTS) else None
