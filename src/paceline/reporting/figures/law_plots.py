"""Fitted scaling laws in the plot of speed-ups: a dashed curve and a band, thin where it is extrapolated.

A law is dashed by its kind, so that colour never stands alone; its key hides and shows it. Of one series both laws
are there and the preferred one is shown; of several, the preferred one of each, shown where there is room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.reporting.figures.canvas import LINE_STYLES, plain, rounded
from paceline.reporting.figures.legend import Key
from paceline.reporting.figures.scaling import LawLine
from paceline.units import number_text

_DASHES = {"amdahl": "dashdot", "gustafson": "dashdot", "usl": "dot"}
_ALONE = {"amdahl": "vermillion", "gustafson": "vermillion", "usl": "purple"}


def law_key(law: LawLine) -> Key:
    """How a law is drawn: in the colour of its series, where there are several."""
    color = _ALONE[law.law] if law.number is None else LINE_STYLES[law.number % len(LINE_STYLES)][0]
    return Key(label=law.label, color=color, dash=_DASHES[law.law], off=not law.shown)


def law_bands(laws: Sequence[LawLine]) -> list[dict[str, Any]]:
    """The intervals of the laws as areas: to be drawn first, so that none lies over a line."""
    return [_band(law, law_key(law)) for law in laws]


def law_curves(laws: Sequence[LawLine]) -> list[dict[str, Any]]:
    """The laws themselves: to be drawn last, because a good one lies on the line of what was measured."""
    return [part for law in laws for part in _curves(law, law_key(law))]


def law_caption(laws: Sequence[LawLine]) -> str:
    """The caption's sentences about the laws."""
    if not laws:
        return ""
    if not any(law.shown for law in laws):
        return " Fitted laws are drawn where their keys are turned on."
    return " Curves with bands are fitted laws and their 95 % intervals."


def law_rows(laws: Sequence[LawLine]) -> list[list[str | float | None]]:
    """The curves as rows of the plot's data, in its columns; a law has no ideal."""
    return [
        [law.label, "extrapolated" if row[0] > law.curve.measured_to else "fitted", *rounded(row), None]
        for law in laws
        for row in zip(law.curve.ranks, law.curve.speedup, law.curve.low, law.curve.high, strict=True)
    ]


def law_end(laws: Sequence[LawLine]) -> float:
    """The most ranks that a shown law reaches to; 0 without any."""
    return max((law.curve.ranks[-1] for law in laws if law.shown), default=0.0)


def beyond(laws: Sequence[LawLine], *, logarithmic: bool) -> dict[str, Any]:
    """What of a layout says where measuring ends: a line across the plot, and a word beside it."""
    ends = {law.curve.measured_to for law in laws if law.shown}
    if not ends:
        return {}
    at = max(ends)
    line = {"color": "var(--muted)", "width": 1, "dash": "dot"}
    where = {"x": math.log10(at) if logarithmic else at, "y": 0, "yanchor": "bottom", "yref": "paper"}
    font = {"size": 12, "color": "var(--muted)"}
    return {
        "shapes": [{"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}],
        "annotations": [{**where, "xanchor": "left", "text": " extrapolated", "showarrow": False, "font": font}],
    }


def _band(law: LawLine, key: Key) -> dict[str, Any]:
    curve = law.curve
    return {
        "type": "scatter",
        "mode": "lines",
        "meta": key.label,
        "x": rounded([*curve.ranks, *reversed(curve.ranks)]),
        "y": rounded([*curve.high, *reversed(curve.low)]),
        "fill": "toself",
        "fillcolor": f"var(--{key.color})",
        "line": {"width": 0},
        "opacity": 0.16,
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _curves(law: LawLine, key: Key) -> list[dict[str, Any]]:
    """The curve where points were measured, and beyond."""
    curve = law.curve
    last = next(index for index, n in enumerate(curve.ranks) if n >= curve.measured_to * (1 - 1e-9))
    parts = ((slice(0, last + 1), 2.5, ""), (slice(last, None), 1.25, ", extrapolated"))
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": plain(key.label),
            "meta": key.label,
            "showlegend": not beyond,
            "x": rounded(curve.ranks[part]),
            "y": rounded(curve.speedup[part]),
            "line": {"color": f"var(--{key.color})", "width": width, "dash": key.dash},
            "customdata": [
                [number_text(value) for value in row]
                for row in zip(curve.ranks[part], curve.speedup[part], curve.low[part], curve.high[part], strict=True)
            ],
            "hovertemplate": f"{plain(key.label)}{beyond}<br>%{{customdata[0]}} ranks: %{{customdata[1]}} times as fast"
            "<br>%{customdata[2]} to %{customdata[3]}<extra></extra>",
        }
        for part, width, beyond in parts
    ]
