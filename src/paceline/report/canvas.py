"""What all plots have in common: a Figure in Plotly's form, its layout and its digits.

A colour is written `var(--name)` and looked up in the page's style sheet when it is drawn, so that
plots follow light, dark and print like the text around them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paceline.report.legend import Key

HEIGHT = 300
"""Of a plot in pixels: two of them, the verdict and the next step fill a first screen."""

# Of lines, in turn: colour, marker.
LINE_STYLES = (
    ("blue", "circle"),
    ("vermillion", "square"),
    ("green", "diamond"),
    ("purple", "triangle-up"),
    ("orange", "cross"),
    ("sky", "x"),
    ("ink", "pentagon"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot: where it goes, what stands around it, and what Plotly draws."""

    name: str
    title: str
    caption: str
    keys: tuple[Key, ...]
    data: list[dict[str, Any]]
    layout: dict[str, Any]


def layout(*, height: int = HEIGHT) -> dict[str, Any]:
    """A layout without anything that a reader does not need; zooming is off, so that a finger can scroll past."""
    axis = {
        "color": "var(--muted)",
        "gridcolor": "var(--line)",
        "linecolor": "var(--line)",
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
        "tickfont": {"color": "var(--ink)"},
    }
    return {
        "height": height,
        "margin": {"l": 8, "r": 24, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "var(--ink)"},
        "hoverlabel": {"bgcolor": "var(--surface)", "bordercolor": "var(--muted)", "font": {"color": "var(--ink)"}},
        "dragmode": False,
        "xaxis": {**axis, "showgrid": False, "showline": True, "ticks": "outside", "ticklen": 4},
        "yaxis": {**axis, "separatethousands": True, "exponentformat": "none"},
        # The page draws its own keys; Plotly's legend is for plots that are saved.
        "showlegend": False,
        "legend": {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"},
    }


def axis_title(text: str) -> dict[str, Any]:
    """The title of an axis."""
    return {"text": text, "standoff": 10, "font": {"size": 13}}


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Five significant digits: more are not measured, and the page is a third smaller."""
    return [None if value is None else float(f"{value:.5g}") for value in values]
