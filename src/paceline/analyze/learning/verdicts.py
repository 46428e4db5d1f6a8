"""All that a study shows about learning: the figures of each point, the target, and accuracies against one another.

Which point an accuracy is compared with:

    group        points that do the same training and differ in ranks, batch, how the work is divided, and what their
                 recipe made of these
    reference    of a group: the smallest global batch, then the fewest ranks and servers, then the first of the study
    compared     every point with the reference of its group, and the references with the first one

So a fall with ranks or batch shows within a recipe, and recipes are compared where they cost the least. A run that
learned nothing, where most of its point's did, is named as a finding and not compared; its point is called equal to
none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from paceline.analyze.learning import targets
from paceline.analyze.learning.faults import learning_runs, run_faults
from paceline.analyze.learning.noise import noise_scale
from paceline.analyze.learning.stable import stable, turn
from paceline.analyze.points.series import without_recipe_choices
from paceline.analyze.points.speedups import ratio
from paceline.analyze.stats.equivalence import check, corrected
from paceline.analyze.stats.intervals import CONFIDENCE, FEWEST_FOR_INTERVAL
from paceline.analyze.stats.students_t import quantile
from paceline.records.learning import AccuracyCheck, Band, Learning, LearningSummary
from paceline.records.results import Interval, PointResult
from paceline.records.run import RunResult
from paceline.records.study import Point

Runs = Mapping[str, Sequence[RunResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOptions:
    """What is asked of the curves."""

    target: float | None
    """A validation accuracy; chosen by the runs themselves where None."""
    margin: float
    """Accuracies that differ by less may be called equal, as a fraction."""


def with_learning(
    rows: Sequence[PointResult], runs: Runs, throughputs: Mapping[str, ByRun], asked: LearningOptions
) -> tuple[tuple[PointResult, ...], LearningSummary]:
    """The rows with what they show about learning, and what the study as a whole does.

    `throughputs` are samples per second by point and run. A script's curves are not known: its rows stay as they are.
    """
    known = {row.point_id: runs[row.point_id] for row in rows if row.point.script is None and runs[row.point_id]}
    faults = {point_id: run_faults(own) for point_id, own in known.items()}
    failed = {point_id: {fault.run for fault in own} for point_id, own in faults.items()}
    wanted = asked.target if asked.target is not None else targets.chosen_target(known, failed)
    samples = {point_id: targets.samples_to(own, wanted) if wanted else {} for point_id, own in known.items()}
    found = []
    for row in rows:
        if row.point_id in known:
            own = _learning(row, known[row.point_id], wanted)
            row = replace(row, learning=_against(replace(own, faults=faults[row.point_id]), row, throughputs, samples))
        found.append(row)
    if wanted is None:
        return tuple(found), LearningSummary(checks=_checks(rows, known, asked.margin))
    lesson = LearningSummary(
        target=wanted,
        rule=targets.CONFIGURED if asked.target is not None else targets.CHOSEN,
        first=_least(found, lambda row: _target_figure(row, "time_s")),
        cheapest=_least(found, lambda row: _target_figure(row, "rank_hours")),
        checks=_checks(rows, known, asked.margin),
    )
    return tuple(found), lesson


def _learning(row: PointResult, runs: Sequence[RunResult], wanted: float | None) -> Learning:
    """The figures of one point by itself."""
    accuracy = curve_array(runs, "validation", "accuracy")
    return Learning(
        bands=bands(runs),
        stable=None if accuracy is None else stable(accuracy),
        target=None if wanted is None else targets.target(runs, wanted, processes=row.ranks_and_servers),
        turn=turn(curve_array(runs, "validation", "loss"), curve_array(runs, "train", "loss")),
        noise=noise_scale(runs, row.point.batch_global),
    )


def _against(
    own: Learning, row: PointResult, throughputs: Mapping[str, ByRun], samples: Mapping[str, ByRun]
) -> Learning:
    """A point with what it has only in comparison with its baseline."""
    if row.baseline is None or row.baseline not in samples:
        return own
    here, there = samples[row.point_id], samples[row.baseline]
    statistical = statistical_efficiency(here, there)
    effective = effective_speedup(
        row.speedup, statistical, (throughputs[row.point_id], here), (throughputs[row.baseline], there)
    )
    return replace(own, statistical_efficiency=statistical, effective_speedup=effective)


def _least(rows: Sequence[PointResult], figure: Callable[[PointResult], float | None]) -> str | None:
    """The point with the lowest figure, of those with cores and hosts of their own where any has one."""
    values = [(value, row) for row in rows if (value := figure(row)) is not None]
    values = [pair for pair in values if pair[1].fair] or values
    return min(values, key=lambda pair: pair[0])[1].point_id if values else None


def _target_figure(row: PointResult, name: str) -> float | None:
    found = getattr(row.learning.target, name) if row.learning and row.learning.target else None
    return found.median if found else None


def _checks(rows: Sequence[PointResult], runs: Runs, margin: float) -> tuple[AccuracyCheck, ...]:
    """Every point's accuracy against its reference's, corrected for their number."""
    points = {row.point_id: row.point for row in rows if row.point_id in runs}
    learned_by = {point_id: learning_runs(runs[point_id]) for point_id in points}
    accuracies = {point_id: _accuracies(own) for point_id, own in learned_by.items()}
    fewer = {point_id for point_id, own in learned_by.items() if len(own) < len(runs[point_id])}
    found = []
    for point_id, against in references(points).items():
        both, left_out = (accuracies[point_id], accuracies[against]), not fewer.isdisjoint((point_id, against))
        if (one := check(point_id, against, *both, margin, left_out=left_out)) is not None:
            found.append(replace(one, batch_ratio=points[point_id].batch_global / points[against].batch_global))
    return corrected(found)


def references(points: Mapping[str, Point]) -> dict[str, str]:
    """Which point each one's accuracy is compared with, both by identifier; the first of all with none."""
    groups: dict[str, list[str]] = {}
    for point_id, point in points.items():
        groups.setdefault(_training(point), []).append(point_id)
    found, first = {}, None
    for group in groups.values():
        reference = min(group, key=lambda point_id: _size(points[point_id]))
        first = first or reference
        found |= {point_id: reference for point_id in group if point_id != reference}
        if reference != first:
            found[reference] = first
    return {point_id: found[point_id] for point_id in points if point_id in found}


