"""Plots of a comparison: bars of every side beside one another, and where the time of a step goes on each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paceline.metrics import metric
from paceline.records.changes import Change, Comparison, SideFigures
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Interval
from paceline.reporting.figures.canvas import HEIGHT, LINE_STYLES, Figure, Numbers, axis_title, layout, plain, rounded
from paceline.reporting.figures.legend import KIND_STYLES, Key, kind_key
from paceline.reporting.tables.change_tables import time_scale, verdict
from paceline.reporting.tables.side_tables import letters
from paceline.units import finite, number_text, percent_text

# Of sides, in turn: bars have a pattern besides their colour.
_PATTERNS = ("", "/", "x", "\\", "-", "|", "+", ".", "/", "x", "\\", "-")
_FROM_TO = "%{customdata[1]} to %{customdata[2]}"
_MOST_POINTS = 16
"""Beside one another: of more those with the most ranks, which stand last."""


def compare_figures(found: Comparison) -> list[Figure]:
    """Every plot that there are numbers for."""
    seconds = [each.epoch_s.median for each in found.figures if each.epoch_s]
    unit, factor = ("s", 1.0) if max(seconds, default=1.0) >= 1 else ("ms", 1e3)
    made = [
        _ratios(found),
        *_ledgers(found),
        _bars(found, "throughput", "Throughput", metric("samples/s").heading, lambda each: each.samples_per_s, 1.0),
        _bars(found, "epoch", "Epoch time", metric("epoch time").heading_in(unit), lambda each: each.epoch_s, factor),
        _bars(
            found, "accuracy", "Test accuracy", "test accuracy (%)", lambda each: each.test_accuracy, 100.0, zero=False
        ),
    ]
    return [figure for figure in made if figure is not None]


def _bars(
    found: Comparison,
    name: str,
    title: str,
    axis: str,
    value: Callable[[SideFigures], Interval | None],
    factor: float,
    *,
    zero: bool = True,
) -> Figure | None:
    """One figure of every side at every point: a group of bars a point; of marks, where bars from 0 show nothing."""
    shown = _points(found)
    known = {
        (each.point, each.letter): interval
        for each in found.figures
        if (interval := value(each)) is not None and finite(interval.median) is not None
    }
    if not known:
        return None
    data, keys = [], []
    for number, letter in enumerate(letters(found)):
        own = [(label, known[point, letter]) for point, label in shown.items() if (point, letter) in known]
        if own:
            data.append(_side_trace(letter, number, own, factor, bars=zero))
            keys.append(_key(letter, number, bars=zero))
    drawing = layout(height=HEIGHT)
    drawing["xaxis"] |= {"type": "category"}
    drawing["yaxis"] |= {"title": axis_title(axis), **({"rangemode": "tozero"} if zero else {})}
    drawing |= {"barmode": "group", "bargap": 0.3, "scattermode": "group", "scattergap": 0.4}
    wide = [interval for interval in known.values() if interval.n > 1]
    caption = f"Medians over runs{f', with their {_around(wide)}' if wide else ''}." + _left_out(found)
    if not zero:
        caption += " The axis does not begin at 0."
    return Figure(name=name, title=title, caption=caption, keys=tuple(keys), data=data, layout=drawing)


def _around(intervals: Sequence[Interval]) -> str:
    covered = [interval.coverage is not None for interval in intervals]
    return "intervals" if all(covered) else "intervals, or ranges of fewer than five" if any(covered) else "ranges"


def _side_trace(
    letter: str, number: int, own: Sequence[tuple[str, Interval]], factor: float, *, bars: bool
) -> dict[str, Any]:
    color, marker = LINE_STYLES[number % len(LINE_STYLES)]
    values = [interval.median * factor for _, interval in own]
    ends = [_ends(interval, factor) for _, interval in own]
    trace: dict[str, Any] = {
        "name": letter,
        "x": [plain(label) for label, _ in own],
        "y": rounded(values),
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": rounded([high - y for (_, high), y in zip(ends, values, strict=True)]),
            "arrayminus": rounded([y - low for (low, _), y in zip(ends, values, strict=True)]),
            "color": "var(--ink)",
            "thickness": 1.5,
        },
        "customdata": [
            [number_text(y, 4), number_text(low, 4), number_text(high, 4)]
            for (low, high), y in zip(ends, values, strict=True)
        ],
        "hovertemplate": f"{letter}, %{{x}}<br>%{{customdata[0]}}<br>{_FROM_TO}<extra></extra>",
    }
    if bars:
        return trace | {"type": "bar", "marker": _fill(color, _PATTERNS[number % len(_PATTERNS)])}
    mark = {"symbol": marker, "size": 9, "color": f"var(--{color})"}
    return trace | {"type": "scatter", "mode": "markers", "marker": mark, "offsetgroup": letter}


def _ends(interval: Interval, factor: float) -> tuple[float, float]:
    low, high = (interval.median if finite(end) is None else end for end in (interval.low, interval.high))
    return low * factor, high * factor


def _fill(color: str, pattern: str) -> dict[str, Any]:
    return {
        "color": f"var(--{color})",
        "line": {"color": "var(--surface)", "width": 1},
        "pattern": {
            "shape": pattern,
            "bgcolor": f"var(--{color})",
            "fgcolor": "var(--surface)",
            "fgopacity": 0.45,
            "size": 7,
            "solidity": 0.25,
        },
    }


def _key(letter: str, number: int, *, bars: bool) -> Key:
    color, marker = LINE_STYLES[number % len(LINE_STYLES)]
    if bars:
        return Key(label=letter, color=color, pattern=_PATTERNS[number % len(_PATTERNS)])
    return Key(label=letter, color=color, marker=marker)


def _ratios(found: Comparison) -> Figure | None:
    """Time of every other side over A's, with the interval of the test; a line where nothing changes."""
    shown = _points(found)
    data, keys = [], []
    rows: list[list[str | float | None]] = []
    for number, changes in enumerate(found.against, start=1):
        own = [change for change in changes.changes if change.a in shown]
        if not own:
            continue
        color, marker = LINE_STYLES[number % len(LINE_STYLES)]
        labels = [shown[change.a] for change in own]
        data.append(_ratio_trace(changes.letter, own, labels, color, marker))
        keys.append(Key(label=changes.letter, color=color, marker=marker))
        rows += [
            [changes.letter, change.label, *rounded(_ratio(change)), change.time_s.p_adjusted, verdict(change)]
            for change in own
        ]
    if not data:
        return None
    drawing = layout(height=max(HEIGHT, 110 + 26 * len(rows)))
    line = {"color": "var(--muted)", "width": 1.5, "dash": "dash"}
    drawing["shapes"] = [
        {"type": "line", "xref": "x", "yref": "paper", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "line": line}
    ]
    ends = [1.0, *(end for _, _, _, low, high, *_ in rows for end in (low, high) if isinstance(end, float))]
    room = 0.06 * (max(ends) - min(ends) or 1.0)
    title = axis_title("time ÷ A's: left of 1 is faster")
    drawing["xaxis"] |= {"title": title, "showgrid": True, "range": [min(ends) - room, max(ends) + room]}
    drawing["yaxis"] |= {"type": "category", "autorange": "reversed", "showgrid": False, "ticklabelstandoff": 6}
    drawing |= {"scattermode": "group", "scattergap": 0.3}
    keys.append(Key(label="no change", color="muted", dash="dash"))
    caption = (
        "Time per step or sample over A's, with the interval of the test. Hollow where the two cannot be told apart."
    )
    columns = ("side", "point", "ratio", "low", "high", "p", "verdict")
    return Figure(
        name="ratio",
        title="Against A",
        caption=caption + _left_out(found),
        keys=tuple(keys),
        data=data,
        layout=drawing,
        numbers=Numbers(columns, rows),
    )


