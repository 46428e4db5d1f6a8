"""Tables of a paper as CSV, one file each: plain numbers, and intervals in columns of their own.

    ranks,speed-up,speed-up low,speed-up high,efficiency (%),remark
    2,1.88,1.83,1.91,94,

Digits are those that are shown; `results.csv` has all of them.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence

from paceline.reporting.cells import Cell, share_cell
from paceline.reporting.tables.point_tables import FAIRNESS_MARKS, Table
from paceline.reporting.wording.characters import printable

_FORMULA = ("=", "+", "-", "@", "\t")
"""With these a spreadsheet takes a name for a formula."""


def table_csv(table: Table) -> bytes:
    """A table as the bytes of a CSV file with a line of names."""
    columns = [_column(name, [row[index] for row in table.rows]) for index, name in enumerate(table.columns)]
    columns.append(_remarks(table))
    flat = [column for group in columns for column in group]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(zip(*flat, strict=True))
    return text.getvalue().encode()


def _column(name: str, cells: Sequence[Cell]) -> list[list[str]]:
    """A column as one or several, each with its name first."""
    numbers = [cell for cell in cells if cell.is_number]
    percent = bool(numbers) and all(cell.form and cell.form.unit == "%" and cell.std is None for cell in numbers)
    heading = f"{name} (%)" if percent else name
    return [[_text(heading), *map(_figure, cells)], *_beside(name, cells)]


def _figure(cell: Cell) -> str:
    if cell.value is None:
        return ""
    return cell.number(cell.value) if cell.is_number and not isinstance(cell.value, str) else _text(cell.figure)


def _beside(name: str, cells: Sequence[Cell]) -> list[list[str]]:
    """What stands beside the figures: the two ends of an interval, a standard deviation, a share, or a text."""
    qualified = [cell for cell in cells if cell.beside]
    if not qualified:
        return []

    def column(heading: str, text: Callable[[Cell], str]) -> list[str]:
        return [_text(f"{name} {heading}"), *(text(cell) if cell.beside else "" for cell in cells)]

    if any(cell.note for cell in qualified):
        return [[_text(f"{name}, beside it"), *(_text(cell.beside) for cell in cells)]]
    if all(_has_ends(cell) for cell in qualified):
        return [column("low", lambda cell: _end(cell, 0)), column("high", lambda cell: _end(cell, 1))]
    if all(cell.std is not None for cell in qualified):
        return [column("±", lambda cell: cell.number(cell.std or 0.0))]
    if all(cell.share is not None for cell in qualified):
        return [column("share (%)", _share)]
    return [[_text(f"{name}, beside it"), *(_text(cell.beside) for cell in cells)]]


def _has_ends(cell: Cell) -> bool:
    """Whether both ends of its interval are numbers, or open."""
    return cell.interval is not None and not any(end is not None and math.isinf(end) for end in cell.interval)


def _end(cell: Cell, side: int) -> str:
    end = cell.interval[side] if cell.interval else None
    return "" if end is None else cell.number(end)


def _share(cell: Cell) -> str:
    shown = share_cell(cell.share)
    return f"{shown.bound}{shown.number(shown.value)}" if isinstance(shown.value, float) else ""


def _remarks(table: Table) -> list[list[str]]:
    """What the marks behind some numbers mean; no column where there are none."""
    remarks = []
    for row in table.rows:
        marks = dict.fromkeys(mark for cell in row if cell.is_number for mark in cell.marks)
        remarks.append(" ".join(FAIRNESS_MARKS.get(mark, mark) for mark in marks))
    return [["remark", *remarks]] if any(remarks) else []


def _text(text: str) -> str:
    text = " ".join(printable(text).split())
    return f"'{text}" if text.startswith(_FORMULA) else text
