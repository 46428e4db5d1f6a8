"""Which of our figures belongs under a heading of a published table, or why there is none.

    load_s, epoch_s, total_s           of a point: medians over repeats with their interval
    update_s                           comm-wait + comm-transfer + optimizer, a step's share, likewise (updates.py)
    test_accuracy, test_loss           means over repeats with their standard deviation
    first_accuracy, trainable          of the first phase: before fine-tuning began
    one_epoch_s, train_accuracy, ...   of the epoch that a row is about, over repeats
    phase_s, phase_test_accuracy       of that epoch, or of the test after the last
    epochs_to_stable                   the first epoch from which validation stays within its noise of its plateau
    ..._percent                        of the point that stands for the row's baseline
    setting:PATH                       what the point was set to

A time is of the training alone where that was published in per cent: starting processes would hide what is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from paceline.analyze.learning.stable import COVERAGE as STABLE_COVERAGE
from paceline.analyze.stats.intervals import median_interval, ratio_interval, scaled, spread
from paceline.published.matching.row_points import setting_value
from paceline.published.matching.updates import MEASURE as UPDATE
from paceline.published.records import MeasuredCell
from paceline.records.results import Curve, Effect, Interval, Percent, PhaseResult, PointResult, Spread
from paceline.records.run import Epoch
from paceline.units import finite


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """A point that is looked at for one row."""

    point: PointResult
    epoch: int | None = None
    """As in PublishedRow."""
    baseline: PointResult | None = None
    """Of a row in per cent."""
    effect: Effect | None = None
    """The point against that baseline, where the study's design has already compared them."""
    update_s: Interval | None = None
    """What an update takes there (updates.py); None where its runs do not show it."""


def measured_cell(measure: str, column: str, looked: MeasuredPoint) -> MeasuredCell:
    """The figure of a measure, under this column's name; or the cell that says why there is none."""
    kind, _, path = measure.partition(":")
    found = setting_value(looked.point.point, path) if kind == "setting" else _MEASURES[kind](looked)
    if isinstance(found, _None):
        return MeasuredCell(column=column, reason=found.why, point_id=looked.point.point_id)
    if found is None:
        return MeasuredCell(column=column, reason=_UNMEASURED.why, point_id=looked.point.point_id)
    return _cell(column, found, looked.point)


@dataclass(frozen=True, slots=True)
class _None:
    """Why there is no figure, in a sentence."""

    why: str


_Found = Interval | Spread | float | int | str | bool | _None | None
_UNMEASURED = _None("Not measured.")


def _cell(column: str, found: Interval | Spread | float | int | str | bool, point: PointResult) -> MeasuredCell:
    if isinstance(found, Interval):
        if finite(found.median) is None:
            return MeasuredCell(column=column, reason="Not a finite number.", point_id=point.point_id)
        return MeasuredCell(
            column=column,
            value=found.median,
            low=finite(found.low),
            high=finite(found.high),
            coverage=found.coverage,
            n=found.n,
            point_id=point.point_id,
        )
    if isinstance(found, Spread):
        if finite(found.mean) is None:
            return MeasuredCell(column=column, reason="Not a number: the training diverged.", point_id=point.point_id)
        return MeasuredCell(column=column, value=found.mean, std=finite(found.std), n=found.n, point_id=point.point_id)
    return MeasuredCell(column=column, value=found, n=1, point_id=point.point_id)


def _epochs(looked: MeasuredPoint) -> list[Epoch]:
    """The row's epoch, of every run that reached it."""
    wanted = looked.epoch
    return [epoch for curve in looked.point.curves for epoch in curve.epochs if epoch.epoch == wanted]


def _of_epoch(value: Callable[[Epoch], float | None]) -> Callable[[MeasuredPoint], _Found]:
    def figure(looked: MeasuredPoint) -> _Found:
        if looked.epoch == 0:
            return _None("The test after the last epoch trains nothing.")
        found = [known for epoch in _epochs(looked) if (known := value(epoch)) is not None]
        return spread(found) if found else _None(f"Not trained as far as epoch {looked.epoch}.")

    return figure


def _one_epoch_s(looked: MeasuredPoint) -> _Found:
    times = [epoch.epoch_s for epoch in _epochs(looked)]
    return median_interval(times) if times else _None(f"Not trained as far as epoch {looked.epoch}.")


def _phase_s(looked: MeasuredPoint) -> _Found:
    """Time of the row's epoch, or of the test after the last."""
    if looked.epoch != 0:
        return _one_epoch_s(looked)
    test_s = looked.point.phases[-1].test_s if looked.point.phases else None
    return test_s or _None("Its runs are from before the test was timed.")


def _phase_test_accuracy(looked: MeasuredPoint) -> _Found:
    return looked.point.test_accuracy if looked.epoch == 0 else _None("The test is made after the last epoch.")


def _last(value: Callable[[Epoch], float | None], why: str) -> Callable[[MeasuredPoint], _Found]:
    def figure(looked: MeasuredPoint) -> _Found:
        ends = [value(curve.epochs[-1]) for curve in looked.point.curves if curve.epochs]
        found = [end for end in ends if end is not None]
        return spread(found) if found else _None(why)

    return figure


