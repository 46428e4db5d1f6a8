"""Student's t distribution (tail and quantile) and the tail of Fisher's F, by SciPy.

SciPy is imported at the first call, because its import takes 0.3 s.
"""

from __future__ import annotations


def tail(t: float, df: float) -> float:
    """P(T > t) with `df` degrees of freedom."""
    from scipy.special import stdtr

    assert df > 0, "no degree of freedom"
    return float(stdtr(df, -t))


def quantile(p: float, df: float) -> float:
    """The t that is exceeded with probability 1 - p."""
    from scipy.special import stdtrit

    return float(stdtrit(df, p))


def f_tail(f: float, above: int, below: int) -> float:
    """P(F > f), F the ratio of two mean squares with `above` and `below` degrees of freedom."""
    from scipy.special import fdtrc

    assert above > 0 and below > 0, "no degree of freedom"
    return float(fdtrc(above, below, max(f, 0.0)))
