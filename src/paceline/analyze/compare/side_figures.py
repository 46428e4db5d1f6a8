"""What one side of a comparison measured at a point, by itself: the bars that stand beside those of the other sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from paceline.analyze.compare.spent import Spent
from paceline.analyze.points.timing import epoch_s, samples_per_s
from paceline.analyze.stats.intervals import median_interval
from paceline.records.changes import Change, SideFigures
from paceline.records.results import Interval
from paceline.records.run import RunResult


def side_figures(
    letter: str, change: Change, results: Sequence[RunResult | None], spent: Sequence[Spent], *, first: bool
) -> SideFigures:
    """The figures of A, where `first`, or of the other side of a change.

    The ledger is that of the change, so that the bars are what its rows say. Throughput without a result, as of ranks
    that another program started, is that of the blocks of steps.
    """
    known = [result for result in results if result is not None]
    rates = [samples_per_s(result) for result in known]
    if not known:
        rates = [
            cost.samples / cost.total_s for run in spent for cost in run.costs if cost.samples and cost.total_s > 0
        ]
    ledger = {part.kind: part.a_s if first else part.b_s for part in change.parts}
    return SideFigures(
        letter=letter,
        point=change.a,
        label=change.label,
        runs=len(results),
        epoch_s=_median(epoch_s(result) for result in known),
        samples_per_s=_median(rates),
        test_accuracy=_median(result.test_accuracy for result in known),
        ledger_s={kind: value for kind, value in ledger.items() if value is not None},
        unit=change.unit,
        shared_cores=any(result.oversubscribed for result in known),
    )


def joined_figures(found: Iterable[SideFigures]) -> tuple[SideFigures, ...]:
    """Each side once a point and unit, by these and then by side; A is in as many changes as there are other sides."""
    once: dict[tuple[str, str, str], SideFigures] = {}
    for figures in found:
        key = (figures.point, figures.unit, figures.letter)
        # Where one of several changes cannot divide A's communication, another can.
        if key not in once or len(figures.ledger_s) > len(once[key].ledger_s):
            once[key] = figures
    points = list(dict.fromkeys((point, unit) for point, unit, _ in once))
    return tuple(sorted(once.values(), key=lambda each: (points.index((each.point, each.unit)), each.letter)))


def _median(values: Iterable[float | None]) -> Interval | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return median_interval(known) if known else None
