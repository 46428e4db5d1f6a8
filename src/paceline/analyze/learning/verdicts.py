"""Learning metrics of a study: curves, target and efficiencies of each point, and comparisons of accuracy.

Each accuracy is compared with that of a reference point:

    group        points with the same training; they differ in ranks, batch, division of the work, and the settings
                 that the recipe derives from these
    reference    point of a group with the smallest global batch, then the fewest ranks and servers, then the first
    compared     every point with the reference of its group, and the references with the first reference

A failed run (diverged or dead), where most runs of its point learn, is a finding and is not compared; its point is not
called equal to any other.

    statistical efficiency   samples to the target at the baseline / samples to the target here
    effective speed-up       speed-up × statistical efficiency
                             = time to the target at the baseline / time to the target here, at the measured throughputs

Curves are those of the first phase. A run with a value that is missing or not finite has no curve of that measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.analyze.learning import targets
from paceline.analyze.learning.faults import learning_runs, run_faults
from paceline.analyze.learning.noise import noise_scale
from paceline.analyze.learning.stable import stable, turn
from paceline.analyze.points.series import without_recipe_choices, work_key
from paceline.analyze.points.speedups import ratio
from paceline.analyze.stats.equivalence import check, corrected
from paceline.analyze.stats.intervals import CONFIDENCE, FEWEST_FOR_INTERVAL
from paceline.analyze.stats.students_t import quantile
from paceline.records.learning import AccuracyCheck, Band, Learning, LearningSummary
from paceline.records.results import PointResult
from paceline.records.run import RunResult
from paceline.records.study import Point

Runs = Mapping[str, Sequence[RunResult]]
ByRun = Mapping[int, float]
"""Values by number of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOptions:
    """Target and margin of the learning metrics."""

    target: float | None
    """Validation accuracy; None: the highest that every run reached."""
    margin: float
    """Largest difference of equal accuracies, as a fraction."""


def with_learning(
    rows: Sequence[PointResult], runs: Runs, throughputs: Mapping[str, ByRun], asked: LearningOptions
) -> tuple[tuple[PointResult, ...], LearningSummary]:
    """The rows with their learning metrics, and those of the whole study.

    `throughputs` are samples per second by point and run. Rows of a script, whose curves are unknown, are unchanged.
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
    summary = LearningSummary(checks=_checks(rows, known, asked.margin))
    if wanted is None:
        return tuple(found), summary
    rule = targets.CONFIGURED if asked.target is not None else targets.CHOSEN
    first, cheapest = _least(found, "time_s"), _least(found, "rank_hours")
    return tuple(found), replace(summary, target=wanted, rule=rule, first=first, cheapest=cheapest)


def _learning(row: PointResult, runs: Sequence[RunResult], wanted: float | None) -> Learning:
    """The metrics of one point that need no other point."""
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
    """`own` with statistical efficiency and effective speed-up against the baseline."""
    if row.baseline is None or row.baseline not in samples:
        return own
    statistical = ratio(samples[row.baseline], samples[row.point_id])
    pace = ratio(*(_targets_per_s(throughputs[each], samples[each]) for each in (row.point_id, row.baseline)))
    effective = None
    if row.speedup is not None and statistical is not None and pace is not None:
        # The interval of the paired ratios need not include the product: it is widened.
        product = row.speedup.median * statistical.median
        effective = replace(pace, median=product, low=min(pace.low, product), high=max(pace.high, product))
    return replace(own, statistical_efficiency=statistical, effective_speedup=effective)


def _least(rows: Sequence[PointResult], name: str) -> str | None:
    """The point_id with the lowest median of a target metric; points without shared cores or emulated hosts first."""
    reached = [(row, row.learning.target) for row in rows if row.learning and row.learning.target]
    values = [(figure.median, row) for row, target in reached if (figure := getattr(target, name))]
    values = [pair for pair in values if pair[1].fair] or values
    return min(values, key=lambda pair: pair[0])[1].point_id if values else None


def _checks(rows: Sequence[PointResult], runs: Runs, margin: float) -> tuple[AccuracyCheck, ...]:
    """Each point's accuracy against that of its reference, corrected for multiple tests."""
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
    """point_id -> point_id of its reference; without the first reference."""
    groups: dict[str, list[str]] = {}
    for point_id, point in points.items():
        groups.setdefault(_training(point), []).append(point_id)
    found, first = {}, None
    for group in groups.values():
        reference = min(group, key=lambda each: (points[each].batch_global, points[each].ranks + points[each].servers))
        first = first or reference
        found |= {point_id: reference for point_id in group if point_id != reference}
        if reference != first:
            found[reference] = first
    return {point_id: found[point_id] for point_id in points if point_id in found}


def _training(point: Point) -> str:
    """The settings of the training as text, equal for all points of a group."""
    configured = without_recipe_choices(point)
    train = replace(configured.train, batch_global=None, batch_per_rank=None)
    return work_key(replace(configured, train=train, threads=1, device=""))


def _accuracies(runs: Sequence[RunResult]) -> dict[int, float]:
    return {run.run: run.test_accuracy for run in runs if run.test_accuracy is not None}


def _targets_per_s(samples_per_s: ByRun, samples: ByRun) -> dict[int, float]:
    """1 / time to the target of each run, at its throughput."""
    return {run: samples_per_s[run] / samples[run] for run in samples_per_s.keys() & samples.keys()}


def curve_array(runs: Sequence[RunResult], part: str, measure: str) -> np.ndarray | None:
    """One row per run, one column per whole epoch that all runs have; None if no run has a curve."""
    rows = [_values(run, f"{part}_{measure}") for run in runs]
    known = [row for row in rows if row]
    if not known:
        return None
    epochs = min(len(row) for row in known)
    return np.array([row[:epochs] for row in known], dtype=np.float64)


def bands(runs: Sequence[RunResult]) -> tuple[Band, ...]:
    """Mean curves of loss and accuracy, in training and validation, that were measured."""
    found = (
        (part, measure, curve_array(runs, part, measure))
        for measure in ("loss", "accuracy")
        for part in ("train", "validation")
    )
    return tuple(_band(part, measure, curves) for part, measure, curves in found if curves is not None)


def _band(part: str, measure: str, curves: np.ndarray) -> Band:
    """The mean of every epoch, with Student's interval from five runs on."""
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
    """A measure of every whole epoch of the first phase; empty if a value is missing or not finite."""
    values = [getattr(epoch, name) for epoch in run.epochs if epoch.whole and epoch.phase == "train"]
    return values if all(value is not None and math.isfinite(value) for value in values) else []
