"""What the documentation says about metrics, from the registry: heads of pages, glossary, CSV columns, JSON keys."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from docstrings import cell

from paceline import metrics
from paceline.metrics import Metric, PointMetric


def head(page: str) -> str:
    """Name, unit, definition and columns of every metric that a page explains, and their formulas."""
    entries = [entry for entry in metrics.metrics() if entry.page == page]
    rows = ["| name | unit | what it is | columns of `results.csv` |", "|------|------|------------|------|"]
    rows += [f"| **{e.name}** | {_unit(e)} | {cell(e.definition)} | {_columns(e)} |" for e in entries]
    width = max((len(entry.name) for entry in entries), default=0)
    formulas = [f"{entry.name:{width}}  =  {entry.formula}" for entry in entries if entry.formula]
    fence = ["", "```text", *formulas, "```"] if formulas else []
    return "\n".join([*rows, "", "## Formula", *fence])


def glossary() -> str:
    """All metrics and terms by name, each with the page that says more."""
    entries = sorted(metrics.metrics(), key=lambda entry: entry.name.lower())
    return "\n".join(_entry(entry) for entry in entries)


def columns() -> str:
    """Columns of results.csv and results.parquet that are metrics."""
    rows = ["| columns | unit | metric |", "|---------|------|--------|"]
    return "\n".join([*rows, *(f"| {_columns(e)} | {_unit(e)} | {_link(e)} |" for e in metrics.POINT_METRICS)])


def keys() -> str:
    """Keys of a point's JSON object that are metrics."""
    own = [entry for entry in metrics.POINT_METRICS if entry.in_json]
    rows = ["| key | unit | metric |", "|-----|------|--------|"]
    return "\n".join([*rows, *(f"| `{entry.key}` | {_unit(entry)} | {_link(entry)} |" for entry in own)])


def words() -> str:
    """Every name by the page that explains it, for the index of the metrics."""
    pages: dict[str, list[str]] = {}
    for entry in metrics.metrics():
        pages.setdefault(entry.page, []).append(entry.name)
    rows = ["| page | words |", "|------|-------|"]
    for page, names in pages.items():
        title = posixpath.basename(page).partition("#")[0].removesuffix(".md").replace("-", " ")
        rows.append(f"| [{title}]({posixpath.relpath(page, 'metrics')}) | {_listed(names)} |")
    return "\n".join(rows)


def _entry(entry: Metric) -> str:
    unit = f" ({_unit(entry)})" if entry.unit else ""
    more = "" if entry.page == "glossary.md" else f" [More]({entry.page})"
    formula = f" = {entry.formula}." if entry.formula else ""
    return f"- **{entry.name}**{unit}: {entry.definition}{formula}{more}"


def _unit(entry: Metric) -> str:
    return {"%": "% of the baseline"}.get(entry.unit, entry.unit)


def _columns(entry: Metric) -> str:
    return _listed(entry.columns) if isinstance(entry, PointMetric) else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _link(entry: Metric) -> str:
    return f"[{entry.name}]({entry.page})"
