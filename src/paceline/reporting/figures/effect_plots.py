"""One factor at a time as a plot: every value of every factor, its figures in per cent of the baseline side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.records.results import Effect, Percent
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
from paceline.reporting.figures.legend import Key
from paceline.reporting.wording.one_factor_words import FIGURES, effect_label, value_text
from paceline.units import finite, number_text

_LOG_FROM = 4.0
"""Between the lowest and the highest figure: beyond it a linear axis would crowd what is near 100 %."""
_MOST_HIGH = 6
"""Rows up to which each is as high as it likes: with more, markers are smaller, to stay apart."""
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


def effects_figure(effects: Sequence[Effect]) -> Figure | None:
    """A marker with its interval for every figure of every value but the baseline's; None where there are none."""
    shown = [effect for effect in effects if not effect.is_baseline]
    known = [name for name in FIGURES if any(_drawn(getattr(effect, name)) for effect in shown)]
    if not known:
        return None
    keys = [
        Key(label=FIGURES[name], color=color, marker=marker)
        for name, (color, marker) in zip(known, LINE_STYLES, strict=False)
    ]
    return Figure(
        name="effects",
        title="In % of the baseline",
        caption="Medians over repeats, with the intervals of the ratios within repeats; hollow where no test calls "
        "them real. The dashed line is the baseline.",
        keys=tuple(keys),
        data=[_trace(shown, name, key, place) for place, (name, key) in enumerate(zip(known, keys, strict=True))],
        layout=_layout(shown, known),
        terms=("% of the baseline", "training time", "real effect"),
        numbers=Numbers(("factor", "value", "figure", "%", "low", "high"), _rows(shown, known)),
        least=60 + LOW_ROW * len(shown),
    )


def _trace(effects: Sequence[Effect], name: str, key: Key, place: int) -> dict[str, Any]:
    found = [(row, e, percent) for row, e in enumerate(effects) if (percent := getattr(e, name)) and _drawn(percent)]
    intervals, color = [percent.interval for _, _, percent in found], f"var(--{key.color})"
    low = len(effects) > _MOST_HIGH
    return {
        "type": "scatter",
        "mode": "markers",
        "name": key.label,
        "meta": key.label,
        "x": rounded([interval.median for interval in intervals]),
        # One below the other within a row, so that no interval hides another.
        "y": [row + (0.32 if low else 0.22) * (place - 1) for row, _, _ in found],
        "marker": {
            "symbol": key.marker,
            "size": 6 if low else 9,
            "color": [color if percent.real else "var(--surface)" for _, _, percent in found],
            "line": {"color": color, "width": 1.5 if low else 2},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": rounded([interval.high - interval.median for interval in intervals]),
            "arrayminus": rounded([interval.median - interval.low for interval in intervals]),
            "color": color,
            "thickness": 1.5,
            "width": 3 if low else 5,
        },
        "customdata": [
            [plain(effect_label(e)), *(number_text(v, 4) for v in (i.median, i.low, i.high))]
            for (_, e, _), i in zip(found, intervals, strict=True)
        ],
        "hovertemplate": f"%{{customdata[0]}}: {key.label} %{{customdata[1]}} %<br>%{{customdata[2]}} to "
        "%{customdata[3]} %<extra></extra>",
    }


def _layout(effects: Sequence[Effect], names: Sequence[str]) -> dict[str, Any]:
    drawing = layout(height=max(HEIGHT, 70 + 48 * len(effects)))
    drawing["xaxis"] |= {"title": axis_title("% of the baseline"), "separatethousands": True}
    ends = [
        end
        for effect in effects
        for name in names
        if (percent := getattr(effect, name)) and _drawn(percent)
        for end in (percent.interval.low, percent.interval.high)
    ]
    low, high = min(*ends, 100.0), max(*ends, 100.0)
    if low > 0 and high / low >= _LOG_FROM:
        ticks = [tick for tick in _TICKS if low / 2 <= tick <= high * 2]
        drawing["xaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]}
        drawing["xaxis"] |= {"range": [math.log10(low) - 0.08, math.log10(high) + 0.08]}
    drawing["yaxis"] |= {
        "range": [len(effects) - 0.5, -0.5],
        "tickvals": list(range(len(effects))),
        "ticktext": [plain(effect_label(effect)) for effect in effects],
        "showgrid": False,
        "ticklabelstandoff": 6,
    }
    line = {"color": "var(--muted)", "width": 2, "dash": "dash"}
    drawing["shapes"] = [{"type": "line", "x0": 100, "x1": 100, "yref": "paper", "y0": 0, "y1": 1, "line": line}]
    return drawing


def _rows(effects: Sequence[Effect], names: Sequence[str]) -> list[list[str | float | None]]:
    rows: list[list[str | float | None]] = []
    for effect in effects:
        for name in names:
            if (percent := getattr(effect, name)) and _drawn(percent):
                figures = (percent.interval.median, percent.interval.low, percent.interval.high)
                rows.append([effect.factor, value_text(effect), FIGURES[name], *rounded(figures)])
    return rows


def _drawn(percent: Percent | None) -> bool:
    """Whether there is anything to draw: what is not a number is not."""
    ends = (percent.interval.median, percent.interval.low, percent.interval.high) if percent else (None,)
    return all(end is not None and finite(end) is not None for end in ends)
