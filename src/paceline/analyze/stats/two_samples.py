"""Two independent samples: the Mann-Whitney test, its interval, and the smallest detectable change.

The p-value is exact, ties included: the share of all assignments of the values to two sides of these sizes whose rank
sum is at least as far from the middle. The interval is the inversion of the test (Hodges and Lehmann, 1963): over all
pairs of a value of A and a value of B, the k-th lowest and the k-th highest change, with the largest k that gives a
coverage of at least 95 %.

    values on each side   least p     interval
    3 and 3               0.100       none, but the range of all pairs
    4 and 4               0.029       lowest to highest of 16 pairs, 97.1 %
    5 and 5               0.008       3rd to 23rd of 25 pairs, 96.8 %
    10 and 10             0.00001     24th to 77th of 100 pairs, 95.7 %

Unlike the points of a study, A and B are not interleaved, so their repeats are not paired.

Assumes: values of a side are independent, and the two distributions differ in location or scale only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from paceline.analyze.stats.intervals import CONFIDENCE, median_interval
from paceline.records.changes import Versus
from paceline.records.results import Interval

LEVEL = 1 - CONFIDENCE


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p-value of the Mann-Whitney test."""
    assert a and b, "no values on one side"
    fewer, more = sorted((a, b), key=len)  # the smaller side has fewer assignments to count
    values, n = np.concatenate((fewer, more)), len(fewer)
    ordered = np.sort(values)
    # Twice the mean rank of equal values: integers, so sums are exact.
    ranks = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right") + 1).tolist()
    middle = n * (len(values) + 1)
    ways = _ways(ranks, n)
    far = np.abs(np.arange(len(ways)) - middle) >= abs(sum(ranks[:n]) - middle)
    return min(1.0, float(ways[far].sum() / ways.sum()))


def least_p(n: int, m: int) -> float:
    """The smallest possible p-value of n and m distinct values."""
    return min(1.0, 2 / math.comb(n + m, n))


def versus(a: Sequence[float], b: Sequence[float], *, ratio: bool) -> Versus:
    """The change from A to B, B / A if `ratio`, else B − A; without correction for multiple tests."""
    pairs = _ratios(a, b) if ratio else _differences(a, b)
    first, second = median_interval(a), median_interval(b)
    estimate = second.median / first.median if ratio else second.median - first.median
    found = Versus(
        a=first,
        b=second,
        change=_interval(pairs, estimate, len(a), len(b)),
        p=(p := rank_test(a, b)),
        p_adjusted=p,
        p_least=least_p(len(a), len(b)),
        real=False,
    )
    return replace(found, real=_is_real(found, neutral=float(ratio)))


def known_versus(a: Iterable[float | None], b: Iterable[float | None], *, ratio: bool) -> Versus | None:
    """`versus` of the finite values; None if a side has none, or a ratio would need a value ≤ 0."""
    first, second = ([value for value in side if value is not None and math.isfinite(value)] for side in (a, b))
    if not first or not second or (ratio and min(*first, *second) <= 0):
        return None
    return versus(first, second, ratio=ratio)


def difference(a: Sequence[float], b: Sequence[float], estimate: float) -> Interval:
    """An estimate of B − A, with the interval over their pairs."""
    return _interval(_differences(a, b), estimate, len(a), len(b))


def corrected(found: Sequence[Versus], *, ratio: bool) -> list[Versus]:
    """The changes with p-values corrected by Holm's method, over those with enough values to be significant."""
    able = [index for index, each in enumerate(found) if each.p_least <= LEVEL]
    adjusted = dict(zip(able, holm([found[index].p for index in able]), strict=True))
    raised = [replace(each, p_adjusted=adjusted.get(index, each.p)) for index, each in enumerate(found)]
    return [replace(each, real=_is_real(each, neutral=float(ratio))) for each in raised]


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values, corrected by Holm's method: the family-wise error rate stays below the level."""
    adjusted, highest = [0.0] * len(ps), 0.0
    for done, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, (len(ps) - done) * ps[index])
        adjusted[index] = min(1.0, highest)
    return adjusted


def smallest_seen(a: Sequence[float], b: Sequence[float], tests: int) -> float | None:
    """The smallest significant ratio − 1 in a family of `tests` tests; None if no ratio would be significant.

    Scaling B scales all ratios of pairs: the smallest factor that lifts the k-th lowest above 1 is significant.
    """
    k = _order_statistic(len(a), len(b), LEVEL / max(tests, 1))
    if k is None:
        return None
    pairs = np.sort(_ratios(a, b), axis=None)
    estimate = float(np.median(b) / np.median(a))
    return max(estimate / float(pairs[k - 1]), float(pairs[-k]) / estimate, 1.0) - 1


def _is_real(found: Versus, *, neutral: float) -> bool:
    inside = found.change.low <= neutral <= found.change.high
    return found.p_adjusted <= LEVEL and found.change.coverage is not None and not inside


def _ratios(a: Sequence[float], b: Sequence[float]) -> np.ndarray:
    return np.divide.outer(np.asarray(b, float), np.asarray(a, float))


def _differences(a: Sequence[float], b: Sequence[float]) -> np.ndarray:
    return np.subtract.outer(np.asarray(b, float), np.asarray(a, float))


def _interval(pairs: np.ndarray, estimate: float, n: int, m: int) -> Interval:
    """Interval of the pairs, widened to include the estimate; their range, without coverage, if there are too few."""
    k = _order_statistic(n, m, LEVEL)
    ordered = np.sort(pairs, axis=None)
    low, high = float(ordered[(k or 1) - 1]), float(ordered[-(k or 1)])
    return Interval(
        median=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        n=min(n, m),
        coverage=None if k is None else 1 - 2 * float(_tail(n, m)[k - 1]),
    )


def _order_statistic(n: int, m: int, level: float) -> int | None:
    """The largest k whose interval has a coverage of at least 1 − `level`; None if there is none."""
    k = int(np.searchsorted(2 * _tail(n, m), level, side="right"))
    return min(k, (n * m + 1) // 2) or None


@lru_cache(maxsize=64)
def _tail(n: int, m: int) -> np.ndarray:
    """P(U <= 0), P(U <= 1), ... of the Mann-Whitney U without ties, under the null hypothesis."""
    ways = _ways(list(range(1, n + m + 1)), n)[n * (n + 1) // 2 :]
    return np.cumsum(ways) / ways.sum()


def _ways(ranks: Sequence[int], n: int) -> np.ndarray:
    """By sum: the number of subsets of n ranks with that sum."""
    most = sum(sorted(ranks)[-n:])
    ways = np.zeros((n + 1, most + 1))
    ways[0, 0] = 1
    for rank in ranks:
        for taken in range(n, 0, -1):  # downwards: no rank is used twice
            ways[taken, rank:] += ways[taken - 1, : most + 1 - rank]
    return ways[n]
