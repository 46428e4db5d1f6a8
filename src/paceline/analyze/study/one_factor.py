"""One factor at a time: every value of every factor in per cent of the baseline.

    baseline    the point with the first value of every factor
    effect      test loss, test accuracy and training time of a point that differs in one factor, in % of the baseline
    real        significant by Student's test of the log ratios within repeats, corrected by Holm's method over all
                effects on the same metric; and the interval of the ratios excludes 100

Repeats of two points with the same number have the same seed and are close in time: common effects cancel in the ratios
within each repeat. Times are rarely normal, so the interval is required as well: with five repeats, all must lie on
one side.

Only the time of a failed run is compared if most runs of its point learn.

Assumes: logarithms of the ratios are about normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from paceline.analyze.learning.faults import learning_runs
from paceline.analyze.stats.equivalence import LEVEL, paired
from paceline.analyze.stats.intervals import FEWEST_FOR_INTERVAL, ratio_interval, scaled
from paceline.analyze.stats.two_samples import holm
from paceline.records.results import Effect, Interval, Percent
from paceline.records.run import RunResult
from paceline.records.study import Point, Study, factor_value

RANKS = "run.ranks"
_WHOLE = Percent(interval=Interval(median=100.0, low=100.0, high=100.0, n=0, coverage=None), p=None, real=False)
_FIGURES: dict[str, Callable[[RunResult], float | None]] = {
    "loss_pct": lambda run: run.test_loss,
    "accuracy_pct": lambda run: run.test_accuracy,
    "time_pct": lambda run: training_time_s(run),
}


def effects(study: Study, points: Sequence[Point], runs: Mapping[str, Sequence[RunResult]]) -> tuple[Effect, ...]:
    """Effects of all values of all factors; empty for other designs, or without runs of the baseline."""
    if study.design != "one-at-a-time":
        return ()
    factors = factors_of(study)
    found = {place: point for point in points if (place := _place(point, factors)) is not None}
    baseline = next((point for point in points if _is_baseline(point, factors)), None)
    if baseline is None or not runs[baseline.point_id]:
        return ()
    made = [
        _effect(path, value, found.get((path, value), baseline), baseline, runs)
        for path, values in factors.items()
        for value in values
        if value == values[0] or (path, value) in found
    ]
    return tuple(_corrected(made))


def factors_of(study: Study) -> dict[str, tuple[object, ...]]:
    """Path of each factor, ranks included -> values, the baseline's first."""
    ranks = {RANKS: study.run.ranks} if len(study.run.ranks) > 1 else {}
    return {**study.vary, **ranks}


def training_time_s(run: RunResult) -> float | None:
    """Seconds of all epochs of a run without evaluation, or of a whole script; None for a resumed run."""
    if run.resumed_from_step is not None:
        return None
    return sum(epoch.epoch_s for epoch in run.epochs) if run.epochs else run.total_s


def _setting(point: Point, path: str) -> object:
    return point.ranks if path == RANKS else factor_value(point, path)


def _is_baseline(point: Point, factors: Mapping[str, tuple[object, ...]]) -> bool:
    # None: the point's strategy or model does not have the setting.
    return all(_setting(point, path) in (values[0], None) for path, values in factors.items())


def _place(point: Point, factors: Mapping[str, tuple[object, ...]]) -> tuple[str, object] | None:
    """The factor in which a point differs from the baseline, and its value; None for the baseline."""
    for path, values in factors.items():
        if (value := _setting(point, path)) in values[1:]:
            return path, value
    return None


def _effect(path: str, value: object, point: Point, baseline: Point, runs: Mapping[str, Sequence[RunResult]]) -> Effect:
    is_baseline = point is baseline
    own, others = runs[point.point_id], runs[baseline.point_id]
    sound = learning_runs(own), learning_runs(others)
    figures = {
        name: _percent(*((own, others) if name == "time_pct" else sound), figure, is_baseline=is_baseline)
        for name, figure in _FIGURES.items()
    }
    assert value is None or isinstance(value, str | int | float | bool)
    return Effect(factor=path, value=value, is_baseline=is_baseline, point_id=point.point_id, **figures)


def _percent(
    own: Sequence[RunResult],
    baseline: Sequence[RunResult],
    figure: Callable[[RunResult], float | None],
    *,
    is_baseline: bool,
) -> Percent | None:
    """A metric in % of the baseline, not yet corrected; None if a side has no positive value."""
    here, there = _known(own, figure), _known(baseline, figure)
    if not here or not there:
        return None
    if is_baseline:
        return replace(_WHOLE, interval=replace(_WHOLE.interval, n=len(there)))
    numbers = sorted(here.keys() | there.keys())
    interval = scaled(ratio_interval([here.get(n) for n in numbers], [there.get(n) for n in numbers]), 100.0)
    return Percent(interval=interval, p=_p(here, there), real=False)


def _known(runs: Iterable[RunResult], figure: Callable[[RunResult], float | None]) -> dict[int, float]:
    """Positive finite values by number of the run."""
    values = {run.run: figure(run) for run in runs}
    return {number: value for number, value in values.items() if value is not None and 0 < value < math.inf}


def _p(own: Mapping[int, float], other: Mapping[int, float]) -> float | None:
    """p-value of Student's test of the log ratios within repeats; None below five repeats."""
    logs = [math.log(own[number] / other[number]) for number in sorted(own.keys() & other.keys())]
    return paired(logs, 0.0).p_different if len(logs) >= FEWEST_FOR_INTERVAL else None


def _corrected(found: Sequence[Effect]) -> list[Effect]:
    """The effects with p-values corrected per metric, and their significance."""
    made = list(found)
    for name in _FIGURES:
        tested = [index for index, effect in enumerate(made) if getattr(getattr(effect, name), "p", None) is not None]
        for index, p in zip(tested, holm([getattr(made[index], name).p for index in tested]), strict=True):
            percent = getattr(made[index], name)
            inside = percent.interval.low <= 100 <= percent.interval.high
            made[index] = replace(made[index], **{name: replace(percent, p=p, real=p <= LEVEL and not inside)})
    return made