def _size(point: Point) -> tuple[int, int]:
    return point.batch_global, point.ranks + point.servers


def _training(point: Point) -> str:
    """What is trained and how, whatever the batch and the means: equal for all points of a group."""
    given = without_recipe_choices(point)
    train = replace(given.train, batch_global=None, batch_per_rank=None)
    means = replace(given, hosts=1, threads=1, launcher="", device="", pin=True, site={})
    alike = replace(means, train=train, ranks=1, strategy="", options={})
    return json.dumps(asdict(alike), sort_keys=True, default=str)


def _accuracies(runs: Sequence[RunResult]) -> dict[int, float]:
    return {run.run: run.test_accuracy for run in runs if run.test_accuracy is not None}


ByRun = Mapping[int, float]
"""A figure by number of the run."""


def statistical_efficiency(own_samples: ByRun, base_samples: ByRun) -> Interval | None:
    """Samples that the baseline needs over samples that this point needs; None where one of them is not known."""
    return ratio(base_samples, own_samples)


def effective_speedup(
    speedup: Interval | None, statistical: Interval | None, own: tuple[ByRun, ByRun], base: tuple[ByRun, ByRun]
) -> Interval | None:
    """Speed-up × statistical efficiency; `own` and `base` are samples per second and samples to the target."""
    if speedup is None or statistical is None:
        return None
    pace = ratio(_targets_per_s(*own), _targets_per_s(*base))
    if pace is None:
        return None
    # The product of the two figures that stand beside it; widened, as the interval need not hold it.
    product = speedup.median * statistical.median
    return replace(pace, median=product, low=min(pace.low, product), high=max(pace.high, product))


def _targets_per_s(samples_per_s: ByRun, samples: ByRun) -> dict[int, float]:
    """How often in a second each run would come to the target."""
    return {run: samples_per_s[run] / samples[run] for run in samples_per_s.keys() & samples.keys()}


MEASURES = ("loss", "accuracy")
PARTS = ("train", "validation")


def curve_array(runs: Sequence[RunResult], part: str, measure: str) -> np.ndarray | None:
    """One row per run, one column per whole epoch of the first phase that all have; None where no run has any."""
    rows = [_values(run, f"{part}_{measure}") for run in runs]
    known = [row for row in rows if row]
    if not known:
        return None
    epochs = min(len(row) for row in known)
    return np.array([row[:epochs] for row in known], dtype=np.float64)


def bands(runs: Sequence[RunResult]) -> tuple[Band, ...]:
    """Loss and accuracy, in training and in validation, as far as they were measured."""
    found = ((part, measure, curve_array(runs, part, measure)) for measure in MEASURES for part in PARTS)
    return tuple(_band(part, measure, curves) for part, measure, curves in found if curves is not None)


def _band(part: str, measure: str, curves: np.ndarray) -> Band:
    """The mean of every epoch, and Student's interval for it from five runs on."""
    n, mean, low, high = len(curves), curves.mean(axis=0), np.empty(0), np.empty(0)
    if n >= FEWEST_FOR_INTERVAL:
        half = quantile((1 + CONFIDENCE) / 2, n - 1) * curves.std(axis=0, ddof=1) / math.sqrt(n)
        low, high = mean - half, mean + half
    return Band(
        measure=measure,
        part=part,
        epochs=tuple(range(1, curves.shape[1] + 1)),
        mean=tuple(mean.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        n=n,
    )


def _values(run: RunResult, name: str) -> list[float]:
    """A measure of every whole epoch of a run's first phase; nothing where one is missing or not finite."""
    values = [getattr(epoch, name) for epoch in run.epochs if epoch.whole and epoch.phase == "train"]
    return values if all(value is not None and math.isfinite(value) for value in values) else []
