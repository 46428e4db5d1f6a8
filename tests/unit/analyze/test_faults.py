"""Runs that do not learn, by name: from real losses of networks that guess, diverge or learn."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from paceline.analyze.learning.faults import dead, diverged, learning_runs, run_fault, run_faults
from paceline.records.finding import Note


@pytest.fixture
def line(epoch):
    def line(number: int = 1, **values):
        return replace(epoch(number, 1.0), **values)

    return line


def not_finite(part: str, loss: float) -> Note:
    return Note(code="loss-not-finite", values={"part": part, "loss": loss, "epoch": 3})


@pytest.mark.parametrize("classes", [2, 10, 102])
def test_guessing_is_called_dead(line, classes: int) -> None:
    at_chance = line(validation_loss=math.log(classes), validation_accuracy=1 / classes)
    note = dead(at_chance, classes)
    assert note is not None and (note.code, note.values["epoch"]) == ("at-chance", 1)
    assert (note.values["loss"], note.values["accuracy"]) == (math.log(classes), 1 / classes)
    assert (note.values["guessed_loss"], note.values["guessed_accuracy"]) == (math.log(classes), 1 / classes)
    assert dead(at_chance, None) is None, "without the number of classes nobody knows"


@pytest.mark.parametrize(
    ("loss", "accuracy", "classes"),
    [
        (2.2, 0.30, 10),  # the first epoch of a network that starts slowly
        (2.30, 0.25, 10),  # small scores that are right: it learns
        (1.0, 0.10, 10),
        (0.69, 0.62, 2),
    ],
)
def test_learning_is_not(line, loss: float, accuracy: float, classes: int) -> None:
    assert dead(line(validation_loss=loss, validation_accuracy=accuracy), classes) is None


def test_without_validation_the_training_counts(line) -> None:
    assert dead(line(train_loss=2.303, train_accuracy=0.099), 10)
    # Dropout and label smoothing raise the training loss: validation has the last word.
    assert not dead(line(train_loss=2.303, train_accuracy=0.1, validation_loss=0.4, validation_accuracy=0.9), 10)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_is_called_diverged(line, loss: float) -> None:
    assert diverged(line(3, train_loss=loss)) == not_finite("training", loss)
    assert diverged(line(3, validation_loss=loss)) == not_finite("validation", loss)
    assert diverged(line()) is None
    assert dead(line(validation_loss=loss, validation_accuracy=0.1), 10) is None, "one name is enough"


def test_a_run_has_the_fault_since_its_first_epoch(run, point, line) -> None:
    guess = {"validation_loss": 2.303, "validation_accuracy": 0.1}
    learns = {"validation_loss": 0.5, "validation_accuracy": 0.8}
    dies = run(point(1), epochs=(line(1, **learns), line(2, **guess), line(3, **guess)), classes=10)
    fault = run_fault(dies)
    assert fault is not None and (fault.name, fault.epoch) == ("dead", 2)
    slow = run(point(1), epochs=(line(1, **guess), line(2, **learns)), classes=10)
    assert run_fault(slow) is None, "it was at chance for an epoch, and learned then"
    lost = run(point(1), 4, epochs=(line(1), line(2, train_loss=math.nan), line(3, train_loss=math.nan)))
    fault = run_fault(lost)
    assert fault is not None and (fault.name, fault.epoch, fault.run) == ("diverged", 2, 4)
    assert [fault.name for fault in run_faults([dies, slow, lost])] == ["dead", "diverged"]


@pytest.mark.parametrize(("asleep", "left"), [(0, 5), (1, 4), (2, 3), (3, 5), (5, 5)])
def test_the_fewer_that_learned_nothing_are_left_out_and_the_many_are_what_it_comes_to(
    line, run, point, asleep: int, left: int
) -> None:
    guess = line(validation_loss=math.log(10), validation_accuracy=0.1)
    learns = line(validation_loss=0.1, validation_accuracy=0.97)
    runs = [run(point(1), n, epochs=(guess if n <= asleep else learns,), classes=10) for n in range(1, 6)]
    found = learning_runs(runs)
    assert len(found) == left
    assert left == 5 or all(one.run > asleep for one in found)
