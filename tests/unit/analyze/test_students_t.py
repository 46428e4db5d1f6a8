"""Student's t against printed tables and against its own definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.stats.students_t import quantile, tail

# Percentage points of the t distribution as any table has them.
TABLE = [(0.975, 1, 12.7062), (0.975, 4, 2.7764), (0.95, 8, 1.8595), (0.995, 10, 3.1693), (0.975, 30, 2.0423)]


@pytest.mark.parametrize(("p", "df", "t"), TABLE)
def test_quantiles_are_those_of_the_tables(p: float, df: float, t: float) -> None:
    assert quantile(p, df) == pytest.approx(t, abs=5e-5)


@pytest.mark.parametrize("df", [1, 2.5, 7, 120])
def test_the_tail_is_the_integral_of_the_density(df: float) -> None:
    x = np.linspace(1.3, 2000.0, 2_000_001)
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    density = np.exp(log_scale - (df + 1) / 2 * np.log1p(x**2 / df))
    beyond = tail(2000.0, df)
    assert tail(1.3, df) == pytest.approx(float(np.trapezoid(density, x)) + beyond, rel=1e-5)


@given(st.floats(-50, 50), st.floats(0.5, 500))
def test_both_tails_make_a_whole(t: float, df: float) -> None:
    assert tail(t, df) + tail(-t, df) == pytest.approx(1, abs=1e-12)


@given(st.floats(0.5, 0.9999), st.floats(0.7, 500))
def test_the_quantile_turns_the_tail_round(p: float, df: float) -> None:
    assert tail(quantile(p, df), df) == pytest.approx(1 - p, abs=1e-9)


def test_the_ends() -> None:
    assert tail(math.inf, 3) == 0 and tail(-math.inf, 3) == 1 and tail(0, 3) == 0.5
