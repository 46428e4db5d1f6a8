"""Time, steps and samples to a target accuracy, run by run and over the repeats.

    reached       at the first epoch whose validation accuracy is the target's or higher
    in between    on the straight line from the epoch before, and called interpolated
    by epoch 1    an upper bound, and called one: of what was before it nothing is known
    time          the epochs' own times up to there, without evaluation, startup and loading; none of a run that was
                  resumed, because a part of it was computed twice
    phase         the first alone, as for curves and throughputs: fine-tuning trains other weights at another pace

Over the repeats, median and interval, where every run reaches it; where some do not, how many do is all that is said:
a median of those that did would be too good.

Where no target is given, it is the highest accuracy that every run reached which learned at all, rounded down to a
tenth of a point: every point then has figures, and the target owes nothing to a choice of ours.
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
    """Where one run reaches a target."""

    epochs: float
    steps: float
    samples: float
    time_s: float | None
    """None for a run that was resumed."""
    interpolated: bool
    at_most: bool


def target_crossing(run: RunResult, accuracy: float) -> TargetCrossing | None:
    """Where the first phase of a run first has this validation accuracy; None where it never does."""
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
    """How much of an epoch passes until the line from the one before meets the target."""
    if before is None or before.validation_accuracy is None:
        return 1.0
    start = before.validation_accuracy
    return (accuracy - start) / (reached - start) if math.isfinite(start) else 1.0


def target(runs: Sequence[RunResult], accuracy: float, *, processes: int) -> Target | None:
    """What a point takes to a target; None where no run has a validation accuracy."""
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
    """Samples to the target by number of the run; nothing unless all reach it after their first epoch.

    Within the first epoch there is no line to read them from: a ratio of two upper bounds says nothing.
    """
    found = {run.run: target_crossing(run, accuracy) for run in runs}
    known = {run: each.samples for run, each in found.items() if each is not None and not each.at_most}
    return known if len(known) == len(found) else {}


def chosen_target(runs: Mapping[str, Sequence[RunResult]], failed: Mapping[str, set[int]]) -> float | None:
    """The target that the runs themselves suggest; None where there is no validation accuracy.

    `failed` names, by point, the runs that diverged or are dead: they would pull it down to chance.
    """
    best = [
        max(accuracies)
        for point_id, own in runs.items()
        for run in own
        if run.run not in failed.get(point_id, set()) and (accuracies := _accuracies(run))
    ]
    if not best:
        return None
    # The small addition undoes a binary fraction just below a tenth of a point: that is then the target itself.
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
