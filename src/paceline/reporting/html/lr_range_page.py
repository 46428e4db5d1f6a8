"""Learning-rate range tests for readers: a sentence, a table, a curve in the terminal, and a page of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.records.lr_range import LrAdvice, LrCurve
from paceline.reporting.cells import Cell, Form
from paceline.reporting.figures.canvas import LINE_STYLES, Figure, axis_title, layout, rounded
from paceline.reporting.figures.legend import Key
from paceline.reporting.html.markup import fragment
from paceline.reporting.html.report_page import render_parts
from paceline.reporting.tables.point_tables import Table
from paceline.units import counted, number_text

RULE = (
    "The rate at which the smoothed loss fell fastest, or a tenth of the rate at which it ran away where that is less."
)
_RATE = Form(general=2)
_BARS = "▁▂▃▄▅▆▇█"
_MOST_LINES = len(LINE_STYLES)
"""Curves that are drawn: more would hide one another."""


def sentence(advice: LrAdvice) -> str:
    """The answer in a sentence."""
    where = f"at a global batch of {advice.batch_global:,} on {counted(advice.ranks, 'rank')}"
    if advice.lr is None:
        return f"No learning rate can be recommended {where}."
    found = sum(curve.advised is not None for curve in advice.curves)
    over = f" (from {advice.low:g} to {advice.high:g} over {found} tests)" if found > 1 else ""
    return f"Learning rate {advice.lr:g} {where}{over}."


def table(advice: LrAdvice) -> Table:
    """One row per test."""
    rows = tuple(
        (
            Cell(curve.seed),
            *(
                Cell(rate, form=Form(general=2))
                for rate in (curve.advised, curve.steepest, curve.lowest, curve.ran_away)
            ),
            Cell(len(curve.rates)),
        )
        for curve in advice.curves
    )
    columns = ("seed", "advised", "steepest fall", "lowest loss", "ran away", "steps")
    return Table(caption="Learning rates of the range tests", columns=columns, rows=rows)


def curve_text(curve: LrCurve, width: int) -> str:
    """The smoothed loss over the rate as two lines of text: bars, and the rates below them."""
    count = min(len(curve.smoothed), max(10, width))
    low, high = min(curve.smoothed), max(curve.smoothed)
    bars, at = "", None
    for column in range(count):
        first, last = (len(curve.smoothed) * edge // count for edge in (column, column + 1))
        mean = sum(curve.smoothed[first:last]) / (last - first)
        bars += _BARS[min(7, int(8 * (mean - low) / (high - low or 1.0)))]
        if at is None and curve.advised is not None and curve.rates[last - 1] >= curve.advised:
            at = column
    left, right = _rate(curve.rates[0]), _rate(curve.rates[-1])
    below = left + " " * max(1, count - len(left) - len(right)) + right
    mark = "" if at is None else f"\n{' ' * at}↑ {_rate(curve.advised)}"
    return f"{bars}  loss {number_text(high)} to {number_text(low)}{mark}\n{below}"


def page(advice: LrAdvice, name: str, command: str) -> str:
    """The curves as a self-contained page."""
    after = fragment("lr_range", "answer", sentence(advice), (RULE, *advice.notes), command, table(advice))
    return render_parts(f"Learning rate of {name}", f"lr-{name}", [_figure(advice)], after)


def _figure(advice: LrAdvice) -> Figure:
    data: list[dict[str, Any]] = []
    keys = []
    for curve, (color, marker) in zip(advice.curves, LINE_STYLES, strict=False):
        key = Key(label=f"seed {curve.seed}", color=color, marker=marker)
        looks = (
            ("lines", curve.losses, {"width": 1, "dash": "dot"}),
            ("lines+markers", curve.smoothed, {"width": 2.5}),
        )
        for mode, values, line in looks:
            data.append(
                {
                    "type": "scatter",
                    "mode": mode,
                    "name": key.label,
                    "x": rounded(curve.rates),
                    "y": _drawable(values, curve.smoothed),
                    "line": {**line, "color": f"var(--{color})"},
                    "marker": {"symbol": marker, "size": 8, "maxdisplayed": 12, "color": f"var(--{color})"},
                    "hovertemplate": "learning rate %{x:.2g}<br>loss %{y:.3f}<extra></extra>",
                }
            )
        keys.append(key)
    drawing = layout(height=380)
    drawing["xaxis"] |= {"title": axis_title("learning rate"), "type": "log", "exponentformat": "power"}
    drawing["yaxis"] |= {"title": axis_title("loss")}
    if advice.lr is not None:
        line = {"color": "var(--ink)", "width": 1.5, "dash": "dash"}
        drawing["shapes"] = [
            {
                "type": "line",
                "xref": "x",
                "yref": "paper",
                "x0": advice.lr,
                "x1": advice.lr,
                "y0": 0,
                "y1": 1,
                "line": line,
            }
        ]
        keys.append(Key(label=f"recommended, {advice.lr:g}", color="ink", dash="dash"))
    more = len(advice.curves) - _MOST_LINES
    beyond = f" {counted(more, 'further test')} not drawn." if more > 0 else ""
    caption = f"Loss of every step (dotted) and smoothed (solid), over the rate that rises from step to step.{beyond}"
    return Figure(name="lr-range", title="Range test", caption=caption, keys=tuple(keys), data=data, layout=drawing)


def _drawable(values: Sequence[float], smoothed: Sequence[float]) -> list[float | None]:
    """Without what ran away: it would leave nothing of the rest to see."""
    most = 1.25 * max(smoothed)
    return rounded(value if math.isfinite(value) and value <= most else None for value in values)


def _rate(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.2g}"
