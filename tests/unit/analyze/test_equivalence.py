"""Different and equal: the error rates of both tests by simulation, and what they say of cases by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.stats.equivalence import MARGIN, check, corrected, paired
from paceline.records.learning import AccuracyCheck

SIGMA = 0.002
RUNS = 2000


def share(rng: np.random.Generator, mean: float, n: int, *, equal: bool) -> float:
    """How often two accuracies are called equal, or different, whose true difference is `mean`."""
    drawn = rng.normal(mean, SIGMA, (RUNS, n))
    tested = (paired(row, MARGIN) for row in drawn.tolist())
    return sum((one.p_equal if equal else one.p_different) <= 0.05 for one in tested) / RUNS


@pytest.mark.parametrize("n", [5, 10])
def test_what_does_not_differ_is_called_different_one_time_in_twenty(n: int) -> None:
    assert share(np.random.default_rng(n), 0.0, n, equal=False) == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("side", [-1, 1])
def test_what_differs_by_the_margin_is_called_equal_one_time_in_twenty(n: int, side: int) -> None:
    assert share(np.random.default_rng(n), side * MARGIN, n, equal=True) == pytest.approx(0.05, abs=0.015)


def test_both_find_what_is_there() -> None:
    rng = np.random.default_rng(7)
    assert share(rng, 0.0, 5, equal=True) > 0.8
    assert share(rng, 2 * MARGIN, 5, equal=False) > 0.99
    assert share(rng, 2 * MARGIN, 5, equal=True) < 0.001


def test_p_is_that_of_students_table() -> None:
    """Five differences with mean 1 and error 0.5: t = 2, of which a table says 0.116 on both sides."""
    spread = 0.5 * np.sqrt(5)
    values = np.array([-1.2649, -0.6325, 0, 0.6325, 1.2649])
    found = paired((1 + values / values.std(ddof=1) * spread).tolist(), margin=3.0)
    assert found.p_different == pytest.approx(0.1161, abs=5e-4)
    assert found.p_equal == pytest.approx(0.0081, abs=5e-4), "t = 4 on the nearer side"
    assert (found.low, found.high) == (pytest.approx(-0.388, abs=5e-3), pytest.approx(2.388, abs=5e-3))


def test_the_same_accuracies_are_equal_and_not_different() -> None:
    same = {run: 0.98 + run / 1000 for run in range(1, 6)}
    (found,) = corrected([made("a", same, same)])
    assert found.equal and not found.different and found.difference == 0


def test_a_small_and_certain_difference_is_both() -> None:
    own = {run: 0.98 + run / 1000 for run in range(1, 6)}
    other = {run: value + 0.001 + run * 1e-5 for run, value in own.items()}
    (found,) = corrected([made("a", own, other)])
    assert found.equal and found.different and found.difference < 0


@pytest.mark.parametrize("n", [1, 2, 4])
def test_fewer_than_five_repeats_are_too_few(n: int) -> None:
    own = {run: 0.9 for run in range(1, n + 1)}
    (found,) = corrected([made("a", own, {run: 0.5 for run in own})])
    assert found.p_different is None and found.low is None and not found.different and not found.equal
    assert found.n == n and found.difference == pytest.approx(0.4)


def test_only_repeats_that_both_have_count_and_only_finite_ones() -> None:
    own = {1: 0.9, 2: 0.9, 3: float("nan"), 7: 0.1}
    found = made("a", own, {1: 0.8, 2: 0.8, 3: 0.8, 4: 0.8})
    assert found.n == 2 and found.difference == pytest.approx(0.1)
    assert check("a", "b", {1: 0.9}, {2: 0.9}, MARGIN) is None


def test_p_are_corrected_for_their_number() -> None:
    own = {run: 0.98 + (run % 3) / 1000 for run in range(1, 6)}
    other = {run: 0.977 + (run % 2) / 1000 for run in range(1, 6)}
    alone = corrected([made("a", own, other)])[0]
    among = corrected([made(name, own, other) for name in "abcd"])[0]
    assert alone.p_different is not None and among.p_different == pytest.approx(min(1.0, 4 * alone.p_different))


def test_nothing_is_equal_where_a_run_was_left_out() -> None:
    same = {run: 0.98 + run / 1000 for run in range(1, 6)}
    lower = {run: value - 0.02 + run * 1e-5 for run, value in same.items()}
    alike, apart = (
        check("a", "r", same, same, MARGIN, left_out=True),
        check("b", "r", lower, same, MARGIN, left_out=True),
    )
    assert alike is not None and apart is not None
    first, second, third = corrected([alike, apart, made("c", same, same)])
    assert not first.equal and first.p_equal is None and first.p_different is not None
    assert second.different and not second.equal
    assert third.equal, "whose runs all learned"
    nan = check("a", "r", same | {6: float("nan")}, same | {6: 0.98}, MARGIN)
    assert nan is not None and nan.p_equal is None and nan.n == 5


@given(st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=12), st.floats(0.001, 0.05))
def test_equal_means_that_the_ninety_per_cent_interval_is_within_the_margin(values: list[float], margin: float) -> None:
    found = paired(values, margin)
    assert 0 <= found.p_different <= 1 and 0 <= found.p_equal <= 1
    assert found.low <= found.mean <= found.high
    if found.p_equal < 0.05:
        assert abs(found.mean) < margin


def made(name: str, own: dict[int, float], other: dict[int, float]) -> AccuracyCheck:
    found = check(name, "reference", own, other, MARGIN)
    assert found is not None
    return found
