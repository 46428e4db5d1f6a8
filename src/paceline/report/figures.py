"""Every plot of a report as a plain dictionary in Plotly's form; plotly itself is never imported.

The palette is Okabe and Ito's, and colour never stands alone: lines have markers and dashes of
their own, bars have patterns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.report.canvas import HEIGHT, LINE_STYLES, Figure, axis_title, layout, rounded
from paceline.report.legend import KIND_STYLES, Key, kind_key
from paceline.report.model import ReportModel
from paceline.report.scaling_plots import ranking_figure, scaling_figure
from paceline.report.series import LearningCurve, Ledger
from paceline.report.tables import seconds_text, share_text

_BAR_HEIGHT = 46
_THIN_BAR_HEIGHT = 10
_MOST_THICK_BARS = 16

_MOST_CURVE_VALUES = 30_000
"""Values of single runs in a plot: with more, epochs are skipped, or the page would outgrow what is quickly opened."""
_MOST_EPOCHS = 1_000
"""Values of a mean in a plot: more than there are pixels."""


def figures(model: ReportModel) -> dict[str, Figure]:
    """Every plot that the model has numbers for, by name."""
    made = [
        scaling_figure(
            "speedup",
            "How it scales",
            model.speedup,
            axis="speed-up",
            caption="Speed-up over ranks",
            hover="%{customdata[1]} times as fast",
        ),
        _ledger_figure(
            "ledger",
            "Where the time went",
            model.point_ledger,
            caption="Each point's median run from launch to end, mean over its ranks." + _chosen_few(model),
        ),
        ranking_figure("ranking", model.ranking),
        _ledger_figure(
            "all-ledgers",
            "Where the time went at every point",
            model.all_ledgers,
            caption="Each point's median run from launch to end, mean over its ranks.",
        ),
        _curve_figure("accuracy", "Accuracy", model.curves, axis="accuracy (%)", scale=100, few=_chosen_few(model)),
        _curve_figure("loss", "Loss", model.curves, axis="loss", scale=1, few=_chosen_few(model)),
        scaling_figure(
            "epoch",
            "Epoch time",
            model.epoch_time,
            axis=f"epoch time ({model.epoch_time.unit})",
            caption="Time of an epoch after warm-up",
            hover=f"%{{customdata[1]}} {model.epoch_time.unit} an epoch",
        ),
        scaling_figure(
            "throughput",
            "Throughput",
            model.throughput,
            axis="samples/s",
            caption="Training samples per second, all ranks together",
            hover="%{customdata[1]} samples/s",
        ),
        *(
            _ledger_figure(f"ranks-{index}", ledger.title, ledger.series, caption=f"{ledger.table.caption}.")
            for index, ledger in enumerate(model.rank_ledgers)
            if ledger.drawn
        ),
    ]
    drawn = {figure.name: figure for figure in made if figure is not None}
    # These two stand beside each other on the first screen.
    main = "speedup" if "speedup" in drawn else "ranking"
    pair = [drawn[name].layout for name in (main, "ledger") if name in drawn]
    for drawing in pair:
        drawing["height"] = max(other["height"] for other in pair)
    return drawn


def _chosen_few(model: ReportModel) -> str:
    """That a plot leaves points out, where it does."""
    whole, shown = len(model.all_ledgers.labels), len(model.point_ledger.labels)
    return f" {shown} of {whole} points: the baseline, and those with the most ranks." if whole else ""


def _ledger_figure(name: str, title: str, ledger: Ledger, *, caption: str) -> Figure | None:
    if not ledger.labels:
        return None
    shown = [(kind, values) for kind, values in zip(ledger.kinds, ledger.seconds, strict=True) if any(values)]
    data = [_kind_trace(kind, values, ledger) for kind, values in shown]
    unseen = [kind for kind, values in zip(ledger.kinds, ledger.seconds, strict=True) if None in values]
    if unseen:
        caption += f" Not measured: {', '.join(unseen)}."
    bar = _BAR_HEIGHT if len(ledger.labels) <= _MOST_THICK_BARS else _THIN_BAR_HEIGHT
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
    return Figure(name=name, title=title, caption=caption, keys=keys, data=data, layout=drawing)


def _kind_trace(kind: str, values: tuple[float | None, ...], ledger: Ledger) -> dict[str, Any]:
    color, pattern = KIND_STYLES[kind]
    shares = [(value or 0.0) / whole if whole else 0.0 for value, whole in zip(values, ledger.wholes, strict=True)]
    return {
        "type": "bar",
        "orientation": "h",
        "name": kind,
        "y": list(ledger.labels),
        "x": rounded([100 * share for share in shares]),
        "text": [share_text(share) if share else "" for share in shares],
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
        "customdata": [f"{seconds_text(value)} s" if value else "" for value in values],
        "hovertemplate": f"{kind}: %{{customdata}}, %{{text}}<extra></extra>",
    }


def _curve_figure(
    name: str, title: str, curves: Sequence[LearningCurve], *, axis: str, scale: float, few: str = ""
) -> Figure | None:
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
    return Figure(name=name, title=title, caption=caption, keys=tuple(keys), data=data, layout=drawing)


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
        "name": key.label,
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
        "hovertemplate": f"{key.label}<br>epoch %{{x}}: %{{y:.4~g}}<extra></extra>",
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
