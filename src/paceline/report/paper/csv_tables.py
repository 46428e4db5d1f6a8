"""Tables of a paper as CSV, one file each: plain numbers, and intervals in columns of their own.

    ranks,speed-up,speed-up low,speed-up high,efficiency (%),remark
    2,1.88,1.83,1.91,94,

Digits are those that are shown; `results.csv` has all of them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from paceline.report.characters import printable
from paceline.report.tables import NONE, Cell, Table

_NUMBER = re.compile(r"([+−-]?\d[\d,]*(?:\.\d+)?)( %)?((?: [*†])*)")
_BETWEEN = re.compile(r"\[([+−-]?[\d,.]+|–), ([+−-]?[\d,.]+|–)\]")
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
    found = [_NUMBER.fullmatch(cell.figure) for cell in cells]
    numbers = [match for match in found if match]
    percent = bool(numbers) and all(match[2] for match in numbers)
    figures = [_plain(match[1]) if match else _text(cell.figure) for match, cell in zip(found, cells, strict=True)]
    heading = f"{name} (%)" if percent else name
    return [[_text(heading), *figures], *_beside(name, [cell.beside for cell in cells])]


def _beside(name: str, texts: Sequence[str]) -> list[list[str]]:
    """What stands beside the figures: the two ends of an interval, a standard deviation, or a text."""
    if not any(texts):
        return []
    ends = [_BETWEEN.fullmatch(text) for text in texts]
    if all(match or not text for match, text in zip(ends, texts, strict=True)):
        low, high = ([_plain(match[part]) if match else "" for match in ends] for part in (1, 2))
        return [[_text(f"{name} low"), *low], [_text(f"{name} high"), *high]]
    if all(text.startswith("± ") or not text for text in texts):
        return [[_text(f"{name} ±"), *(text.removeprefix("± ").removesuffix(" %") for text in texts)]]
    if all(text.endswith(" %") or not text for text in texts):
        return [[_text(f"{name} share (%)"), *(_text(text.removesuffix(" %")) for text in texts)]]
    return [[_text(f"{name}, beside it"), *map(_text, texts)]]


def _remarks(table: Table) -> list[list[str]]:
    """What the marks behind some numbers mean; no column where there are none."""
    notes = {note[0]: note[2:] for note in table.footnotes if note[:2] in ("* ", "† ")}
    remarks = []
    for row in table.rows:
        marks = [mark for cell in row if (match := _NUMBER.fullmatch(cell.figure)) for mark in match[3].split()]
        remarks.append(" ".join(notes.get(mark, mark) for mark in dict.fromkeys(marks)))
    return [["remark", *remarks]] if any(remarks) else []


def _plain(number: str) -> str:
    return "" if number == NONE else number.replace(",", "").replace("−", "-").lstrip("+")


def _text(text: str) -> str:
    text = "" if text == NONE else " ".join(printable(text).split())
    return f"'{text}" if text.startswith(_FORMULA) else text
