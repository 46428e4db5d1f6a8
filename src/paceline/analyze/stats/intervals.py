"""Figures over repeats: a median with its interval, a mean with its spread, a ratio of two medians.

Times of runs are neither normal nor symmetric: a machine is late far more often than early. So
the interval around a median takes nothing for granted but that repeats are independent: of n
sorted values the k-th and the (n+1-k)-th lie on either side of the true median with probability

    1 - 2 · P(Binomial(n, ½) < k)

     n        interval                  coverage
     1 to 4   lowest to highest         None: too few to be called a confidence interval
     5        lowest to highest         0.9375
     6 to 8   lowest to highest         0.969, 0.984, 0.992
     9        2nd to 8th                0.961
    20        6th to 15th               0.959

Source: the sign test turned round (W. R. Thompson, 1936).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from paceline.records.results import Interval, Spread

CONFIDENCE = 0.95
FEWEST_FOR_INTERVAL = 5
"""With fewer, even lowest to highest misses the median more often than one time in ten."""


def median_interval(values: Sequence[float]) -> Interval:
    """The median and the narrowest symmetric order-statistic interval that covers it with 95 %.

    Where no such pair exists it is the range: with its own coverage from five values on, without
    any below that.
    """
    assert values, "an interval needs a value"
    ordered, n = sorted(values), len(values)
    k = _order_statistic(n)
    return Interval(
        median=statistics.median(ordered),
        low=ordered[k - 1],
        high=ordered[n - k],
        n=n,
        coverage=coverage(n, k) if n >= FEWEST_FOR_INTERVAL else None,
    )


def coverage(n: int, k: int) -> float:
    """Probability that the median lies between the k-th lowest and the k-th highest of n values."""
    outside = 2 * sum(math.comb(n, i) for i in range(k))
    # Python divides integers of any size with one rounding, so this is exact for any n.
    return (2**n - outside) / 2**n


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation; of a diverged run's nan or inf, nan or inf."""
    assert values, "a mean needs a value"
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        std = float(array.std(ddof=1)) if len(array) > 1 else None
        return Spread(mean=float(array.mean()), std=std, n=len(array))


def ratio_interval(numerators: Sequence[float | None], denominators: Sequence[float | None]) -> Interval:
    """The ratio of two medians, with an interval from the ratios within each repeat.

    Position is the repeat; None stands where that repeat was not measured. Runs are interleaved
    over points, so a noisy minute falls on the same repeat of both: within a repeat it cancels,
    which is why the interval is that of the paired ratios and not made of two separate ones. The
    estimate uses every value, and is the ratio of the two figures that stand in the table; it need
    not lie among the paired ratios, and the interval is then widened to reach it. A repeat that
    one side lacks counts for the estimate alone. Without any pair the interval is the range of all
    ratios, n = 0.

    Assumes: all values are positive.
    """
    above = [value for value in numerators if value is not None]
    below = [value for value in denominators if value is not None]
    assert above and below, "a ratio needs a value on both sides"
    estimate = statistics.median(above) / statistics.median(below)
    pairs = zip(numerators, denominators, strict=False)  # what one side has more of has no partner
    ratios = [over / under for over, under in pairs if over is not None and under is not None]
    if not ratios:
        return Interval(median=estimate, low=min(above) / max(below), high=max(above) / min(below), n=0, coverage=None)
    paired = median_interval(ratios)
    return Interval(
        median=estimate,
        low=min(paired.low, estimate),
        high=max(paired.high, estimate),
        n=paired.n,
        coverage=paired.coverage,
    )


def scaled(interval: Interval, factor: float) -> Interval:
    """An interval of a figure times a positive constant."""
    return Interval(
        median=interval.median * factor,
        low=interval.low * factor,
        high=interval.high * factor,
        n=interval.n,
        coverage=interval.coverage,
    )


def _order_statistic(n: int) -> int:
    """The largest k whose interval still covers with 95 %; 1, the range, where none does."""
    tail, k = 1, 1
    # `tail` counts the outcomes of n tosses with fewer than k heads; adding the next term keeps
    # the search linear in n.
    while k < (n + 1) // 2:
        tail += math.comb(n, k)
        if 1 - 2 * tail / 2**n < CONFIDENCE:
            break
        k += 1
    return k
