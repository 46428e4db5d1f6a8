"""Plots of a figure over ranks: what was measured, with its intervals, and what would be ideal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.reporting.figures.canvas import (
    HEIGHT,
    LINE_STYLES,
    Figure,
    Numbers,
    axis_title,
    layout,
    plain,
    rounded,
    two_lines,
)
from paceline.reporting.figures.law_plots import beyond, law_bands, law_caption, law_curves, law_end, law_key, law_rows
from paceline.reporting.figures.legend import Key
from paceline.reporting.figures.scaling import Estimate, Line, Ranking, Scaling
from paceline.units import number_text

_LOG_FROM = 8
"""Ratio of most to fewest ranks from which both axes are logarithmic: below, small numbers keep their room."""

_MOST_LABELS = 7
"""Points of a line that have their figures beside them: more would overlap."""


def scaling_figure(
    name: str,
    title: str,
    scaling: Scaling,
    *,
    axis: str,
    caption: str,
    hover: str,
    terms: tuple[str, ...] = (),
    more: str = "",
) -> Figure | None:
    """A figure over ranks, with `more` to say below it; None where no series has two points."""
    lines = [measured for line in scaling.lines if (measured := _measured(line)).ranks]
    if not any(len(line.ranks) > 1 for line in lines):
        return None
    ranks = sorted({n for line in lines for n in line.ranks})
    ideals = [ideal for n, ideal in zip(scaling.ranks, scaling.ideal, strict=True) if n in ranks]
    drawing, logarithmic = _axes(scaling, lines, ranks, ideals)
    drawing |= beyond(scaling.laws, logarithmic=logarithmic)
    drawing["yaxis"] |= {"title": axis_title(axis), "rangemode": "tozero"}
    caption += f": medians of the repeats{f' with their {scaling.around}' if scaling.around else ''}."
    if any(shared for line in lines for shared in line.crowded):
        what = "had to share cores, or hosts of one machine" if scaling.emulated else "had to share cores"
        caption += f" Hollow points {what}."
    caption += law_caption(scaling.laws) + (f" {more}" if more else "")
    several = len(scaling.lines) > 1
    keys = [_line_key(line, number if several else None) for number, line in enumerate(lines)]
    data = [*([_ideal_trace(ranks, ideals)] if any(ideals) else []), *law_bands(scaling.laws)]
    ideal_at = dict(zip(ranks, ideals, strict=True))
    for number, (line, key) in enumerate(zip(lines, keys, strict=True)):
        # Far below the ideal there is room above a point, and the axis below it.
        sunken = [(ideal_at[n] or 0.0) / 2 > e.value for n, e in zip(line.ranks, line.measured, strict=True) if e]
        xs = _beside(line.ranks, ranks, number=number, count=len(lines), logarithmic=logarithmic)
        data += [_interval_trace(line, xs, key, several), _measured_trace(line, xs, key, hover, sunken)]
    data += law_curves(scaling.laws)
    if any(ideals):
        keys.append(Key(label="ideal", color="muted", dash="dash"))
    keys += [law_key(law) for law in scaling.laws]
    return Figure(
        name=name,
        title=title,
        caption=caption,
        keys=tuple(keys),
        data=data,
        layout=drawing,
        terms=terms,
        numbers=_numbers(scaling, lines, axis, ideal_at),
    )


def _numbers(scaling: Scaling, lines: list[Line], axis: str, ideal_at: Mapping[int, float | None]) -> Numbers:
    rows: list[list[str | float | None]] = []
    for line in lines:
        for ranks, point, estimate in zip(line.ranks, line.points, line.measured, strict=True):
            assert estimate is not None
            figures = (estimate.value, estimate.low, estimate.high, ideal_at[ranks])
            rows.append([line.name, point, ranks, *rounded(figures)])
    rows += law_rows(scaling.laws)
    return Numbers(("series", "point", "ranks", axis, "low", "high", "ideal"), rows)


def _axes(
    scaling: Scaling, lines: list[Line], ranks: list[int], ideals: list[float | None]
) -> tuple[dict[str, Any], bool]:
    """A layout with the measured ranks as ticks, and whether it is logarithmic."""
    labels = any(line.labels for line in lines)
    logarithmic = max(ranks) >= _LOG_FROM * min(ranks)
    drawing = layout()
    end = round(law_end(scaling.laws))
    drawing["xaxis"] |= _rank_axis([*ranks, end] if end > max(ranks) else ranks, logarithmic=logarithmic, labels=labels)
    drawing["xaxis"] |= {"title": axis_title("ranks and servers" if scaling.servers else "ranks")}
    if logarithmic:
        estimates = [estimate.value for line in lines for estimate in line.measured if estimate is not None]
        seen = [value for value in (*estimates, *ideals) if value]
        ticks = [ideal for ideal in ideals if ideal] if labels else _log_ticks(min(seen), max(seen))
        drawing["yaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}
    return drawing, logarithmic


def ranking_figure(name: str, ranking: Ranking) -> Figure | None:
    """Throughput of series at one number of ranks, as bars; None where there is nothing to compare."""
    if len(ranking.names) < 2:
        return None
    drawing = layout(height=max(HEIGHT, 90 + 44 * len(ranking.names)))
    drawing["xaxis"] |= {"title": axis_title("samples/s"), "rangemode": "tozero", "separatethousands": True}
    drawing["yaxis"] |= {"type": "category", "autorange": "reversed", "showgrid": False, "ticklabelstandoff": 6}
    drawing |= {"bargap": 0.45}
    around = f" with their {ranking.around}" if ranking.around else ""
    caption = f"Training samples per second: medians of the repeats{around}."
    if any(ranking.crowded):
        caption += " Hatched bars did not have cores or hosts of their own."
    bars = {
        "type": "bar",
        "orientation": "h",
        "name": "samples/s",
        "showlegend": False,
        "y": [plain(name) for name in ranking.names],
        "x": rounded([e.value for e in ranking.measured]),
        "text": [number_text(e.value, 4) for e in ranking.measured],
        "textposition": "inside",
        "insidetextanchor": "start",
        "insidetextfont": {"color": "var(--on-blue)"},
        "marker": {
            "color": "var(--blue)",
            "pattern": {
                "shape": ["/" if shared else "" for shared in ranking.crowded],
                "bgcolor": "var(--blue)",
                "fgcolor": "var(--on-blue)",
                "fgopacity": 0.3,
                "size": 7,
            },
        },
        "error_x": _error_bars(ranking.measured, "var(--ink)"),
        "hovertemplate": "%{y}: %{text} samples/s<extra></extra>",
    }
    rows: list[list[str | float | None]] = [
        [named, *rounded((e.value, e.low, e.high))] for named, e in zip(ranking.names, ranking.measured, strict=True)
    ]
    return Figure(
        name=name,
        title=ranking.title,
        caption=caption,
        keys=(),
        data=[bars],
        layout=drawing,
        terms=("samples/s", "series"),
        numbers=Numbers(("series", "samples/s", "low", "high"), rows),
    )


def _measured(line: Line) -> Line:
    """A line without the points that were not measured."""
    shown = [index for index, estimate in enumerate(line.measured) if estimate is not None]
    return Line(
        name=line.name,
        ranks=tuple(line.ranks[index] for index in shown),
        points=tuple(line.points[index] for index in shown),
        measured=tuple(line.measured[index] for index in shown),
        crowded=tuple(line.crowded[index] for index in shown),
        labels=tuple(line.labels[index] for index in shown) if line.labels else (),
    )


def _line_key(line: Line, number: int | None) -> Key:
    """How a line is drawn; its number is None where it is the only one."""
    if number is None:
        return Key(label="measured", color="blue", marker="circle")
    color, marker = LINE_STYLES[number % len(LINE_STYLES)]
    # A second and a third turn through the colours have dashes of their own.
    dash = ("solid", "dot", "dashdot")[number // len(LINE_STYLES) % 3]
    return Key(label=line.name, color=color, marker=marker, dash=dash)


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


def _beside(own: Sequence[int], ranks: list[int], *, number: int, count: int, logarithmic: bool) -> list[float]:
    """Where the points of one line of several stand: side by side at their ranks, so that no bar hides another."""
    if count == 1:
        return list(own)
    shift = (number - (count - 1) / 2) * min(0.012, 0.06 / count)
    if logarithmic:
        return [n * (max(ranks) / min(ranks)) ** shift for n in own]
    return [n + (max(ranks) - min(ranks)) * shift for n in own]


def _interval_trace(line: Line, xs: list[float], key: Key, several: bool) -> dict[str, Any]:
    """Error bars alone: a point without an interval, as a baseline against itself, gets none."""
    pairs = [(x, e) for x, e in zip(xs, line.measured, strict=True) if e is not None and e.low < e.high]
    color = f"var(--{key.color})" if several else "var(--ink)"
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x for x, _ in pairs],
        "y": rounded([e.value for _, e in pairs]),
        "meta": key.label,
        "marker": {"size": 1, "color": color},
        "error_y": _error_bars([e for _, e in pairs], color) | {"width": 7},
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _error_bars(estimates: Sequence[Estimate], color: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": rounded([e.high - e.value for e in estimates]),
        "arrayminus": rounded([e.value - e.low for e in estimates]),
        "color": color,
        "thickness": 1.5,
    }


def _measured_trace(line: Line, xs: list[float], key: Key, hover: str, sunken: list[bool]) -> dict[str, Any]:
    color = f"var(--{key.color})"
    estimates = [estimate for estimate in line.measured if estimate is not None]
    return {
        "type": "scatter",
        "mode": "lines+markers+text" if line.labels else "lines+markers",
        "name": plain(key.label),
        "meta": key.label,
        "x": xs,
        "y": rounded([e.value for e in estimates]),
        "text": _spaced(line.labels),
        "textposition": ["top right" if low else "bottom right" for low in sunken],
        "textfont": {"size": 13, "color": "var(--ink)"},
        "cliponaxis": False,
        "line": {"color": color, "width": 2.5, "dash": key.dash},
        "marker": {
            "symbol": key.marker,
            "size": 8,
            "color": ["var(--surface)" if shared else color for shared in line.crowded],
            "line": {"color": color, "width": 2},
        },
        "customdata": [
            [plain(point), number_text(e.value), number_text(e.low), number_text(e.high)]
            for point, e in zip(line.points, estimates, strict=True)
        ],
        "hovertemplate": "%{customdata[0]}<br>" + hover + "<br>%{customdata[2]} to %{customdata[3]}<extra></extra>",
    }


def _spaced(labels: Sequence[str]) -> list[str]:
    """Labels, of which so many are left out that those that stay have room; the last stays."""
    every = max(1, math.ceil(len(labels) / _MOST_LABELS))
    return [two_lines(label) if (len(labels) - 1 - index) % every == 0 else "" for index, label in enumerate(labels)]


def _rank_axis(ranks: list[int], *, logarithmic: bool, labels: bool) -> dict[str, Any]:
    """An axis with the measured ranks as its only ticks, and room beside the first and the last."""
    low, high = (math.log10(min(ranks)), math.log10(max(ranks))) if logarithmic else (min(ranks), max(ranks))
    room = (high - low) * 0.16
    return {
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
