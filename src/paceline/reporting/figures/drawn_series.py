"""Numbers that are drawn: ledgers, learning curves, test accuracies. None stands where nothing was measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.records.learning import Band
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Curve, PointResult, StudyResults
from paceline.reporting.tables.point_tables import MOST_RANKS
from paceline.reporting.wording.choice import short_name
from paceline.reporting.wording.learning_words import check_is_of_fewer, tested
from paceline.reporting.wording.phrases import spread_text
from paceline.units import counted, duration_text, finite

_MOST_TESTED = 24
"""Points of one plot, below one another: of more, a table is easier to read."""


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
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    """Interval of the mean at the first so many epochs; empty with fewer than five runs that are whole and finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracies:
    """Test accuracies of points in per cent, in the study's order."""

    labels: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    stds: tuple[float | None, ...] = ()
    """None where there is one run."""
    texts: tuple[str, ...] = ()
    called: tuple[bool, ...] = ()
    """Whether the repeats call it different from the reference."""
    reference: int | None = None
    """The row that all others are compared with, where it is the same one for all."""
    fewer: bool = False
    """Whether runs that learned nothing are in these means, and were not compared."""


def point_ledger(points: Sequence[PointResult], names: Mapping[str, str] | None = None) -> Ledger:
    """One bar per point: its median run, mean over ranks; `names` by point_id stand in place of its settings."""
    shown = [(point, point.ledger_s) for point in points if point.ledger_s]
    labels = [_bar_label(point, ledger, (names or {}).get(point.point_id, "")) for point, ledger in shown]
    return _ledger(labels, [ledger for _, ledger in shown])


def _bar_label(point: PointResult, ledger_s: dict[str, float | None], name: str) -> str:
    """Two lines that tell a bar from the others: `2 ranks` and its time, or `flat` and `2 ranks, 14.2 s`."""
    ranks, length = counted(point.point.ranks, "rank"), duration_text(_whole_s(ledger_s))
    if name:
        return f"{name}<br>{length}"
    return f"{point.series}<br>{ranks}, {length}" if point.series else f"{point.label}<br>{length}"


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


def learning_curves(points: Sequence[PointResult]) -> tuple[LearningCurve, ...]:
    """Loss and accuracy, in training and in validation, of every point that has curves."""
    curves = (
        _learning_curve(point, measure, part)
        for measure in ("loss", "accuracy")
        for point in points
        for part in ("train", "validation")
    )
    return tuple(curve for curve in curves if any(value is not None for run in curve.runs for value in run))


def _learning_curve(point: PointResult, measure: str, part: str) -> LearningCurve:
    last = max((epoch.epoch for curve in point.curves for epoch in curve.epochs), default=0)
    runs = tuple(_values(curve, f"{part}_{measure}", last) for curve in point.curves)
    band = _band(point, measure, part)
    return LearningCurve(
        label=point.label,
        measure=measure,
        part=part,
        epochs=tuple(range(1, last + 1)),
        runs=runs,
        # Over the same runs at every epoch: otherwise a run that ended early would bend the line.
        mean=tuple(_mean(column) for column in zip(*runs, strict=True)),
        low=band.low if band else (),
        high=band.high if band else (),
    )


def _band(point: PointResult, measure: str, part: str) -> Band | None:
    """The interval of a curve's mean, where it is that of all its runs."""
    bands = point.learning.bands if point.learning else ()
    named = (band for band in bands if (band.measure, band.part) == (measure, part))
    return next((band for band in named if band.n == len(point.curves)), None)


def _values(curve: Curve, name: str, last: int) -> tuple[float | None, ...]:
    by_epoch = {epoch.epoch: finite(getattr(epoch, name)) for epoch in curve.epochs}
    return tuple(by_epoch.get(number) for number in range(1, last + 1))


def _mean(column: tuple[float | None, ...]) -> float | None:
    present = [value for value in column if value is not None]
    return statistics.fmean(present) if len(present) == len(column) else None


def accuracies(results: StudyResults) -> Accuracies:
    """What there is to draw; nothing where fewer than two points were tested."""
    known = tested(results)
    if not 2 <= len(known) <= _MOST_TESTED:
        return Accuracies()
    checks = results.lesson.checks
    different = {check.point_id for check in checks if check.different}
    against = {check.against for check in checks}
    return Accuracies(
        labels=tuple(short_name(results, point) for point, _ in known),
        means=tuple(100 * spread.mean for _, spread in known),
        stds=tuple(None if (std := finite(spread.std)) is None else 100 * std for _, spread in known),
        texts=tuple(spread_text(spread) for _, spread in known),
        called=tuple(point.point_id in different for point, _ in known),
        reference=next((n for n, (p, _) in enumerate(known) if {p.point_id} == against), None),
        fewer=any(check_is_of_fewer(results, check) for check in checks),
    )
