"""Phases of a training: a table with the test after each, and what is said about fine-tuning and cached features."""

from __future__ import annotations

from paceline.metrics import metric
from paceline.records.results import Gain, PhaseResult, PointResult, StudyResults
from paceline.records.run import CachedFeatures
from paceline.report.cells import Cell, Form, interval_cell, points_cell, spread_cell
from paceline.report.tables import Table, key_cells, key_columns, time_unit, word_columns
from paceline.units import count_text, counted, duration_text

_WORDS = {"train": "base frozen", "finetune": "fine-tuned"}
_LOSS = Form(general=4)


def phase_table(results: StudyResults) -> Table:
    """One row per point and phase, where any point has more than one phase."""
    points = [point for point in results.points if len(point.phases) > 1]
    unit, factor = time_unit(results.points)
    rows = [(*key_cells(results, point), *_cells(phase, factor)) for point in points for phase in point.phases]
    notes = [
        "[ ] beside a gain is the 95 % interval of its mean over repeats, wider where several points have one. "
        "Speed-ups are of the first phase."
    ]
    return Table(
        caption="Phases: the test after each, and what the second one gained within each repeat",
        columns=(
            *(*key_columns(results), "phase", metric("epoch time").heading_in(unit)),
            *(metric(name).heading for name in ("test accuracy", "test loss", "gain")),
        ),
        rows=tuple(rows),
        footnotes=tuple(notes) if rows else (),
        keys=len(key_columns(results)) + 1,
        words=(*word_columns(results), "phase"),
    )


def gain_sentences(results: StudyResults) -> list[str]:
    """What fine-tuning gained, of the point with the most repeats behind it, the fewest ranks among equals."""
    gains = [(point, phase.gain) for point in results.points for phase in point.phases if phase.gain]
    if not gains:
        return []
    point, gain = max(gains, key=lambda pair: pair[1].n)
    return [f"Fine-tuning changed the test accuracy of {point.label} by {_gain_text(gain)}: {_called(gain)}."]


def features_sentences(results: StudyResults) -> list[str]:
    """Said wherever a point did not pass its images through the whole network in every epoch."""
    points = [point for point in results.points if point.features]
    if not points:
        return []
    which = "" if len(points) == len(results.points) else f" ({counted(len(points), 'point')})"
    return [
        f"The head was trained on features that the frozen base had made of every image once{which}: "
        f"{_features_text(points[-1])}. Its epochs are those of the head alone."
    ]


def _cells(phase: PhaseResult, factor: float) -> list[Cell]:
    loss = Cell(phase.test_loss.mean, form=_LOSS)
    return [
        Cell(_WORDS.get(phase.name, phase.name)),
        interval_cell(phase.epoch_s, factor),
        spread_cell(phase.test_accuracy),
        loss,
        _gain_cell(phase.gain),
    ]


def _gain_cell(gain: Gain | None) -> Cell:
    return Cell(None) if gain is None else points_cell(gain.mean, gain.low, gain.high)


def _gain_text(gain: Gain) -> str:
    cell = points_cell(gain.mean, gain.low, gain.high)
    return f"{cell.figure} points {cell.beside}".rstrip()


def _called(gain: Gain) -> str:
    if gain.low is None or gain.high is None:
        return f"{counted(gain.n, 'repeat')} {'is' if gain.n == 1 else 'are'} too few for an interval"
    if gain.low > 0:
        return "better than before, since the interval leaves out zero"
    return "worse than before, since the interval leaves out zero" if gain.high < 0 else "no clear difference"


def _features_text(point: PointResult) -> str:
    made = point.features
    assert isinstance(made, CachedFeatures)
    numbers = f"{count_text(made.size)} numbers of each of {count_text(made.samples)} images"
    how = "found in the cache in" if made.found else f"by {counted(point.point.ranks, 'rank')} in"
    return f"{numbers}, {how} {duration_text(made.ready_s)}"
