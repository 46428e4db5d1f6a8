"""Metrics of one side of a comparison at a point: one bar in each chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paceline.analyze.compare.spent import RunCosts
from paceline.analyze.points.timing import epoch_s, samples_per_s
from paceline.analyze.stats.intervals import known_interval
from paceline.records.changes import Change, SideFigures
from paceline.records.run import RunResult


def side_figures(
    letter: str, change: Change, results: Sequence[RunResult | None], spent: Sequence[RunCosts], *, first: bool
) -> SideFigures:
    """Metrics of A (`first`) or of the other side of a change.

    The ledger is that of the change, so bars and tables agree. Without results, for ranks that another program started,
    throughput comes from the blocks of steps.
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
        epoch_s=known_interval(epoch_s(result) for result in known),
        samples_per_s=known_interval(rates),
        test_accuracy=known_interval(result.test_accuracy for result in known),
        ledger_s={kind: value for kind, value in ledger.items() if value is not None},
        unit=change.unit,
        shared_cores=any(result.oversubscribed for result in known),
    )


def joined_figures(found: Iterable[SideFigures]) -> tuple[SideFigures, ...]:
    """One record per point, unit and side, in this order; A has a record for each side it is compared with."""
    once: dict[tuple[str, str, str], SideFigures] = {}
    for figures in found:
        key = (figures.point, figures.unit, figures.letter)
        # The communication of A may be divided in one change and not in another.
        if key not in once or len(figures.ledger_s) > len(once[key].ledger_s):
            once[key] = figures
    points = list(dict.fromkeys((point, unit) for point, unit, _ in once))
    return tuple(sorted(once.values(), key=lambda each: (points.index((each.point, each.unit)), each.letter)))
