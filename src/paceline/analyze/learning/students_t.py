"""Student's t distribution: its tail and its quantile, for tests and intervals of a mean; and the tail of Fisher's F.

    P(T > t) = ½ · I(ν/2, ½; ν / (ν + t²))      for t > 0
    P(F > f) = I(ν₂/2, ν₁/2; ν₂ / (ν₂ + ν₁ f))

with I the regularised incomplete beta function, by its continued fraction (Lentz's method, as in
Numerical Recipes, chapter 6.4). Good to ten digits, which no table of ours shows.
"""

from __future__ import annotations

import math
from functools import lru_cache

_MOST_TERMS = 300
_ENOUGH = 1e-14
_TINY = 1e-300


def tail(t: float, df: float) -> float:
    """P(T > t) with `df` degrees of freedom."""
    assert df > 0, "a t distribution needs a degree of freedom"
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    upper = 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))
    return upper if t >= 0 else 1 - upper


@lru_cache(maxsize=1024)
def quantile(p: float, df: float) -> float:
    """The t that is exceeded with probability 1 - p, for p of ½ and more."""
    assert 0.5 <= p < 1, "only the upper half"
    low, high = 0.0, 1.0
    while tail(high, df) > 1 - p:
        low, high = high, 2 * high
    for _ in range(60):  # halved so often, the rest is beyond a float's digits
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, df) > 1 - p else (low, middle)
    return (low + high) / 2


def f_tail(f: float, above: int, below: int) -> float:
    """P(F > f), F the ratio of two mean squares with `above` and `below` degrees of freedom."""
    assert above > 0 and below > 0, "an F distribution needs degrees of freedom"
    if not 0 < f < math.inf:
        return 1.0 if f <= 0 else 0.0
    whole = below + above * f
    return _incomplete_beta(below / 2, above / 2, below / whole, above * f / whole)


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I(a, b; x), the regularised incomplete beta function; `rest` is 1 - x, whose digits a difference would lose."""
    if x <= 0 or rest <= 0:
        return float(x > 0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    # The fraction converges fast on this side of the mean; the other side is its mirror image.
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _away(1 + term * d), _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _ENOUGH:
            break
    return value


def _away(value: float) -> float:
    """The value, or the smallest number where it is nothing to divide by."""
    return value if abs(value) > _TINY else _TINY
