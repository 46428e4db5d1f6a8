"""Phases of a training: a table with the test after each, and what is said about fine-tuning and cached features."""

from __future__ import annotations

from paceline.metrics import metric
from paceline.records.results import Gain, PhaseResult, StudyResults
from paceline.reporting.cells import Cell, Form, interval_cell, points_cell, spread_cell
from paceline.reporting.tables.point_tables import Table, key_cells, key_columns, time_unit, word_columns

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
