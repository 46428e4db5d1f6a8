"""published.csv and the part of `--json` about published cells: one record per cell, with our figure."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

from paceline.published.records import PublishedComparison, PublishedTable

_OURS = ("value", "low", "high", "std", "n", "point_id", "reason")
_COLUMNS: tuple[str, ...] = ("table", "row", "column", "unit", "published", *_OURS)


def published_csv(beside: PublishedComparison) -> bytes:
    """published.csv: every published cell with our figure, or the reason why there is none."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_cells(beside))
    return out.getvalue().encode()


def published_object(beside: PublishedComparison) -> dict[str, Any]:
    """All cells for `--json`, with published cells that contradict each other, and the open questions."""
    return {
        "name": beside.published.name,
        "cells": list(_cells(beside)),
        "contradictions": [asdict(found) for found in beside.contradictions],
        "questions": [
            {
                "name": answer.question.name,
                "question": answer.question.text,
                "answered": answer.answered,
                "verdict": answer.verdict,
                "figure": answer.figure,
                "command": answer.command,
            }
            for answer in beside.answers
        ],
    }


def _cells(beside: PublishedComparison) -> list[dict[str, Any]]:
    lines = []
    for found in beside.tables:
        for index, (published_row, ours) in enumerate(zip(found.table.rows, found.rows, strict=True)):
            for column, cell, own in zip(found.table.columns, published_row.cells, ours.cells, strict=True):
                figures = {name: getattr(own, name) for name in _OURS}
                where = {"table": found.table.name, "row": _row_name(found.table, index)}
                lines.append({**where, "column": column.name, "unit": column.unit, "published": cell.value, **figures})
    return lines


def _row_name(table: PublishedTable, index: int) -> str:
    return ", ".join(f"{key} {name}" for key, name in zip(table.keys, table.rows[index].names, strict=True))
