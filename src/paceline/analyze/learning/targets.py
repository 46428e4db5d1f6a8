"""Time, steps and samples to a target accuracy, run by run and over the repeats.

    reached       in the first epoch with at least the target's validation accuracy
    position      interpolated linearly from the epoch before
    in epoch 1    the end of the epoch, an upper bound
    time          epoch times up to that position, without evaluation, startup and loading; None for a resumed run,
                  which computed a part twice
    phase         the first only, as for curves and throughputs

Median and interval over the repeats if every run reaches the target; otherwise only the number of runs that do, since
a median of those would be too optimistic.

The default target is the highest accuracy that every run without a fault reached, rounded down to a tenth of a point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.analyze.stats.intervals import median_interval
from paceline.records.learning import Target
from paceline.records.results import Interval
from paceline.records.run import Epoch, RunResult
from paceline.units import counted, percent_text

CONFIGURED = "given"
CHOSEN = "the highest validation accuracy that every run reached, rounded down"
_STEPS = 1000
"""Tenths of a point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCrossing:
    """Position at which one run reaches a target."""

    epochs: float
    steps: float
    samples: float
    time_s: float | None
    """None for a run that was resumed."""
    interpolated: bool
    at_most: bool


def target_crossing(run: RunResult, accuracy: float) -> TargetCrossing | None:
    """Position at which a run reaches a validation accuracy in its first phase; None if it never does."""
    time_s = samples = 0.0
    before: Epoch | None = None
    for epoch in _first_phase(run):
        reached = epoch.validation_accuracy
        if reached is not None and reached >= accuracy:
            part = _part(before, reached, accuracy)
            steps_before = before.step if before else 0
            return TargetCrossing(
                epochs=(before.epoch if before else 0) + part,
                steps=steps_before + part * (epoch.step - steps_before),
                samples=samples + part * epoch.samples,
                time_s=time_s + part * epoch.epoch_s if run.resumed_from_step is None else None,
                interpolated=part < 1,
                at_most=before is None,
            )
        time_s, samples, before = time_s + epoch.epoch_s, samples + epoch.samples, epoch
    return None


def _first_phase(run: RunResult) -> list[Epoch]:
    return [epoch for epoch in run.epochs if epoch.phase == "train"]


def _part(before: Epoch | None, reached: float, accuracy: float) -> float:
    """Fraction of an epoch until the linear interpolation reaches the target."""
    if before is None or before.validation_accuracy is None:
        return 1.0
    start = before.validation_accuracy
    return (accuracy - start) / (reached - start) if math.isfinite(start) else 1.0


def target(runs: Sequence[RunResult], accuracy: float, *, processes: int) -> Target | None:
    """Epochs, steps, samples, seconds and rank-hours to a target; None without validation accuracies."""
    if not any(epoch.validation_accuracy is not None for run in runs for epoch in _first_phase(run)):
        return None
    found = [target_crossing(run, accuracy) for run in runs]
    arrivals = [each for each in found if each is not None]
    whole = len(arrivals) == len(runs)

    def figure(value: Callable[[TargetCrossing], float | None]) -> Interval | None:
        known = [own for each in arrivals if (own := value(each)) is not None]
        return median_interval(known) if whole and known else None

    return Target(
        accuracy=accuracy,
        runs=len(runs),
        reached=len(arrivals),
        epochs=figure(lambda each: each.epochs),
        steps=figure(lambda each: each.steps),
        samples=figure(lambda each: each.samples),
        time_s=figure(lambda each: each.time_s),
        rank_hours=figure(lambda each: None if each.time_s is None else each.time_s * processes / 3600),
        interpolated=any(each.interpolated for each in arrivals),
        at_most=any(each.at_most for each in arrivals),
        why=_why(runs, arrivals, accuracy),
    )


def samples_to(runs: Iterable[RunResult], accuracy: float) -> dict[int, float]:
    """Samples to the target by number of the run; empty unless all runs reach it after their first epoch.

    Within the first epoch only upper bounds are known, whose ratios mean nothing.
    """
    found = {run.run: target_crossing(run, accuracy) for run in runs}
    known = {run: each.samples for run, each in found.items() if each is not None and not each.at_most}
    return known if len(known) == len(found) else {}


def chosen_target(runs: Mapping[str, Sequence[RunResult]], failed: Mapping[str, set[int]]) -> float | None:
    """The default target, as a fraction; None without validation accuracies. `failed` are runs with faults by point."""
    best = [
        max(accuracies)
        for point_id, own in runs.items()
        for run in own
        if run.run not in failed.get(point_id, set()) and (accuracies := _accuracies(run))
    ]
    if not best:
        return None
    # The small addition compensates rounding errors just below a tenth of a point.
    return min(min(best), math.floor(min(best) * _STEPS + 1e-9) / _STEPS)


def _accuracies(run: RunResult) -> list[float]:
    values = [epoch.validation_accuracy for epoch in _first_phase(run)]
    return [value for value in values if value is not None and math.isfinite(value)]


def _why(runs: Sequence[RunResult], arrivals: Sequence[TargetCrossing], accuracy: float) -> str:
    reached = len(arrivals)
    if reached == len(runs):
        timed = any(each.time_s is not None for each in arrivals)
        return "" if timed else f"the time to {percent_text(accuracy)} is not known: every run was resumed"
    epochs = max(len(_first_phase(run)) for run in runs)
    by = f" by {len(runs) - reached} of {counted(len(runs), 'run')}" if reached else ""
    return f"{percent_text(accuracy)} not reached in {counted(epochs, 'epoch')}{by}"
