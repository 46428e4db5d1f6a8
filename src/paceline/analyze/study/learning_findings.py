"""Findings about learning: runs that do not learn, accuracy that falls with ranks or batch, overfitting."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from paceline.analyze.learning.faults import DEAD, DIVERGED
from paceline.records.finding import Finding
from paceline.records.learning import AccuracyCheck

if TYPE_CHECKING:
    from paceline.analyze.study.measured import Measured
    from paceline.records.study import Point


def diverged(measured: Measured) -> Finding | None:
    """Runs whose loss is no longer a number."""
    values, points = _faults(measured, DIVERGED)
    if not values:
        return None
    advice = _smaller_steps([row.point for row in measured.rows], points)
    return Finding(code="diverged", severity="error", values={**values, "advice": advice}, points=points)


def _smaller_steps(points: Sequence[Point], diverged: Collection[str]) -> tuple[str, ...]:
    """Overrides that make steps smaller: those that the diverged points lack and a study of all points accepts."""
    ways = []
    if any(point.train.recipe != "scale" for point in points if point.point_id in diverged):
        ways.append("train.recipe=scale")
    if not any(point.servers for point in points):  # each sees a part of the gradient, and none its length
        ways.append("train.clip_norm=1")
    return tuple(ways)


def dead_network(measured: Measured) -> Finding | None:
    """Runs that ended where guessing would have."""
    values, points = _faults(measured, DEAD)
    return Finding(code="dead-network", severity="error", values=values, points=points) if values else None


def accuracy_falls(measured: Measured) -> Finding | None:
    """Points whose test accuracy is lower than their reference's, by the test over repeats and by the margin.

    Not one factor at a time, where a lower accuracy is what was asked about.
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
    """What differs between two points whose accuracy does: `why` is the one thing to change first."""
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
    """Points whose validation loss turns while training loss goes on falling."""
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
    """How many runs have a fault of this name with the first of them, and their points; both empty where none has."""
    found = [
        (row, fault) for row in measured.rows if row.learning for fault in row.learning.faults if fault.name == name
    ]
    if not found:
        return {}, ()
    row, first = found[0]
    values = {"found": len(found), "runs": len(measured.all_runs), "label": row.label, "first": first}
    return values, tuple(dict.fromkeys(row.point_id for row, _ in found))