def _ratio(change: Change) -> tuple[float, float, float]:
    ratio = change.time_s.change
    return ratio.median, ratio.low, ratio.high


def _ratio_trace(letter: str, own: Sequence[Change], labels: Sequence[str], color: str, marker: str) -> dict[str, Any]:
    middles, lows, highs = zip(*map(_ratio, own), strict=True)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": letter,
        "orientation": "h",
        "offsetgroup": letter,
        "y": [plain(label) for label in labels],
        "x": rounded(middles),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": rounded([high - middle for high, middle in zip(highs, middles, strict=True)]),
            "arrayminus": rounded([middle - low for low, middle in zip(lows, middles, strict=True)]),
            "color": f"var(--{color})",
            "thickness": 2,
        },
        "marker": {
            "symbol": marker,
            "size": 10,
            "color": [f"var(--{color})" if change.time_s.real else "var(--surface)" for change in own],
            "line": {"color": f"var(--{color})", "width": 2},
        },
        "customdata": [
            [verdict(change), number_text(low), number_text(high)]
            for change, low, high in zip(own, lows, highs, strict=True)
        ],
        "hovertemplate": f"{letter} ÷ A, %{{y}}: %{{x}}<br>{_FROM_TO}, %{{customdata[0]}}<extra></extra>",
    }


