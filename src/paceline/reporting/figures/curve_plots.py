"""Plots of learning: loss and accuracy over epochs, every run and their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.reporting.figures.canvas import (
    HEIGHT,
    LINE_STYLES,
    LOW_ROW,
    Figure,
    Numbers,
    axis_title,
    layout,
    plain,
    rounded,
)
from paceline.reporting.figures.drawn_series import Accuracies, LearningCurve
from paceline.reporting.figures.legend import Key
from paceline.reporting.wording.learning_words import EXCLUDED_RUNS_NOTE

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


_ROW_HEIGHT = 36


def accuracy_figure(name: str, found: Accuracies) -> Figure | None:
    """One row per point: the mean of its repeats with their standard deviation; None where there are no rows."""
    if not found.labels:
        return None
    caption = f"Mean of the repeats{', with their standard deviation' if any(found.stds) else ''}."
    if found.reference is not None:
        caption += " The dashed line is the reference; hollow points are not shown to differ from it."
    rows: list[list[str | float | None]] = [
        [label, *rounded((mean, std))] for label, mean, std in zip(found.labels, found.means, found.stds, strict=True)
    ]
    return Figure(
        name=name,
        title="Test accuracy",
        caption=f"{caption} {EXCLUDED_RUNS_NOTE}" if found.fewer else caption,
        keys=(),
        data=[_marks(found)],
        layout=_layout(found),
        terms=("test accuracy", "different, equal") if found.reference is not None else ("test accuracy",),
        numbers=Numbers(("point", "test accuracy (%)", "standard deviation"), rows),
        least=60 + LOW_ROW * len(found.labels),
    )


def _marks(found: Accuracies) -> dict[str, Any]:
    # A deviation may reach beyond what an accuracy can be: one dead run among four is enough.
    above, below = (
        rounded([min(std or 0.0, room) for std, room in zip(found.stds, rooms, strict=True)])
        for rooms in ([100 - mean for mean in found.means], found.means)
    )
    # The reference, and what differs from it; all where there is none.
    filled = [found.reference in (None, row) or called for row, called in enumerate(found.called)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "test accuracy",
        "showlegend": False,
        "x": rounded(found.means),
        "y": list(range(len(found.labels))),
        "marker": {
            "symbol": "circle",
            "size": 10,
            "color": ["var(--blue)" if full else "var(--surface)" for full in filled],
            "line": {"color": "var(--blue)", "width": 2},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "color": "var(--blue)",
            "thickness": 1.5,
            "width": 5,
        },
        "customdata": [[plain(label), text] for label, text in zip(found.labels, found.texts, strict=True)],
        "hovertemplate": "%{customdata[0]}: %{customdata[1]}<extra></extra>",
    }


def _layout(found: Accuracies) -> dict[str, Any]:
    rows = list(range(len(found.labels)))
    drawing = layout(height=max(HEIGHT, 80 + _ROW_HEIGHT * len(rows)))
    drawing["xaxis"] |= {"title": axis_title("test accuracy (%)")}
    drawing["yaxis"] |= {
        "range": [len(rows) - 0.5, -0.5],
        "tickvals": rows,
        "ticktext": [plain(label) for label in found.labels],
        "showgrid": False,
        "ticklabelstandoff": 6,
    }
    if found.reference is not None:
        at = rounded([found.means[found.reference]])[0]
        line = {"color": "var(--muted)", "width": 2, "dash": "dash"}
        drawing["shapes"] = [{"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}]
    return drawing
