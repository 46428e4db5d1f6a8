"""What has to be said of our figures beside printed ones, of a cell where it holds for that alone, else of its row.

emulated       more threads than cores, or hosts of one machine: of the points that a row's cells come from
stands in      a network in place of the printed one, where the row takes either; a data set, of accuracies on it
fine-tuning    a second phase, which a printed number of epochs, or a printed time, may have in it or not
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
    table: PublishedTable, printed: PublishedRow, ours: ComparedRow, beside: PublishedComparison, results: StudyResults
) -> Notes:
    """All that is to be said of a row; what all of its figures have in common is said once, of the row."""
    points = {point.point_id: point for point in results.points}
    columns = {column.name: column for column in table.columns}
    found = {
        cell.column: _of_cell(columns[cell.column], points[cell.point_id], beside.published.stand_ins)
        for cell in ours.cells
        if cell.point_id in points and not cell.reason
    }
    said = dict.fromkeys(note for notes in found.values() for note in notes)
    shared = [note for note in said if all(note in notes for notes in found.values())]
    told = [f"{note[0].upper()}{note[1:]}." for note in ours.notes]
    behind = [points[cell.point_id] for cell in ours.cells if cell.point_id in points]
    row = (*told, *_stand_ins(printed, behind, beside, results), *shared)
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
    printed: PublishedRow, points: Sequence[PointResult], beside: PublishedComparison, results: StudyResults
) -> list[str]:
    """What was run in place of what the study has at its full size, or as it was shipped."""
    notes: dict[str, None] = {}
    for path, values in printed.settings.items():
        meant = (results.study.full.get(path) or beside.overridden.get(path, ("", ""))[1]).strip('"')
        names = [str(factor_value(point.point, path)) for point in points if meant in values]
        notes |= {f"{name} stands in for {meant}.": None for name in names if name != meant}
    return list(notes)