def _ledgers(found: Comparison) -> list[Figure]:
    """Time by kind of every side at every point; a plot for each unit: steps and samples have no axis in common."""
    units = dict.fromkeys(each.unit for each in found.figures if each.ledger_s)
    return [_ledger(found, unit, index) for index, unit in enumerate(units)]


def _ledger(found: Comparison, unit: str, index: int) -> Figure:
    shown = _points(found)
    own = [each for each in found.figures if each.unit == unit and each.ledger_s and each.point in shown]
    longest_s = max(sum(each.ledger_s.values()) for each in own)
    scale, factor = time_scale(longest_s)
    labels = [plain(f"{each.letter} · {shown[each.point]}") for each in own]
    kinds = [kind for kind in LEDGER_KINDS if any(each.ledger_s.get(kind) for each in own)]
    drawing = layout(height=max(HEIGHT, 80 + 40 * len(own)))
    drawing |= {"barmode": "stack", "bargap": 0.3 if len(own) > 1 else 0.6}
    drawing["xaxis"] |= {"title": axis_title(f"time per {unit} ({scale})"), "rangemode": "tozero"}
    drawing["yaxis"] |= {"type": "category", "autorange": "reversed", "showgrid": False, "ticklabelstandoff": 6}
    data = []
    for kind in kinds:
        color, pattern = KIND_STYLES[kind]
        values = [each.ledger_s.get(kind, 0.0) * factor for each in own]
        fill = _fill(color, pattern) | {"line": {"color": "var(--surface)", "width": 1}}
        fill["pattern"] |= {"fgcolor": f"var(--on-{color})", "fgopacity": 0.3}
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": kind,
                "y": labels,
                "x": rounded(values),
                "marker": fill,
                "customdata": [
                    [number_text(value), percent_text(value / (sum(each.ledger_s.values()) * factor), 0)]
                    for value, each in zip(values, own, strict=True)
                ],
                "hovertemplate": f"{kind}: %{{customdata[0]}} {scale}, %{{customdata[1]}}<extra></extra>",
            }
        )
    rows: list[list[str | float | None]] = [
        [each.letter, each.label, kind, *rounded([each.ledger_s.get(kind)])] for each in own for kind in LEDGER_KINDS
    ]
    caption = f"Time per {unit} by kind, mean over ranks, of the median run of each side at each point." + _left_out(
        found
    )
    return Figure(
        name="ledger" if not index else f"ledger-{unit}",
        title="Where the time goes",
        caption=caption,
        keys=tuple(kind_key(kind) for kind in kinds),
        data=data,
        layout=drawing,
        terms=tuple(kinds),
        numbers=Numbers(("side", "point", "kind", f"seconds per {unit}"), rows),
    )


def _points(found: Comparison) -> dict[str, str]:
    """The points that are drawn, by A's identifier, each with a label that no other has."""
    labels = {each.point: each.label for each in found.figures}
    shown = list(labels.items())[-_MOST_POINTS:]
    texts = [label for _, label in shown]
    return {point: label if texts.count(label) == 1 else f"{label} ({point[-10:]})" for point, label in shown}


def _left_out(found: Comparison) -> str:
    whole = len({each.point for each in found.figures})
    return f" {_MOST_POINTS} of {whole} points: those with the most ranks." if whole > _MOST_POINTS else ""
