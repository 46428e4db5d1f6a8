"""Cells of a table: values, and the text that they are rendered to.

    Cell(4, marks=("*",))                                    4 *
    interval_cell(interval)                                  1.88 [1.83, 1.91]
    spread_cell(spread)                                      97.2 ± 0.3 %
    Cell("flat")                                             flat
    Cell(None)                                               –

No value is parsed out of a text: CSV uses `number`, pages and terminals use `figure` and `beside`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from paceline.metrics import PointMetric
from paceline.records.results import Interval, PointResult, Spread
from paceline.units import bytes_text, duration_text, finite

NONE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How the numbers of a cell are written: with `digits` significant digits, or with `decimals`."""

    digits: int | None = None
    general: int | None = None
    """Significant digits of a number that may be small: it has an exponent where that is shorter."""
    decimals: int = 0
    """Where neither of these is set."""
    scale: float = 1.0
    """What a value is multiplied by: 100 for a fraction in per cent, 1,000 for seconds in milliseconds."""
    unit: str = ""
    """Behind the number."""
    sign: bool = False
    """Whether a number above zero has a sign, too."""
    grouped: bool = True
    """Whether thousands are separated."""
    bare_zero: Literal["", "exact", "rounded"] = ""
    """Which zeros have no decimals and no sign: none, those that are zero, or all whose digits are."""
    apart: bool = False
    """Whether the ends of an interval have significant digits of their own; else the decimals of the value."""
    as_text: Callable[[float], str] | None = None
    """Writes the number together with a unit that depends on its size; what stands above is not used then."""

    def number(self, value: float, *, like: float | None = None, plain: bool = False) -> str:
        """A number without its unit, with the decimals of `like`; `plain` as a program reads it."""
        if self.as_text is not None:
            return self.as_text(value)
        scaled = value * self.scale
        if math.isinf(scaled):
            return "∞" if scaled > 0 else "-∞"
        if self.general is not None:
            return f"{scaled:.{self.general}g}"
        decimals = self._decimals(scaled if like is None or self.apart else like * self.scale)
        if self.bare_zero and (scaled if self.bare_zero == "exact" else round(scaled, decimals)) == 0:
            return "0"
        if plain:
            return f"{scaled:.{decimals}f}"
        text = f"{scaled:{'+' if self.sign else ''}{',' if self.grouped else ''}.{decimals}f}"
        return text.replace("-", "−") if self.sign else text

    def _decimals(self, scaled: float) -> int:
        if self.digits is None:
            return self.decimals
        return 0 if scaled == 0 else min(6, max(0, self.digits - 1 - math.floor(math.log10(abs(scaled)))))


@dataclass(frozen=True, slots=True)
class Cell:
    """A value, and its qualification in smaller type."""

    value: float | str | None
    """A word is shown as it is; None is what was not measured."""
    note: str = ""
    """Words beside the value."""
    _: KW_ONLY
    form: Form | None = None
    """None where a number is written as Python writes it."""
    interval: tuple[float | None, float | None] | None = None
    """The two ends; None for an end that is open."""
    std: float | None = None
    """Standard deviation."""
    share: float | None = None
    """Part of a whole that the value is."""
    bound: str = ""
    """`<` or `≤ ` where the true value is below the one that is shown."""
    marks: tuple[str, ...] = ()
    """Refer to footnotes that begin with them."""

    @property
    def figure(self) -> str:
        """The value as text, with its unit and its marks."""
        if self.value is None:
            text = NONE
        elif isinstance(self.value, str):
            text = self.value
        else:
            unit = f" {self.form.unit}" if self.form and self.form.unit and self.std is None else ""
            text = f"{self.bound}{self._number(self.value)}{unit}"
        return " ".join((text, *self.marks))

    @property
    def beside(self) -> str:
        """What qualifies the value as text."""
        parts = []
        if self.interval is not None:
            parts.append(f"[{', '.join(NONE if end is None else self._number(end) for end in self.interval)}]")
        if self.std is not None:
            unit = f" {self.form.unit}" if self.form and self.form.unit else ""
            parts.append(f"± {self._number(self.std)}{unit}")
        if self.share is not None:
            parts.append(share_cell(self.share).figure)
        return " ".join((*parts, *([self.note] if self.note else [])))

    @property
    def text(self) -> str:
        """Value and qualification in one line."""
        return " ".join(filter(None, (self.figure, self.beside)))

    @property
    def is_number(self) -> bool:
        """Whether a program can use the value as it is shown: a finite number that is no bound, in a known unit."""
        if self.value is None or isinstance(self.value, str) or self.bound or not math.isfinite(self.value):
            return False
        return self.form is None or (self.form.as_text is None and self.form.unit in ("", "%"))

    def number(self, value: float) -> str:
        """A number of this cell with the digits that are shown, as a program reads it."""
        return self._number(value, plain=True)

    def _number(self, value: float, *, plain: bool = False) -> str:
        if self.form is None:
            return str(value)
        like = self.value if isinstance(self.value, (int, float)) else None
        return self.form.number(value, like=like, plain=plain)


