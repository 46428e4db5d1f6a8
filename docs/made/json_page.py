"""The object that `--json` prints, from the code that makes it: its keys, and what the records say about them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docstrings import cell, fields

from paceline import metrics
from paceline.metrics import PointMetric
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Interval, PointResult, Spread, StudyResults
from paceline.records.trace_summary import Efficiencies
from paceline.reporting.export import json_view

# Keys that are no field of a record, or mean less than one.
_WORDS = {
    "study": "name of the study",
    "folder": "path of the study's folder",
    "report": "path of `report.html`; null if it could not be written",
    "points": "an object for each point, in order of ranks: below",
    "findings": "facts that matter for the figures: `name`, `severity`, `summary`, `cause`, `remedy`, `points`",
    "commit": "commit of the checkout that ran it; null without a checkout",
    "learning": "learning summary ([learning](../learning.md))",
    "point": "the identifier of the point, which is also the name of its folder",
    "label": "its ranks and factors, as text",
    "ranks": "number of training processes",
}


def page() -> str:
    """The keys of a study's object, those of its points, and the shapes that come again in both."""
    parts = [
        "## The object of a study",
        _table(json_view.json_object, StudyResults),
        "## Each of `points`",
        _table(json_view._point, PointResult),
        "## Figures",
        "A figure over repeats is an object, or null if it was not measured. Times and ratios:",
        _fields(Interval),
        "Accuracies and losses:",
        _fields(Spread),
        "## Ledgers",
        "Seconds by kind, null if a kind could not be measured: "
        + ", ".join(f"`{kind}`" for kind in LEDGER_KINDS)
        + ".",
        "## Efficiencies",
        _fields(Efficiencies),
    ]
    return "\n\n".join(parts)


def _keys(function: Callable[..., Any]) -> list[str]:
    """The keys of the largest dictionary that a function writes down."""
    written = [node for node in ast.walk(ast.parse(inspect.getsource(function))) if isinstance(node, ast.Dict)]
    largest = max(written, key=lambda node: len(node.keys))
    return [str(key.value) for key in largest.keys if isinstance(key, ast.Constant)]


def _table(function: Callable[..., Any], record: type) -> str:
    told = _explained() | {field.name: cell(field.text) for field in fields(record) if field.text}
    rows = ["| key | meaning |", "|-----|---------|"]
    known = {key: _WORDS.get(key) or told.get(key, "") for key in _keys(function)}
    if record is PointResult:
        known |= {entry.key: _metric(entry) for entry in metrics.POINT_METRICS if entry.in_json}
    rows += [f"| `{key}` | {text} |" for key, text in known.items()]
    return "\n".join(rows)


def _metric(entry: PointMetric) -> str:
    unit = f" ({entry.unit})" if entry.unit else ""
    return f"[{entry.name}](../{entry.page}){unit}: {cell(entry.definition)}"


def _explained() -> dict[str, str]:
    """Key of a point -> what the quickstart says about it and its neighbours."""
    page = (Path(__file__).parents[1] / "quickstart.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`) \| (.+) \|$", page.split("## For programs")[1], re.MULTILINE)
    return {key: text.replace("](", "](../") for keys, text in rows for key in re.findall(r"`(\w+)`", keys)}


def _fields(record: type) -> str:
    rows = ["| key | type | meaning |", "|-----|------|---------|"]
    rows += [f"| `{f.name.rstrip('_')}` | `{cell(f.type)}` | {cell(f.text)} |" for f in fields(record)]
    return "\n".join(rows)
