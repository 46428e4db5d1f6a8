"""`curves.csv` while it grows: the epochs of a run, up to the last complete line."""

from __future__ import annotations

import csv
from dataclasses import fields
from pathlib import Path

from paceline.records.run import Epoch

_WHOLE_NUMBERS = ("epoch", "step", "samples")


def read_epochs(path: Path) -> list[Epoch]:
    """The epochs of a curves file up to the first incomplete line; none if the file is missing or damaged."""
    epochs: list[Epoch] = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                epochs.append(_epoch(line))
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        pass  # only a live view: the result of the run has the final epochs
    return epochs


def _epoch(line: dict[str, str]) -> Epoch:
    """A line as a record; unknown columns are ignored."""
    values: dict[str, object] = {}
    for field in fields(Epoch):
        text = line[field.name]
        if field.name in _WHOLE_NUMBERS:
            values[field.name] = int(text)
        elif field.name == "phase":
            values[field.name] = text
        else:
            values[field.name] = text == "True" if text in ("True", "False") else float(text) if text else None
    return Epoch(**values)  # pyright: ignore[reportArgumentType]
