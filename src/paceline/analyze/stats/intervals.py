"""Statistics over repeats: a median with its interval, a mean with its spread, a ratio of two medians.

Run times are neither normal nor symmetric. The interval of a median therefore assumes only that repeats are
independent: of n sorted values the k-th and the (n+1-k)-th lie on either side of the true median with probability

    1 - 2 · P(Binomial(n, ½) < k)

     n        interval                  coverage
     1 to 4   lowest to highest         None: too few for a confidence interval
     5        lowest to highest         0.9375
     6 to 8   lowest to highest         0.969, 0.984, 0.992
     9        2nd to 8th                0.961
    20        6th to 15th               0.959

Source: inversion of the sign test (W. R. Thompson, 1936).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from paceline.records.results import Interval, Spread

CONFIDENCE = 0.95
FEWEST_FOR_INTERVAL = 5
"""With fewer values, even the range has a coverage below 90 %."""


def median_interval(values: Sequence[float]) -> Interval:
    """The median and the narrowest symmetric order-statistic interval with a coverage of at least 95 %.

    If there is none, the range: with its coverage from five values on, without below.
    """
    assert values, "no values"
    ordered, n = sorted(values), len(values)
    k = _order_statistic(n)
    return Interval(
        median=statistics.median(ordered),
        low=ordered[k - 1],
        high=ordered[n - k],
        n=n,
        coverage=coverage(n, k) if n >= FEWEST_FOR_INTERVAL else None,
    )


def known_interval(values: Iterable[float | None]) -> Interval | None:
    """`median_interval` of the values that are finite numbers; None if there are none."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return median_interval(known) if known else None


def coverage(n: int, k: int) -> float:
    """Probability that the median lies between the k-th lowest and the k-th highest of n values."""
    outside = 2 * sum(math.comb(n, i) for i in range(k))
    # Division of Python integers rounds once, for any n.
    return (2**n - outside) / 2**n


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation; nan or inf if a value is."""
    assert values, "no values"
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        std = float(array.std(ddof=1)) if len(array) > 1 else None
        return Spread(mean=float(array.mean()), std=std, n=len(array))


def ratio_interval(numerators: Sequence[float | None], denominators: Sequence[float | None]) -> Interval:
    """The ratio of two medians, with an interval from the ratios within each repeat.

    The position is the repeat; None if it was not measured. Runs of all points are interleaved, so noise of the machine
    affects the same repeat of both sides and cancels within it. The estimate uses every value: it is the ratio of the
    two medians in the table. If it lies outside the interval of the paired ratios, the interval is widened to include
    it. Without any pair the interval is the range of all ratios, with n = 0.

    Assumes: all values are positive.
    """
    above = [value for value in numerators if value is not None]
    below = [value for value in denominators if value is not None]
    assert above and below, "no values on one side"
    estimate = statistics.median(above) / statistics.median(below)
    pairs = zip(numerators, denominators, strict=False)  # surplus repeats of one side have no partner
    ratios = [over / under for over, under in pairs if over is not None and under is not None]
    if not ratios:
        return Interval(median=estimate, low=min(above) / max(below), high=max(above) / min(below), n=0, coverage=None)
    paired = median_interval(ratios)
    return replace(paired, median=estimate, low=min(paired.low, estimate), high=max(paired.high, estimate))


def scaled(interval: Interval, factor: float) -> Interval:
    """The interval of a value times a positive constant."""
    return replace(interval, median=interval.median * factor, low=interval.low * factor, high=interval.high * factor)


def _order_statistic(n: int) -> int:
    """The largest k whose interval has a coverage of at least 95 %; 1, the range, if none has."""
    tail, k = 1, 1  # `tail`: number of outcomes of n tosses with fewer than k heads
    while k < (n + 1) // 2:
        tail += math.comb(n, k)
        if 1 - 2 * tail / 2**n < CONFIDENCE:
            break
        k += 1
    return k
