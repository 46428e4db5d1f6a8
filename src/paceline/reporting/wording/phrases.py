"""Parts of sentences: an interval in brackets, a mean with its deviation, names in a row."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.records.results import Interval, Spread, StudyResults
from paceline.reporting.cells import spread_cell
from paceline.reporting.wording.choice import shared_epoch
from paceline.units import count_text, number_text

_MOST_LABELS = 4

LAW_NAMES = {"amdahl": "Amdahl's law", "gustafson": "Gustafson's law", "usl": "Universal Scalability Law"}


def interval_phrase(interval: Interval, digits: int = 3) -> str:
    """`(interval 1.83 to 1.91)`, and a range called a range."""
    if interval.n == 1:
        return "(1 run, no interval)"
    low, high = number_text(interval.low, digits), number_text(interval.high, digits)
    if interval.coverage is None:
        return f"(range {low} to {high})"
    return f"(interval {low} to {high})"


def times_text(ratio: Interval) -> str:
    """`1.88 times`."""
    return f"{number_text(ratio.median)} times"


def rate_text(samples_per_s: Interval) -> str:
    """`1,216 samples/s`."""
    return f"{number_text(samples_per_s.median, 4)} samples/s"


def spread_text(spread: Spread) -> str:
    """A mean fraction and its standard deviation in per cent, to the digits that the deviation leaves certain."""
    return spread_cell(spread).text


def listed(items: Sequence[str]) -> str:
    """`a, b and c`; with semicolons where a name has a comma of its own."""
    if len(items) < 2:
        return "".join(items)
    comma = "; " if any("," in item for item in items) else ", "
    return f"{comma.join(items[:-1])} and {items[-1]}"


def joined(items: Sequence[str]) -> str:
    """`a 1.2 times, b 1.1 times`; with semicolons where an item has a comma of its own."""
    return ("; " if any("," in item for item in items) else ", ").join(items)


def labels_text(labels: Sequence[str]) -> str:
    """Points by their names, `4 ranks, flat; 8 ranks, flat`; only their number where such names would fill lines."""
    if not any("," in label for label in labels):
        return ", ".join(labels)
    return "; ".join(labels) if len(labels) <= _MOST_LABELS else f"{len(labels)} points"


def shared_epoch_note(results: StudyResults) -> str:
    """That an epoch shows strong scaling though the batch grows with the ranks; empty where that is not so."""
    samples = shared_epoch(results)
    if samples is None:
        return ""
    return (
        f"An epoch has the same {count_text(samples)} samples at every point: over ranks it is strong scaling, and its "
        "speed-up that of the samples/s. The batch grows with the ranks, so a step is weak scaling."
    )


def factor_heading(path: str) -> str:
    """A setting as a heading: `run.strategy` is `strategy`, `train.batch_global` is `batch global`."""
    return "model" if path == "model.name" else path.split(".", 1)[1].replace("_", " ")


def parameters_text(results: StudyResults) -> str:
    """Number of the model's parameters; a dash if no run recorded it."""
    return count_text(next((point.parameters for point in results.points if point.parameters), None))
