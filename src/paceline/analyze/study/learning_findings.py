"""Findings about learning: failed runs, accuracy that falls with ranks or batch, overfitting, gradient noise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from paceline.analyze.learning.faults import DEAD, DIVERGED
from paceline.analyze.study.measured import Measured
from paceline.records.finding import Finding
from paceline.records.learning import AccuracyCheck, NoiseScale
from paceline.records.results import PointResult
from paceline.records.run import RunResult
from paceline.records.study import Point

WORTH = 0.5
"""Sample efficiency below which a batch is beyond the noise scale."""
FINISHED = 0.9
"""Progress from which a schedule counts as finished."""


def diverged(measured: Measured) -> Finding | None:
    """Runs with a loss that is not finite."""
    values, points = _faults(measured, DIVERGED)
    if not values:
        return None
    advice = _smaller_steps([row.point for row in measured.rows], points)
    return Finding(code="diverged", severity="error", values={**values, "advice": advice}, points=points)


def _smaller_steps(points: Sequence[Point], diverged: Collection[str]) -> tuple[str, ...]:
    """Overrides that reduce the step size: not yet used by the diverged points, and valid for all points."""
    ways = []
    if any(point.train.recipe != "scale" for point in points if point.point_id in diverged):
        ways.append("train.recipe=scale")
    if not any(point.servers for point in points):  # a server has a part of the gradient only: no norm
        ways.append("train.clip_norm=1")
    return tuple(ways)


def dead_network(measured: Measured) -> Finding | None:
    """Runs that ended at chance."""
    values, points = _faults(measured, DEAD)
    return Finding(code="dead-network", severity="error", values=values, points=points) if values else None


def accuracy_falls(measured: Measured) -> Finding | None:
    """Points with a test accuracy significantly below that of their reference, by more than the margin.

    Not in a study of one factor at a time, which has a table of effects.
    """
    if measured.one_at_a_time:
        return None
    fallen = [check for check in measured.lesson.checks if check.different and check.difference < 0 and not check.equal]
    if not fallen:
        return None
    worst = min(fallen, key=lambda check: check.difference)
    labels = {row.point_id: row.label for row in measured.rows}
    return Finding(
        code="accuracy-falls",
        severity="warning",
        values={
            "found": len(fallen),
            "points": len(measured.rows),
            "worst": labels[worst.point_id],
            "against": labels[worst.against],
            "check": worst,
            **_why_it_falls(measured, worst),
        },
        points=tuple(check.point_id for check in fallen),
    )


def _why_it_falls(measured: Measured, check: AccuracyCheck) -> dict[str, Any]:
    """The most likely cause of a lower accuracy (`why`), with its values."""
    rows = {row.point_id: row for row in measured.rows}
    own, other = rows[check.point_id].point, rows[check.against].point
    more_ranks = own.ranks > other.ranks
    ratio = check.batch_ratio if check.batch_ratio is not None and check.batch_ratio > 1 else None
    if own.train.epochs_rule != "none" and more_ranks:
        return {"why": "fewer-epochs", "batch_ratio": ratio}
    if ratio:
        scaled = own.train.recipe == "scale"
        return {
            "why": "larger-batch",
            "batch_ratio": ratio,
            "scaled": scaled,
            "same_rate": not scaled and own.train.lr_rule == "none",
        }
    if own.strategy != other.strategy:
        return {"why": "strategy", "strategies": (own.strategy, other.strategy)}
    return {"why": "more-ranks" if more_ranks else "settings"}


def overfitting(measured: Measured) -> Finding | None:
    """Points whose validation loss rises while training loss keeps falling."""
    turned = [(row, row.learning.turn) for row in measured.rows if row.learning and row.learning.turn]
    if not turned:
        return None
    row, worst = max(turned, key=lambda pair: pair[1].rise)
    return Finding(
        code="overfitting",
        severity="info",
        values={"found": len(turned), "points": len(measured.rows), "worst": row.label, "turn": worst},
        points=tuple(row.point_id for row, _ in turned),
    )


def _faults(measured: Measured, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Values of a finding about runs with this fault, and their points; both empty if there are none."""
    found = [
        (row, fault) for row in measured.rows if row.learning for fault in row.learning.faults if fault.name == name
    ]
    if not found:
        return {}, ()
    row, first = found[0]
    values = {"found": len(found), "runs": len(measured.all_runs), "label": row.label, "first": first}
    return values, tuple(dict.fromkeys(row.point_id for row, _ in found))


def batch_beyond_noise(measured: Measured) -> Finding | None:
    """Points whose global batch exceeds the whole interval of the noise scale."""
    beyond = [(row, noise) for row in measured.rows if (noise := _beyond(row)) is not None]
    if not beyond:
        return None
    worst, noise = min(beyond, key=lambda pair: pair[1].efficiency or 0.0)
    return Finding(
        code="batch-beyond-noise",
        severity="info",
        values={
            "found": len(beyond),
            "points": len(measured.rows),
            "worst": worst.label,
            "batch": worst.point.batch_global,
            "noise": noise,
        },
        points=tuple(row.point_id for row, _ in beyond),
    )


def schedule_unfinished(measured: Measured) -> Finding | None:
    """AdaScale runs that ended before the learning-rate schedule was finished."""
    short = {row.point_id: (row, min(found)) for row in measured.rows if (found := _progress(measured, row))}
    short = {point_id: pair for point_id, pair in short.items() if pair[1] < FINISHED}
    if not short:
        return None
    worst, progress = min(short.values(), key=lambda pair: pair[1])
    return Finding(
        code="schedule-unfinished",
        severity="warning",
        values={"found": len(short), "points": len(measured.rows), "worst": worst.label, "progress": progress},
        points=tuple(short),
    )


def _beyond(row: PointResult) -> NoiseScale | None:
    noise = row.learning.noise if row.learning else None
    return noise if noise and noise.efficiency_high is not None and noise.efficiency_high < WORTH else None


def _progress(measured: Measured, row: PointResult) -> list[float]:
    """AdaScale's progress in each run of a point, as a fraction of the steps."""
    found = map(_progress_of, measured.runs[row.point_id])
    return [progress for progress in found if progress is not None]


def _progress_of(run: RunResult) -> float | None:
    """Progress at the end of the first phase; None without AdaScale, or without a measurement in the last epoch."""
    last = next((epoch for epoch in reversed(run.epochs) if epoch.phase == "train"), None)
    noise = next((noise for noise in run.noise if last is not None and noise.epoch == last.epoch), None)
    return noise.progress / last.step if last and noise and noise.progress is not None else None
