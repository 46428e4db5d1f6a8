"""Plots of a figure over ranks: what was measured, with its intervals, and what would be ideal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.report.canvas import Figure, axis_title, layout, rounded
from paceline.report.legend import Key
from paceline.report.series import Estimate, Scaling
from paceline.units import counted, number_text

_LOG_FROM = 8
"""Ratio of most to fewest ranks from which both axes are logarithmic: below, small numbers keep their room."""


def scaling_figure(name: str, title: str, scaling: Scaling, *, axis: str, caption: str, hover: str) -> Figure | None:
    shown = [index for index, estimate in enumerate(scaling.measured) if estimate is not None]
    if len(shown) < 2:
        return None
    ranks = [scaling.ranks[index] for index in shown]
    ideals = [scaling.ideal[index] for index in shown]
    crowded = [scaling.crowded[index] for index in shown]
    estimates = [estimate for estimate in scaling.measured if estimate is not None]
    labels = [scaling.labels[index] for index in shown] if scaling.labels else []
    logarithmic = max(ranks) >= _LOG_FROM * min(ranks)
    drawing = layout()
    drawing["xaxis"] |= _rank_axis(ranks, logarithmic=logarithmic, labels=bool(labels))
    drawing["yaxis"] |= {"title": axis_title(axis), "rangemode": "tozero"}
    if logarithmic:
        seen = [value for value in (*(e.value for e in estimates), *ideals) if value]
        ticks = [ideal for ideal in ideals if ideal] if labels else _log_ticks(min(seen), max(seen))
        drawing["yaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}
    caption += f": medians of the repeats{f' with their {scaling.around}' if scaling.around else ''}."
    if any(crowded):
        caption += " Hollow points had to share cores."
    # Far below the ideal there is room above a point, and the axis below it.
    sunken = [ideal is not None and e.value < ideal / 2 for e, ideal in zip(estimates, ideals, strict=True)]
    data = [
        _ideal_trace(ranks, ideals),
        _interval_trace(ranks, estimates),
        _measured_trace(ranks, estimates, crowded, hover, labels, sunken),
    ]
    keys = (Key(label="measured", color="blue", marker="circle"), Key(label="ideal", color="muted", dashed=True))
    return Figure(name=name, title=title, caption=caption, keys=keys, data=data, layout=drawing)


def _ideal_trace(ranks: list[int], ideals: list[float | None]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "ideal",
        "x": ranks,
        "y": rounded(ideals),
        "line": {"color": "var(--muted)", "width": 2, "dash": "dash"},
        "hoverinfo": "skip",
    }


def _interval_trace(ranks: list[int], estimates: list[Estimate]) -> dict[str, Any]:
    """Error bars alone: a point without an interval, as a baseline against itself, gets none."""
    pairs = [(n, estimate) for n, estimate in zip(ranks, estimates, strict=True) if estimate.low < estimate.high]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [n for n, _ in pairs],
        "y": rounded([e.value for _, e in pairs]),
        "marker": {"size": 1, "color": "var(--ink)"},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": rounded([e.high - e.value for _, e in pairs]),
            "arrayminus": rounded([e.value - e.low for _, e in pairs]),
            "color": "var(--ink)",
            "thickness": 1.5,
            "width": 7,
        },
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _measured_trace(
    ranks: list[int],
    estimates: list[Estimate],
    crowded: list[bool],
    hover: str,
    labels: Sequence[str],
    sunken: list[bool],
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers+text" if labels else "lines+markers",
        "name": "measured",
        "x": ranks,
        "y": rounded([e.value for e in estimates]),
        "text": list(labels),
        "textposition": ["top right" if low else "bottom right" for low in sunken],
        "textfont": {"size": 13, "color": "var(--ink)"},
        "cliponaxis": False,
        "line": {"color": "var(--blue)", "width": 2.5},
        "marker": {
            "size": 8,
            "color": ["var(--surface)" if shared else "var(--blue)" for shared in crowded],
            "line": {"color": "var(--blue)", "width": 2},
        },
        "customdata": [
            [counted(n, "rank"), number_text(e.value), number_text(e.low), number_text(e.high)]
            for n, e in zip(ranks, estimates, strict=True)
        ],
        "hovertemplate": "%{customdata[0]}<br>" + hover + "<br>%{customdata[2]} to %{customdata[3]}<extra></extra>",
    }


def _rank_axis(ranks: list[int], *, logarithmic: bool, labels: bool) -> dict[str, Any]:
    """An axis with the measured ranks as its only ticks, and room beside the first and the last."""
    low, high = (math.log10(min(ranks)), math.log10(max(ranks))) if logarithmic else (min(ranks), max(ranks))
    room = (high - low) * 0.16
    return {
        "title": axis_title("ranks"),
        "type": "log" if logarithmic else "linear",
        "range": [low - room, high + (1.7 if labels else 1) * room],
        "tickvals": ranks,
        "ticktext": [str(n) for n in ranks],
    }


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 in every power of ten, as far as the values reach."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [tick for tick in ticks if low / 2 <= tick <= high * 2]
