"""The axes of a plot in Plotly's form, as places on a drawing: range, ticks, and where a value lies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from paceline.report.canvas import Figure

_ROOM = 0.06
"""Of a range that the plot does not give itself, on either side."""
_TICKS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """From value to place: linear, logarithmic, or one place after the other for names."""

    low: float
    high: float
    """Of a logarithmic axis the logarithms."""
    start: float
    end: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False
    names: tuple[str, ...] = ()

    def at(self, value: Any) -> float:
        """Where a value lies, within the drawing's digits."""
        number = float(self.names.index(value)) if self.names else float(value)
        if self.logarithmic:
            number = math.log10(max(number, 1e-300))
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)


def axis(figure: Figure, letter: str, start: float, end: float) -> Axis:
    """The axis `x` or `y` of a plot, laid between two places."""
    told = figure.layout[f"{letter}axis"]
    if told.get("type") == "category":
        names = tuple(dict.fromkeys(value for trace in figure.data for value in trace[letter]))
        ticks = tuple((float(index), name) for index, name in enumerate(names))
        return Axis(low=-0.5, high=max(0.5, len(names) - 0.5), start=start, end=end, ticks=ticks, names=names)
    logarithmic = told.get("type") == "log"
    low, high = told["range"] if "range" in told else _range(figure, letter, logarithmic)
    least, most = min(low, high), max(low, high)  # a range that is given may run downwards
    within = [(value, text) for value, text in _ticks(told, least, most, logarithmic) if least <= value <= most]
    return Axis(low=low, high=high, start=start, end=end, ticks=tuple(within), logarithmic=logarithmic)


def lines_of(text: str) -> list[str]:
    """The lines of a label in Plotly's small HTML, as plain text."""
    return [unescape(line) for line in text.split("<br>")]


def numbers(values: Iterable[Any]) -> list[float]:
    """Those that are one."""
    return [float(value) for value in values if isinstance(value, int | float)]


def _range(figure: Figure, letter: str, logarithmic: bool) -> tuple[float, float]:
    """What holds all that is drawn, bars of intervals included, and some room."""
    seen = [number for trace in figure.data for number in _extent(trace, letter)]
    if logarithmic:
        positive = [math.log10(number) for number in seen if number > 0]
        low, high = min(positive, default=0.0), max(positive, default=1.0)
    else:
        low, high = min(seen, default=0.0), max(seen, default=1.0)
        if figure.layout[f"{letter}axis"].get("rangemode") == "tozero":
            low = min(0.0, low)
    room = _ROOM * (high - low or 1.0)
    from_zero = low == 0.0 and not logarithmic
    return low - (0.0 if from_zero else room), high + room


def _extent(trace: dict[str, Any], letter: str) -> list[float]:
    values = trace.get(letter, ())
    error = trace.get(f"error_{letter}")
    if error is None:
        return numbers(values)
    ends = zip(values, error["array"], error["arrayminus"], strict=True)
    return [end for value, above, below in ends for end in (value + above, value - below)]


def _ticks(told: dict[str, Any], low: float, high: float, logarithmic: bool) -> list[tuple[float, str]]:
    """Places, of a logarithmic axis as logarithms, and what stands there."""
    suffix = told.get("ticksuffix", "")
    if "tickvals" in told:
        values: Sequence[float] = told["tickvals"]
        texts = told.get("ticktext") or [f"{value:,g}" for value in values]
    else:
        step = told.get("dtick") or _step((high - low) / _TICKS)
        first = math.ceil(low / step - 1e-9)
        values = [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]
        values = [10**value for value in values] if logarithmic else values
        texts = [f"{round(value, 10):,g}" for value in values]
    places = [math.log10(value) for value in values] if logarithmic else list(map(float, values))
    return [(place, f"{text}{suffix}") for place, text in zip(places, texts, strict=True)]


def _step(least: float) -> float:
    """1, 2 or 5 in a power of ten: the first that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))
