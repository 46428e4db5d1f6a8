"""Unit conversions, and numbers as text.

seconds(12_340_000_000)      12.34         nanoseconds to seconds
duration_text(0.01234)       '12.3 ms'
duration_text(75.2)          '1 min 15 s'
bytes_text(2_762_360)        '2.8 MB'
count_text(690590)           '690,590'
counted(2, "rank")           '2 ranks'
percent_text(0.934)          '93.4 %'
interval_text(4.2, 4.0, 4.5) '4.20 [4.00, 4.50]'
"""

from __future__ import annotations

import math

NS_PER_S = 1_000_000_000


def seconds(ns: int | float) -> float:
    """Nanoseconds as seconds."""
    return ns / NS_PER_S


def nanoseconds(s: float) -> int:
    """Seconds as whole nanoseconds."""
    return round(s * NS_PER_S)


def number_text(value: float | None, digits: int = 3) -> str:
    """A number with `digits` significant digits and no exponent; '–' if there is none."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 6)}f}"


def interval_text(value: float | None, low: float | None, high: float | None, digits: int = 3) -> str:
    """A figure with its interval, all with the same number of decimals."""
    if value is None:
        return "–"
    if low is None or high is None:
        return number_text(value, digits)
    decimals = 0 if value == 0 else max(0, digits - 1 - math.floor(math.log10(abs(value))))
    decimals = min(decimals, 6)
    return f"{value:,.{decimals}f} [{low:,.{decimals}f}, {high:,.{decimals}f}]"


def duration_text(value_s: float | None) -> str:
    """A duration in a suitable unit, from ns to h."""
    if value_s is None:
        return "–"
    if value_s < 0:
        return "-" + duration_text(-value_s)
    for limit_s, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (60.0, 1.0, "s")):
        if value_s < limit_s:
            return f"{number_text(value_s * factor)} {unit}"
    if value_s < 3600:
        return f"{int(value_s // 60)} min {int(value_s % 60)} s"
    return f"{int(value_s // 3600)} h {int(value_s % 3600 // 60)} min"


def bytes_text(value: float | None) -> str:
    """Bytes in decimal units, from B to TB."""
    if value is None:
        return "–"
    for limit, factor, unit in ((1e3, 1, "B"), (1e6, 1e3, "kB"), (1e9, 1e6, "MB"), (1e12, 1e9, "GB")):
        if abs(value) < limit:
            return f"{number_text(value / factor, 2 if unit != 'B' else 3)} {unit}"
    return f"{number_text(value / 1e12, 2)} TB"


def count_text(value: int | None) -> str:
    """A whole number with thousands separators."""
    return "–" if value is None else f"{value:,}"


def counted(count: int, word: str) -> str:
    """A number and a noun, in the plural unless the number is 1."""
    return f"{count_text(count)} {word}{'' if count == 1 else 's'}"


def finite(value: float | None) -> float | None:
    """The value; None if it is infinite or NaN, such as a diverged loss."""
    return value if value is not None and math.isfinite(value) else None


def percent_text(value: float | None, decimals: int = 1) -> str:
    """A fraction as a percentage."""
    return "–" if value is None else f"{value * 100:.{decimals}f} %"
