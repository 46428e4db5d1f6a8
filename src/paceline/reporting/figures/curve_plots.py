"""Plots of learning: loss and accuracy over epochs, every run and their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.reporting.figures.canvas import LINE_STYLES, Figure, axis_title, layout, plain, rounded
from paceline.reporting.figures.drawn_series import LearningCurve
from paceline.reporting.figures.legend import Key

_MOST_CURVE_VALUES = 20_000
"""Values of single runs in a plot: with more, epochs are skipped, or the page would outgrow what is quickly opened."""
_MOST_EPOCHS = 1_000
"""Values of a mean in a plot: more than there are pixels."""


def curve_figure(
    name: str, title: str, curves: Sequence[LearningCurve], *, axis: str, scale: float, few: str = ""
) -> Figure | None:
    """Loss or accuracy over epochs, in training and in validation; None where no run has any."""
    own = [curve for curve in curves if curve.measure == name]
    if not own:
        return None
    labels = list(dict.fromkeys(curve.label for curve in own))
    parts = list(dict.fromkeys(curve.part for curve in own))
    data: list[dict[str, Any]] = []
    keys: list[Key] = []
    budget = max(1, _MOST_CURVE_VALUES // len(own))
    for curve in own:
        color, symbol = LINE_STYLES[labels.index(curve.label) % len(LINE_STYLES)]
        label = f"{curve.label}, {curve.part}" if len(parts) > 1 else curve.label
        key = Key(label=label, color=color, marker=symbol, dash="dash" if curve.part == "validation" else "solid")
        keys.append(key)
        later = len(labels) - 1 - labels.index(curve.label)
        data += _curve_traces(curve, key, scale=scale, budget=budget, later=later)
    drawing = layout()
    last = max(len(curve.epochs) for curve in own)
    drawing["xaxis"] |= {"title": axis_title("epoch"), "range": [1 - 0.06 * last, last * 1.06]}
    drawing["xaxis"] |= {"tickvals": list(range(1, last + 1))} if last <= 10 else {"tick0": 0}
    drawing["yaxis"] |= {"title": axis_title(axis)}
    several = any(len(curve.runs) > 1 for curve in own)
    caption = "Thick lines are means over repeats, thin lines the single runs." if several else "One run per point."
    caption += few
    if any(curve.low for curve in own):
        caption += " Bands are 95 % intervals of the means."
    if len(parts) > 1:
        caption += " Validation is dashed, with hollow markers."
    return Figure(
        name=name,
        title=title,
        caption=caption,
        keys=tuple(keys),
        data=data,
        layout=drawing,
        terms=(name, "epoch", "epochs to stable", "target"),
    )


def _curve_traces(curve: LearningCurve, key: Key, *, scale: float, budget: int, later: int) -> list[dict[str, Any]]:
    """The runs and the mean of a curve; wider the more curves are drawn over it, so that equal ones show as edges."""
    halo = 2 * min(later, 3)
    seldom = max(1, math.ceil(len(curve.epochs) / _MOST_EPOCHS))
    every = max(seldom, math.ceil(len(curve.runs) * len(curve.epochs) / budget))
    line = {"color": f"var(--{key.color})", "dash": key.dash}
    xs: list[int | None] = []
    ys: list[float | None] = []
    for run in curve.runs:
        # One trace for all runs, with a gap between two of them: hundreds of traces would be slow to draw.
        xs += [*curve.epochs[::every], None]
        ys += [*(value * scale if value is not None else None for value in run[::every]), None]
    thin = {
        "type": "scatter",
        "mode": "lines",
        "name": f"{plain(key.label)}, single runs",
        "meta": key.label,
        "x": xs,
        "y": rounded(ys),
        "line": line | {"width": 1},
        "opacity": 0.35,
        "showlegend": False,
        "hoverinfo": "skip",
    }
    mean = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plain(key.label),
        "meta": key.label,
        "x": list(curve.epochs[::seldom]),
        "y": rounded([value * scale if value is not None else None for value in curve.mean[::seldom]]),
        "line": line | {"width": 2.5 + halo},
        "marker": {
            "symbol": key.marker,
            "size": 8 + 1.5 * halo,
            "maxdisplayed": 12,
            "color": "var(--surface)" if key.dash == "dash" else line["color"],
            "line": {"color": line["color"], "width": 1.5},
        },
        "hovertemplate": "%{fullData.name}<br>epoch %{x}: %{y:.4~g}<extra></extra>",
    }
    return [*_band_trace(curve, key, scale, seldom), *([thin] if len(curve.runs) > 1 else []), mean]


def _band_trace(curve: LearningCurve, key: Key, scale: float, seldom: int) -> list[dict[str, Any]]:
    """The interval of a mean as an area around it; nothing where there is none."""
    if not curve.low:
        return []
    epochs, low, high = (part[: len(curve.low) : seldom] for part in (curve.epochs, curve.low, curve.high))
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"{plain(key.label)}, interval",
            "meta": key.label,
            "x": [*epochs, *reversed(epochs)],
            "y": rounded([value * scale for value in (*high, *reversed(low))]),
            "fill": "toself",
            "fillcolor": f"var(--{key.color})",
            "line": {"width": 0},
            "opacity": 0.18,
            "showlegend": False,
            "hoverinfo": "skip",
        }
    ]