def _epochs_to_stable(looked: MeasuredPoint) -> _Found:
    stable = looked.point.learning.stable if looked.point.learning else None
    if stable is None:
        return _None("There is no validation set.")
    if stable.epoch is None:
        why = stable.why.rstrip(".") or "Not stable within the epochs that were trained"
        return _None(f"{why[0].upper()}{why[1:]}.")
    # An end that lies beyond the epochs that were trained is no number: the cell has none.
    high = math.inf if stable.high is None else stable.high
    return Interval(median=stable.epoch, low=stable.low or 1, high=high, n=stable.runs, coverage=STABLE_COVERAGE)


def _of_first_phase(
    value: Callable[[PhaseResult], _Found], otherwise: Callable[[PointResult], _Found]
) -> Callable[[MeasuredPoint], _Found]:
    """A figure of what was published before fine-tuning began; `otherwise` in results that know of no phases."""

    def figure(looked: MeasuredPoint) -> _Found:
        phases = looked.point.phases
        return value(phases[0]) if phases else otherwise(looked.point)

    return figure


def _deviation(accuracy: Spread | None) -> _Found:
    return _None("One run alone has no spread.") if accuracy is None or accuracy.std is None else accuracy.std


def _quotient(own: Spread | None, other: Spread | None) -> _Found:
    """One mean in per cent of another; its standard deviation as if the two were independent."""
    if own is None or other is None or not finite(other.mean) or finite(own.mean) is None:
        return _UNMEASURED
    percent = 100 * own.mean / other.mean
    if own is other:
        return Spread(mean=percent, std=None, n=own.n)
    parts = [side.std / side.mean for side in (own, other) if side.std is not None and side.mean]
    std = abs(percent) * math.sqrt(sum(part * part for part in parts)) if len(parts) == 2 else None
    return Spread(mean=percent, std=std, n=min(own.n, other.n))


def _percent(name: str, otherwise: Callable[[PointResult, PointResult], _Found]) -> Callable[[MeasuredPoint], _Found]:
    def figure(looked: MeasuredPoint) -> _Found:
        if looked.baseline is None:
            return _None("The point that stands for the baseline was not run.")
        compared: Percent | None = getattr(looked.effect, name, None)
        return compared.interval if compared else otherwise(looked.point, looked.baseline)

    return figure


def time_percent(point: PointResult, baseline: PointResult) -> Interval | None:
    """Time of all epochs in per cent of the baseline's, paired by repeat; None where one of them has no such time."""
    own, other = _training_s(point.curves), _training_s(baseline.curves)
    if not own or not other:
        return None
    numbers = sorted(own.keys() | other.keys())
    return scaled(ratio_interval([own.get(n) for n in numbers], [other.get(n) for n in numbers]), 100.0)


def _training_s(curves: Iterable[Curve]) -> dict[int, float]:
    """Time of all epochs by number of the run; none of a run that was resumed, a part of which was computed twice."""
    whole = [curve for curve in curves if curve.epochs and not any(epoch.resumed for epoch in curve.epochs)]
    return {curve.run: math.fsum(epoch.epoch_s for epoch in curve.epochs) for curve in whole}


_NO_VALIDATION = "There is no validation set."
_MEASURES: dict[str, Callable[[MeasuredPoint], _Found]] = {
    "load_s": lambda looked: looked.point.load_s,
    UPDATE: lambda looked: looked.update_s or _None("The spans of its runs do not show the exchange."),
    "epoch_s": lambda looked: looked.point.epoch_s or _None("No whole epoch was timed."),
    "total_s": lambda looked: looked.point.total_s,
    "test_loss": lambda looked: looked.point.test_loss,
    "test_accuracy": lambda looked: looked.point.test_accuracy,
    "first_accuracy": _of_first_phase(lambda phase: phase.test_accuracy, lambda point: point.test_accuracy),
    "first_accuracy_std": _of_first_phase(
        lambda phase: _deviation(phase.test_accuracy), lambda point: _deviation(point.test_accuracy)
    ),
    "one_epoch_s": _one_epoch_s,
    "train_accuracy": _of_epoch(lambda epoch: epoch.train_accuracy),
    "train_loss": _of_epoch(lambda epoch: epoch.train_loss),
    "phase_s": _phase_s,
    "phase_test_accuracy": _phase_test_accuracy,
    "final_training": _last(lambda epoch: epoch.train_accuracy, "No epoch was finished."),
    "final_validation": _last(lambda epoch: epoch.validation_accuracy, _NO_VALIDATION),
    "epochs_to_stable": _epochs_to_stable,
    "parameters": lambda looked: looked.point.parameters,
    "trainable": _of_first_phase(lambda phase: phase.trainable, lambda point: None),
    "loss_percent": _percent("loss_pct", lambda own, other: _quotient(own.test_loss, other.test_loss)),
    "accuracy_percent": _percent("accuracy_pct", lambda own, other: _quotient(own.test_accuracy, other.test_accuracy)),
    "time_percent": _percent("time_pct", time_percent),
}
