"""Faults of runs that do not learn, from a finished run or from one epoch of a running one.

    diverged    a loss that is not finite
    dead        loss ln(classes) and accuracy 1 / classes, as by guessing

A network with the same output for every input has the loss ln(classes) if classes are balanced. Causes besides dead
units: a learning rate that is too high or far too low, wrongly scaled inputs, shuffled labels.

Assumes: classes are about balanced. If one class dominates, a dead network is not detected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from paceline.records.finding import Note
from paceline.records.learning import Fault
from paceline.records.results import PointResult
from paceline.records.run import Epoch, RunResult

DIVERGED, DEAD = "diverged", "dead"
LOSS_AT_CHANCE = 0.02
"""Largest distance of a loss at chance below ln(classes), as a fraction of it."""
ACCURACY_AT_CHANCE = (1.5, 0.05)
"""Largest accuracy at chance: as a multiple of 1 / classes, and as a difference to it."""


def run_fault(run: RunResult) -> Fault | None:
    """The fault of a finished run, with its first epoch; None if it has none."""
    for epoch in run.epochs:
        if why := diverged(epoch):
            return Fault(name=DIVERGED, run=run.run, epoch=epoch.epoch, why=why)
    if run.test_loss is not None and not math.isfinite(run.test_loss):
        why = Note(code="test-loss-not-finite", values={"loss": run.test_loss})
        return Fault(name=DIVERGED, run=run.run, epoch=len(run.epochs), why=why)
    # A slow start may be at chance for an epoch or two: the last epoch decides.
    if run.epochs and (why := dead(run.epochs[-1], run.classes)):
        return Fault(name=DEAD, run=run.run, epoch=_dead_since(run), why=why)
    return None


def run_faults(runs: Iterable[RunResult]) -> tuple[Fault, ...]:
    """The faults of all runs of a point."""
    return tuple(fault for run in runs if (fault := run_fault(run)) is not None)


def learning_runs(runs: Sequence[RunResult]) -> list[RunResult]:
    """The runs without a fault if they are the majority, else all runs.

    One failed run among five would hide any difference of a few points. If half of the runs fail, failing is the result
    of the point.
    """
    sound = [run for run in runs if run_fault(run) is None]
    return sound if 2 * len(sound) > len(runs) else list(runs)


def num_excluded(point: PointResult) -> int:
    """Number of runs of a point that `learning_runs` excludes."""
    failed = len({fault.run for fault in point.learning.faults}) if point.learning else 0
    return failed if 2 * failed < point.runs else 0


def diverged(epoch: Epoch) -> Note | None:
    """A note if a loss of this epoch is not finite."""
    for part, loss in (("training", epoch.train_loss), ("validation", epoch.validation_loss)):
        if loss is not None and not math.isfinite(loss):
            return Note(code="loss-not-finite", values={"part": part, "loss": loss, "epoch": epoch.epoch})
    return None


def dead(epoch: Epoch, classes: int | None) -> Note | None:
    """A note if loss and accuracy are at chance, in validation if measured (without dropout), else in training."""
    if not classes or classes < 2:
        return None
    loss, accuracy = epoch.validation_loss, epoch.validation_accuracy
    if loss is None or accuracy is None:
        loss, accuracy = epoch.train_loss, epoch.train_accuracy
    chance, (times, above) = math.log(classes), ACCURACY_AT_CHANCE
    if not math.isfinite(loss):
        return None  # diverged
    if loss < (1 - LOSS_AT_CHANCE) * chance or accuracy > min(times / classes, 1 / classes + above):
        return None
    guessed = {"guessed_loss": chance, "guessed_accuracy": 1 / classes}
    return Note(code="at-chance", values={"epoch": epoch.epoch, "loss": loss, "accuracy": accuracy, **guessed})


def _dead_since(run: RunResult) -> int:
    """The first epoch from which a run stays at chance."""
    since = len(run.epochs)
    while since > 1 and dead(run.epochs[since - 2], run.classes):
        since -= 1
    return run.epochs[since - 1].epoch