def number_cell(value: float | None, digits: int = 3) -> Cell:
    """A number with `digits` significant digits."""
    return Cell(None if value is None or math.isnan(value) else value, form=Form(digits=digits))


def count_cell(value: int | None) -> Cell:
    """A whole number with thousands separated."""
    return Cell(value, form=Form())


def fraction_cell(value: float | None, decimals: int = 1) -> Cell:
    """A fraction in per cent."""
    return Cell(value, form=_percent(decimals))


def share_cell(value: float | None) -> Cell:
    """A share of a whole to a per cent; nothing finer than half of one is told from another."""
    if value is not None and 0 < value < 0.005:
        return Cell(0.01, form=_percent(0), bound="<")
    return fraction_cell(value, 0)


def seconds_cell(value_s: float | None, *, share: float | None = None) -> Cell:
    """Seconds to a hundredth at most: finer digits of a whole run are noise."""
    if value_s is not None and 0 < value_s < 0.005:
        return Cell(0.01, form=Form(decimals=2), bound="<", share=share)
    digits = 3 if value_s is not None and value_s >= 1 else None
    return Cell(value_s, form=Form(digits=digits, decimals=2), share=share)


def duration_cell(value_s: float | None) -> Cell:
    """Seconds in the unit people would use."""
    return Cell(value_s, form=_DURATION)


def bytes_cell(value: float | None) -> Cell:
    """Bytes in the unit people would use."""
    return Cell(value, form=_BYTES)


def points_cell(value: float, low: float | None, high: float | None) -> Cell:
    """A difference of fractions in points of a hundred, and its interval beside it."""
    interval = None if low is None or high is None else (low, high)
    return Cell(value, form=Form(scale=100, decimals=2, sign=True, grouped=False), interval=interval)


def interval_cell(interval: Interval | None, factor: float = 1.0, digits: int = 3) -> Cell:
    """A median, and its interval beside it."""
    if interval is None or finite(interval.median) is None:
        return Cell(None)
    ends = (interval.low, interval.high)
    known = interval.low != interval.high and all(finite(end * factor) is not None for end in ends)
    return Cell(interval.median, form=Form(digits=digits, scale=factor), interval=ends if known else None)


def percent_cell(interval: Interval | None, decimals: int = 0) -> Cell:
    """A fraction in per cent, and its interval beside it."""
    if interval is None or finite(interval.median) is None:
        return Cell(None)
    ends = None if interval.low == interval.high else (interval.low, interval.high)
    return Cell(interval.median, form=_percent(decimals), interval=ends)


def spread_cell(spread: Spread | None) -> Cell:
    """A mean fraction and its standard deviation in per cent, to the digits that the deviation leaves certain."""
    if spread is None or finite(spread.mean) is None:
        return Cell(None)
    std = finite(spread.std)
    return Cell(spread.mean, form=_percent(1 if std is None or std >= 0.005 else 2), std=std)


def metric_cell(metric: PointMetric, result: PointResult, factor: float = 1.0) -> Cell:
    """The value of a metric with its unit and digits; `factor` is what one of its unit is in the column's."""
    value = metric.value(result)
    if isinstance(value, Interval):
        return percent_cell(value) if metric.unit == "fraction" else interval_cell(value, factor, metric.digits)
    if isinstance(value, Spread):
        return spread_cell(value) if metric.unit == "fraction" else number_cell(finite(value.mean), metric.digits)
    if metric.unit == "B":
        return bytes_cell(value)
    if metric.unit == "fraction":
        return Cell(0) if value == 0 else share_cell(value)
    return number_cell(value, metric.digits) if isinstance(value, float) else Cell(value)


def _percent(decimals: int) -> Form:
    return Form(scale=100, decimals=decimals, unit="%", grouped=False)


_DURATION, _BYTES = Form(as_text=duration_text), Form(as_text=bytes_text)


def factor_cell(value: object) -> Cell:
    """A factor's value."""
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    return Cell(value if value is None or isinstance(value, (int, float)) else str(value))
