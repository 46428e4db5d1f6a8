"""Runs that do not learn, called by name: from a finished run, and from a single line of its curves while it runs.

    diverged    a loss that is not a finite number
    dead        after the first epoch the loss is ln(classes) and the accuracy 1 / classes: what guessing gives

A network that outputs the same for every input has exactly the loss ln(classes) where classes are even, and its
accuracy is that of one class. Training is at chance for more reasons than dead units: a rate that is too high or far
too low, inputs on another scale than the network was trained on, labels that belong to other images.

Assumes: classes are about even. Where one has nearly all samples, always answering it is better than this guess, and a
dead network is not called so.
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
"""How far below ln(classes), as a fraction of it, a loss still counts as chance."""
ACCURACY_AT_CHANCE = (1.5, 0.05)
"""An accuracy counts as chance up to so many times 1 / classes, and up to so much above it: classes are seldom even."""


def run_fault(run: RunResult) -> Fault | None:
    """What is wrong with a finished run, with the epoch since when it is."""
    for epoch in run.epochs:
        if why := diverged(epoch):
            return Fault(name=DIVERGED, run=run.run, epoch=epoch.epoch, why=why)
    if run.test_loss is not None and not math.isfinite(run.test_loss):
        why = Note(code="test-loss-not-finite", values={"loss": run.test_loss})
        return Fault(name=DIVERGED, run=run.run, epoch=len(run.epochs), why=why)
    # A network that starts slowly is at chance for an epoch or two and learns then: of a whole run, its end tells.
    if run.epochs and (why := dead(run.epochs[-1], run.classes)):
        return Fault(name=DEAD, run=run.run, epoch=_dead_since(run), why=why)
    return None


def run_faults(runs: Iterable[RunResult]) -> tuple[Fault, ...]:
    """The faults of all runs of a point."""
    return tuple(fault for run in runs if (fault := run_fault(run)) is not None)


def learning_runs(runs: Sequence[RunResult]) -> list[RunResult]:
    """The runs whose accuracies speak for their point: all but those that learned nothing, where these are the fewer.

    One run at chance among five that learn would hide any difference of a few points in its own of eighty. Where half
    of them or more are at chance, that is what the point comes to.
    """
    sound = [run for run in runs if run_fault(run) is None]
    return sound if 2 * len(sound) > len(runs) else list(runs)


def num_excluded(point: PointResult) -> int:
    """How many runs of a point `learning_runs` leaves out."""
    failed = len({fault.run for fault in point.learning.faults}) if point.learning else 0
    return failed if 2 * failed < point.runs else 0


def diverged(epoch: Epoch) -> Note | None:
    """That a loss of this epoch is not a finite number."""
    for part, loss in (("training", epoch.train_loss), ("validation", epoch.validation_loss)):
        if loss is not None and not math.isfinite(loss):
            return Note(code="loss-not-finite", values={"part": part, "loss": loss, "epoch": epoch.epoch})
    return None


def dead(epoch: Epoch, classes: int | None) -> Note | None:
    """That loss and accuracy are at chance; of the validation where there is one, which no dropout disturbs."""
    if not classes or classes < 2:
        return None
    loss, accuracy = epoch.validation_loss, epoch.validation_accuracy
    if loss is None or accuracy is None:
        loss, accuracy = epoch.train_loss, epoch.train_accuracy
    chance, (times, above) = math.log(classes), ACCURACY_AT_CHANCE
    if not math.isfinite(loss):
        return None  # that has a name of its own
    if loss < (1 - LOSS_AT_CHANCE) * chance or accuracy > min(times / classes, 1 / classes + above):
        return None
    guessed = {"guessed_loss": chance, "guessed_accuracy": 1 / classes}
    return Note(code="at-chance", values={"epoch": epoch.epoch, "loss": loss, "accuracy": accuracy, **guessed})


def _dead_since(run: RunResult) -> int:
    """The first epoch from which a run is at chance to its end."""
    since = len(run.epochs)
    while since > 1 and dead(run.epochs[since - 2], run.classes):
        since -= 1
    return run.epochs[since - 1].epoch
