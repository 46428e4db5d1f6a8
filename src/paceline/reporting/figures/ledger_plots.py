"""Plots of where the time went: one bar per point or rank, divided into the kinds of the ledger."""

from __future__ import annotations

from typing import Any

from paceline.reporting.cells import seconds_cell, share_cell
from paceline.reporting.figures.canvas import HEIGHT, Figure, Numbers, axis_title, layout, rounded, two_lines
from paceline.reporting.figures.drawn_series import Ledger
from paceline.reporting.figures.legend import KIND_STYLES, kind_key

# Up to so many bars each is so high; where it is too low for two lines, its label is set in one.
_BAR_HEIGHTS = ((5, 46), (8, 34), (16, 22))
_LOW_BAR_HEIGHT = 20
"""Of bars with labels in one line, where there is little room."""
_THIN_BAR_HEIGHT = 10
_LOWEST_WITH_TWO_LINES = 34


def ledger_figure(name: str, title: str, ledger: Ledger, *, caption: str) -> Figure | None:
    """Stacked bars, one for each of the ledger's labels; None where there are none."""
    if not ledger.labels:
        return None
    shown = [(kind, values) for kind, values in zip(ledger.kinds, ledger.seconds, strict=True) if any(values)]
    unseen = [kind for kind, values in zip(ledger.kinds, ledger.seconds, strict=True) if None in values]
    if unseen:
        caption += f" Not measured: {', '.join(unseen)}."
    bar = next((height for most, height in _BAR_HEIGHTS if len(ledger.labels) <= most), _THIN_BAR_HEIGHT)
    labels = [two_lines(label, "<br>" if bar >= _LOWEST_WITH_TWO_LINES else ", ") for label in ledger.labels]
    data = [_kind_trace(kind, values, ledger, labels) for kind, values in shown]
    drawing = layout(height=max(HEIGHT, 70 + bar * len(ledger.labels)))
    drawing |= {
        "barmode": "stack",
        "bargap": 0.35 if len(ledger.labels) > 1 else 0.6,
        "uniformtext": {"mode": "hide", "minsize": 10},
    }
    drawing["xaxis"] |= {"title": axis_title("share of the run"), "range": [0, 100], "ticksuffix": " %", "dtick": 25}
    drawing["yaxis"] |= {"type": "category", "autorange": "reversed", "showgrid": False, "ticklabelstandoff": 6}
    drawing["legend"]["traceorder"] = "normal"
    keys = tuple(kind_key(kind) for kind, _ in shown)
    return Figure(
        name=name,
        title=title,
        caption=caption,
        keys=keys,
        data=data,
        layout=drawing,
        terms=("where the time went", "median run", *(kind for kind, _ in shown)),
        numbers=_numbers(ledger),
        least=50 + _LOW_BAR_HEIGHT * len(ledger.labels) if bar == _BAR_HEIGHTS[-1][1] else 0,
    )


def _numbers(ledger: Ledger) -> Numbers:
    """A row for each bar: the seconds of every kind, those without any included."""
    rows: list[list[str | float | None]] = [
        [label.replace("<br>", ", "), *rounded([whole, *(values[index] for values in ledger.seconds)])]
        for index, (label, whole) in enumerate(zip(ledger.labels, ledger.wholes, strict=True))
    ]
    return Numbers(("bar", "whole (s)", *(f"{kind} (s)" for kind in ledger.kinds)), rows)


def _kind_trace(kind: str, values: tuple[float | None, ...], ledger: Ledger, labels: list[str]) -> dict[str, Any]:
    color, pattern = KIND_STYLES[kind]
    shares = [(value or 0.0) / whole if whole else 0.0 for value, whole in zip(values, ledger.wholes, strict=True)]
    return {
        "type": "bar",
        "orientation": "h",
        "name": kind,
        "y": labels,
        "x": rounded([100 * share for share in shares]),
        "text": [share_cell(share).figure if share else "" for share in shares],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "inside",
        "insidetextfont": {"size": 12, "color": f"var(--on-{color})"},
        "marker": {
            "color": f"var(--{color})",
            "line": {"color": "var(--surface)", "width": 1},
            "pattern": {
                "shape": pattern,
                "bgcolor": f"var(--{color})",
                "fgcolor": f"var(--on-{color})",
                "fgopacity": 0.3,
                "size": 7,
                "solidity": 0.25,
            },
        },
        "customdata": [f"{seconds_cell(value).figure} s" if value else "" for value in values],
        "hovertemplate": f"{kind}: %{{customdata}}, %{{text}}<extra></extra>",
    }
