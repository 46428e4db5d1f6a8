"""What all plots have in common: a Figure in Plotly's form, its layout and its digits.

A colour is written `var(--name)` and looked up in the page's style sheet when it is drawn, so that
plots follow light, dark and print like the text around them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

from paceline.reporting.figures.legend import Key

HEIGHT = 300
"""Of a plot in pixels: two of them, the verdict and the next step fill a first screen."""
LOW_ROW = 22
"""Height of a row that still has room for its label."""

# Of lines, in turn: colour, marker. No two have one marker: colours come twice.
LINE_STYLES = (
    ("blue", "circle"),
    ("vermillion", "square"),
    ("green", "diamond"),
    ("purple", "triangle-up"),
    ("orange", "cross"),
    ("sky", "x"),
    ("ink", "pentagon"),
    ("blue", "triangle-down"),
    ("vermillion", "star"),
    ("green", "hourglass"),
    ("purple", "bowtie"),
    ("orange", "triangle-left"),
    ("sky", "triangle-right"),
    ("ink", "star-diamond"),
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a plot shows as a table that a reader can save; None where nothing was measured."""

    columns: tuple[str, ...]
    rows: list[list[str | float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot: where it goes, what stands around it, and what Plotly draws.

    A trace belongs to the key whose label is its `meta`, or its `name`: with the key it is hidden and shown.
    """

    name: str
    title: str
    caption: str
    keys: tuple[Key, ...]
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    terms: tuple[str, ...] = ()
    """What of the glossary explains it."""
    numbers: Numbers | None = None
    """Where None, the page reads them off the traces."""
    least: int = 0
    """Height below which rows overlap; that of the layout where 0."""


def plain(text: str) -> str:
    """Text that Plotly shows as it is: in its own small HTML a name could be a link."""
    return escape(text, quote=False)


def two_lines(label: str, between: str = "<br>") -> str:
    """A label of two parts as Plotly shows it; what is in front of the last break may be a name."""
    return between.join(plain(line) for line in label.rsplit("<br>", 1))


def layout(*, height: int = HEIGHT) -> dict[str, Any]:
    """A layout without anything that a reader does not need; zooming is off here, so that a finger can scroll past: the
    page turns it on where there is a mouse."""
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
    return {"text": plain(text), "standoff": 10, "font": {"size": 13}}


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Five significant digits: more are not measured, and the page is a third smaller."""
    return [None if value is None else float(f"{value:.5g}") for value in values]
