"""Numbers that are drawn: scaling, ledgers, learning curves. None stands where nothing was measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from paceline.records.results import Curve, Interval, PointResult, StudyResults
from paceline.records.trace import LEDGER_KINDS
from paceline.report.tables import MOST_RANKS, time_unit
from paceline.report.words import baseline
from paceline.units import counted, duration_text, finite, number_text, percent_text


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """One figure over ranks, as measured and as it would be if nothing were lost."""

    ranks: tuple[int, ...]
    measured: tuple[Estimate | None, ...]
    ideal: tuple[float | None, ...]
    crowded: tuple[bool, ...]
    """Points whose ranks had to share cores."""
    around: str
    """What the bars around the points are: intervals, ranges (of fewer than five repeats), or nothing."""
    unit: str
    labels: tuple[str, ...] = ()
    """What stands at each point, where anything does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Seconds by kind, one bar per label."""

    labels: tuple[str, ...]
    kinds: tuple[str, ...]
    seconds: tuple[tuple[float | None, ...], ...]
    """For each kind, one value per label."""
    wholes: tuple[float, ...]
    """The length of each bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurve:
    """One measure of one point over epochs: every run, and their mean."""

    label: str
    measure: str
    """loss or accuracy."""
    part: str
    """train or validation."""
    epochs: tuple[int, ...]
    runs: tuple[tuple[float | None, ...], ...]
    mean: tuple[float | None, ...]
    """None at epochs that a run lacks."""


def speedups(results: StudyResults) -> Scaling:
    """Speed-up over ranks; ideal is the ratio of ranks to the baseline's."""
    base = baseline(results)
    ranks = [point.point.ranks for point in results.points]
    ideal = [n / base.point.ranks if base else None for n in ranks]
    scaling = _scaling(results, [point.speedup for point in results.points], ideal, unit="×")
    return replace(scaling, labels=tuple("" if point is base else _speedup_label(point) for point in results.points))


def _speedup_label(point: PointResult) -> str:
    if point.speedup is None:
        return ""
    share = f"<br>{percent_text(point.efficiency.median, 0)}" if point.efficiency else ""
    return f"{number_text(point.speedup.median)} ×{share}"


def epoch_times(results: StudyResults) -> Scaling:
    """Epoch time over ranks, in the unit of the table; ideal is the baseline's over the ratio of ranks."""
    base = baseline(results)
    ideal: list[float | None] = [None] * len(results.points)
    if base is not None and base.epoch_s is not None:
        ideal = [base.epoch_s.median * base.point.ranks / point.point.ranks for point in results.points]
    unit, factor = time_unit(results.points)
    return _scaling(results, [point.epoch_s for point in results.points], ideal, unit=unit, factor=factor)


def throughputs(results: StudyResults) -> Scaling:
    """Samples per second over ranks; ideal is the baseline's times the ratio of ranks."""
    base = baseline(results)
    ideal: list[float | None] = [None] * len(results.points)
    if base is not None and base.samples_per_s is not None:
        ideal = [base.samples_per_s.median * point.point.ranks / base.point.ranks for point in results.points]
    return _scaling(results, [point.samples_per_s for point in results.points], ideal, unit="samples/s")


def _scaling(
    results: StudyResults,
    measured: list[Interval | None],
    ideal: list[float | None],
    *,
    unit: str,
    factor: float = 1.0,
) -> Scaling:
    return Scaling(
        ranks=tuple(point.point.ranks for point in results.points),
        measured=tuple(_estimate(interval, factor) for interval in measured),
        ideal=tuple(None if value is None else value * factor for value in ideal),
        crowded=tuple(point.oversubscribed for point in results.points),
        around=_around([interval for interval in measured if interval is not None and interval.low < interval.high]),
        unit=unit,
    )


def _around(intervals: list[Interval]) -> str:
    if not intervals:
        return ""
    return "intervals" if all(interval.coverage is not None for interval in intervals) else "ranges"


def _estimate(interval: Interval | None, factor: float) -> Estimate | None:
    if interval is None or finite(interval.median) is None:
        return None
    low, high = (interval.median if finite(end) is None else end for end in (interval.low, interval.high))
    return Estimate(interval.median * factor, low * factor, high * factor)


def point_ledger(results: StudyResults) -> Ledger:
    """One bar per point: its median run, mean over ranks."""
    shown = [(point.point.ranks, point.ledger_s) for point in results.points if point.ledger_s]
    labels = [f"{counted(ranks, 'rank')}<br>{duration_text(_whole_s(ledger))}" for ranks, ledger in shown]
    return _ledger(labels, [ledger for _, ledger in shown])


def rank_ledger(point: PointResult) -> Ledger:
    """One bar per rank of a point's median run, as many as in its table."""
    shown = list(point.rank_ledgers_s[:MOST_RANKS])
    return _ledger([f"rank {rank}" for rank in range(len(shown))], shown)


def _ledger(labels: list[str], ledgers_s: list[dict[str, float | None]]) -> Ledger:
    return Ledger(
        labels=tuple(labels),
        kinds=LEDGER_KINDS,
        seconds=tuple(tuple(finite(ledger.get(kind)) for ledger in ledgers_s) for kind in LEDGER_KINDS),
        wholes=tuple(_whole_s(ledger) for ledger in ledgers_s),
    )


def _whole_s(ledger_s: dict[str, float | None]) -> float:
    return sum(finite(value) or 0.0 for value in ledger_s.values())


def learning_curves(results: StudyResults) -> tuple[LearningCurve, ...]:
    """Loss and accuracy, in training and in validation, of every point that has curves."""
    curves = (
        _learning_curve(point, measure, part)
        for measure in ("loss", "accuracy")
        for point in results.points
        for part in ("train", "validation")
    )
    return tuple(curve for curve in curves if any(value is not None for run in curve.runs for value in run))


def _learning_curve(point: PointResult, measure: str, part: str) -> LearningCurve:
    last = max((epoch.epoch for curve in point.curves for epoch in curve.epochs), default=0)
    runs = tuple(_values(curve, f"{part}_{measure}", last) for curve in point.curves)
    return LearningCurve(
        label=counted(point.point.ranks, "rank"),
        measure=measure,
        part=part,
        epochs=tuple(range(1, last + 1)),
        runs=runs,
        # Over the same runs at every epoch: otherwise a run that ended early would bend the line.
        mean=tuple(_mean(column) for column in zip(*runs, strict=True)),
    )


def _values(curve: Curve, name: str, last: int) -> tuple[float | None, ...]:
    by_epoch = {epoch.epoch: finite(getattr(epoch, name)) for epoch in curve.epochs}
    return tuple(by_epoch.get(number) for number in range(1, last + 1))


def _mean(column: tuple[float | None, ...]) -> float | None:
    present = [value for value in column if value is not None]
    return statistics.fmean(present) if len(present) == len(column) else None
