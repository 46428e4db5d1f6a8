"""Notes on our figures in a published table: on single cells, or on the row if they apply to all of its cells.

emulated       more threads than cores, or hosts of one machine: of the points that a row's cells come from
stands in      a network in place of the published one, if the row accepts both; a data set, for accuracies on it
fine-tuning    a second phase, which a published number of epochs, or time, may or may not include
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.published.records import (
    ComparedRow,
    MeasuredCell,
    PublishedColumn,
    PublishedComparison,
    PublishedRow,
    PublishedTable,
)
from paceline.records.results import PointResult, StudyResults
from paceline.records.study import factor_value
from paceline.units import counted

_EPOCHS, _WHOLE = "setting:train.epochs", "total_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Sentences for one row."""

    row: tuple[str, ...]
    cells: Mapping[str, tuple[str, ...]]
    """Name of a column -> what holds for its cell and not for all of the row's."""


def notes_of(
    table: PublishedTable,
    published_row: PublishedRow,
    ours: ComparedRow,
    beside: PublishedComparison,
    results: StudyResults,
) -> Notes:
    """All notes on a row; notes that apply to all of its figures are listed once, for the row."""
    points = {point.point_id: point for point in results.points}
    columns = {column.name: column for column in table.columns}
    found = {
        cell.column: _of_cell(columns[cell.column], points[cell.point_id], beside.published.stand_ins)
        for cell in ours.cells
        if cell.point_id in points and not cell.reason
    }
    all_notes = dict.fromkeys(note for notes in found.values() for note in notes)
    shared = [note for note in all_notes if all(note in notes for notes in found.values())]
    match_notes = [f"{note[0].upper()}{note[1:]}." for note in ours.notes]
    behind = [points[cell.point_id] for cell in ours.cells if cell.point_id in points]
    row = (*match_notes, *_stand_ins(published_row, behind, beside, results), *shared)
    cells = {name: tuple(note for note in notes if note not in shared) for name, notes in found.items()}
    return Notes(row=row, cells=cells)


def further_epochs(column: PublishedColumn, cell: MeasuredCell, results: StudyResults) -> int:
    """Epochs of fine-tuning behind a number of epochs; 0 for every other figure."""
    if column.measure != _EPOCHS:
        return 0
    return next((point.point.finetune.epochs for point in results.points if point.point_id == cell.point_id), 0)


def _of_cell(column: PublishedColumn, point: PointResult, stand_ins: Mapping[str, str]) -> list[str]:
    notes = ["Emulated: more threads than cores."] if point.oversubscribed else []
    notes += ["Emulated: hosts of one machine."] if point.emulated else []
    if tuned := point.point.finetune.epochs:
        notes += ["Epochs with the base frozen, then of fine-tuning."] if column.measure == _EPOCHS else []
        notes += [f"With {counted(tuned, 'epoch')} of fine-tuning."] if column.measure == _WHOLE else []
    if column.unit == "fraction" and (note := stand_ins.get(point.point.data.dataset)):
        notes.append(note)
    return notes


def _stand_ins(
    published_row: PublishedRow, points: Sequence[PointResult], beside: PublishedComparison, results: StudyResults
) -> list[str]:
    """Settings that replace those of the full size, or of the shipped study."""
    notes: dict[str, None] = {}
    for path, values in published_row.settings.items():
        meant = (results.study.full.get(path) or beside.overridden.get(path, ("", ""))[1]).strip('"')
        names = [str(factor_value(point.point, path)) for point in points if meant in values]
        notes |= {f"{name} stands in for {meant}.": None for name in names if name != meant}
    return list(notes)
