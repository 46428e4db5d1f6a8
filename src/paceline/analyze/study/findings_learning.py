"""Findings about learning: runs that do not learn, accuracy that falls with ranks or batch, overfitting."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from paceline.analyze.learning.faults import DEAD, DIVERGED
from paceline.records.finding import Finding
from paceline.records.learning import AccuracyCheck, Fault
from paceline.units import counted, number_text

if TYPE_CHECKING:
    from paceline.analyze.study.findings import Measured
    from paceline.records.results import PointResult
    from paceline.records.study import Point


def diverged(measured: Measured) -> Finding | None:
    """Runs whose loss is no longer a number."""
    faults, points, first = _faults(measured, DIVERGED)
    if first is None:
        return None
    return Finding(
        name="diverged",
        severity="error",
        summary=f"{counted(faults, 'run')} of {len(measured.all_runs)} diverged. {_shown(*first)}.",
        cause="Steps were too large for the loss to come down; times of such a run are real, its accuracy is not.",
        remedy=_smaller_steps([row.point for row in measured.rows], points),
        points=points,
    )


def _smaller_steps(points: Sequence[Point], diverged: Collection[str]) -> str:
    """What makes steps smaller, of what those that diverged do not have yet and a study of all these points accepts."""
    ways = ["Lower the learning rate: --set train.lr=..., or find one with paceline tune lr."]
    if any(point.train.recipe != "scale" for point in points if point.point_id in diverged):
        ways.append("--set train.recipe=scale lets it follow the batch, with a warm-up where that raises it.")
    if not any(point.servers for point in points):  # each sees a part of the gradient, and none its length
        ways.append("--set train.clip_norm=1 bounds single steps.")
    return " ".join(ways)


def dead_network(measured: Measured) -> Finding | None:
    """Runs that ended where guessing would have."""
    faults, points, first = _faults(measured, DEAD)
    if first is None:
        return None
    return Finding(
        name="dead-network",
        severity="error",
        summary=f"{counted(faults, 'run')} of {len(measured.all_runs)} learned nothing. {_shown(*first)}.",
        cause="The output no longer depends on the input: units that a rate too high has switched off, inputs on "
        "another scale than the network expects, a frozen base without its own preprocessing, or labels that belong "
        "to other images.",
        remedy="Find a rate that works: paceline tune lr. For a pretrained network, see that its own preprocessing and "
        "image size are used.",
        points=points,
    )


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
    cause, remedy = _why_it_falls(measured, worst)
    return Finding(
        name="accuracy-falls",
        severity="warning",
        summary=f"Test accuracy is lower at {len(fallen)} of {counted(len(measured.rows), 'point')}: most with "
        f"{labels[worst.point_id]}, by {_points(-worst.difference)} points ({_around(worst)}) against "
        f"{labels[worst.against]}.",
        cause=cause,
        remedy=remedy,
        points=tuple(check.point_id for check in fallen),
    )


def _why_it_falls(measured: Measured, check: AccuracyCheck) -> tuple[str, str]:
    """What differs between two points whose accuracy does, and what to change: one thing at a time."""
    rows = {row.point_id: row for row in measured.rows}
    own, other = rows[check.point_id].point, rows[check.against].point
    more_ranks = own.ranks > other.ranks
    ratio = check.batch_ratio if check.batch_ratio is not None and check.batch_ratio > 1 else None
    larger = f"Its global batch is {number_text(ratio)} times as large"
    if own.train.epochs_rule != "none" and more_ranks:
        cause = "It trains for fewer epochs, because they are divided by the ranks."
        return f"{cause} {larger} besides." if ratio else cause, "Keep the epochs first: --set train.epochs_rule=none."
    if ratio:
        cause = f"{larger}: fewer steps in the same epochs, each with less noise."
        if own.train.recipe != "scale":
            if own.train.lr_rule == "none":
                cause += " The learning rate is the same for both."
            return cause, "Let the rate follow the batch: --set train.recipe=scale."
        return cause, "Train for more epochs, or look for a better rate with paceline tune lr."
    if own.strategy != other.strategy:
        cause = f"The batch is the same, the strategy is not: {own.strategy} against {other.strategy}."
        return cause, "Strategies that average seldom or lose digits change what is learned: compare with ddp."
    if more_ranks:
        cause = "Batch and recipe are the same, so sums of gradients differ in rounding alone: what is left is what "
        cause += "each rank does by itself, such as batch-norm over a smaller share of the batch."
        return cause, "For a model with batch-norm: --set train.sync_batchnorm=true."
    return "The two points differ in what is trained or how.", "Vary one setting at a time to see which it is."


def overfitting(measured: Measured) -> Finding | None:
    """Points whose validation loss turns while training loss goes on falling."""
    turned = [(row, row.learning.turn) for row in measured.rows if row.learning and row.learning.turn]
    if not turned:
        return None
    row, worst = max(turned, key=lambda pair: pair[1].rise)
    return Finding(
        name="overfitting",
        severity="info",
        summary=f"Validation loss turns at {len(turned)} of {counted(len(measured.rows), 'point')}: most with "
        f"{row.label}, where it rises by {number_text(worst.rise)} after about epoch {worst.epoch} while training loss "
        f"falls by {number_text(worst.fall)}; both are more than noise.",
        cause="From there on the network learns its training samples by heart.",
        remedy="Stop earlier, vary the images ([augment]), or add dropout or weight decay.",
        points=tuple(row.point_id for row, _ in turned),
    )


def _faults(measured: Measured, name: str) -> tuple[int, tuple[str, ...], tuple[PointResult, Fault] | None]:
    """How many runs have a fault of this name, their points, and the first of them."""
    found = [
        (row, fault) for row in measured.rows if row.learning for fault in row.learning.faults if fault.name == name
    ]
    points = tuple(dict.fromkeys(row.point_id for row, _ in found))
    return len(found), points, found[0] if found else None


def _shown(row: PointResult, fault: Fault) -> str:
    return f"Run {fault.run} with {row.label}: {fault.text}"


def _points(fraction: float) -> str:
    """A difference of accuracies in points, hundredths of which are the last that a test set of 10,000 has."""
    return f"{100 * fraction:.2f}"


def _around(check: AccuracyCheck) -> str:
    assert check.low is not None and check.high is not None
    return f"interval {_points(-check.high)} to {_points(-check.low)}, {check.n} repeats"
