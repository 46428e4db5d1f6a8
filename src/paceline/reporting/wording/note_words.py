"""The sentences of notes: what is missing from a measurement, what shows a fault, what limits a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paceline.records.finding import Note
from paceline.units import number_text, percent_text

Values = Mapping[str, Any]


def note_text(note: Note) -> str:
    """The sentence, or clause, of a note."""
    return NOTES[note.code](note.values)


def _spans_of_some_ranks(values: Values) -> str:
    sentence = f"Run {values['run']} has the spans of {values['found']} of its {values['ranks']} ranks."
    return " ".join((sentence, *values["problems"]))


def _spans_truncated(values: Values) -> str:
    return f"The spans of run {values['run']} break off on rank {', '.join(map(str, values['broken']))}."


def _at_chance(values: Values) -> str:
    return (
        f"after epoch {values['epoch']} it is at chance: loss {number_text(values['loss'])} (guessing: "
        f"{number_text(values['guessed_loss'])}), accuracy {percent_text(values['accuracy'])} (guessing: "
        f"{percent_text(values['guessed_accuracy'])}): it looks dead"
    )


NOTES: dict[str, Callable[[Values], str]] = {
    # What the spans of a run do not show.
    "spans-unreadable": lambda v: f"The spans of run {v['run']} cannot be read: {v['error']}",
    "no-spans": lambda v: f"Run {v['run']} left no spans.",
    "gpu-step-undivided": lambda _: (
        "On a GPU a step is not divided yet: its forward, backward, communication and optimizer are null."
    ),
    "spans-of-some-ranks": _spans_of_some_ranks,
    "spans-truncated": _spans_truncated,
    "collectives-differ": lambda v: (
        f"Run {v['run']} does not show the same collectives on all of its {v['ranks']} ranks."
    ),
    # Why a run is said not to learn.
    "loss-not-finite": lambda v: f"the {v['part']} loss is {v['loss']} in epoch {v['epoch']}: it diverged",
    "test-loss-not-finite": lambda v: f"the test loss is {v['loss']}: it diverged",
    "at-chance": _at_chance,
}
