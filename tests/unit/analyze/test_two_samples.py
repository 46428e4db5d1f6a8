"""The rank test against every way of dealing the values out, and the interval that is the test turned round."""

from __future__ import annotations

import statistics
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paceline.analyze.stats.two_samples import (
    corrected,
    difference,
    holm,
    known_versus,
    least_p,
    rank_test,
    smallest_seen,
    versus,
)

few_ties = st.lists(st.integers(0, 4), min_size=1, max_size=5)
times = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=9)


def p_by_counting(a: list[float], b: list[float]) -> float:
    """The share of all ways to choose the values of A whose mean rank is as far from the middle as here."""
    values = [*a, *b]
    ranks = [statistics.fmean(i + 1 for i, v in enumerate(sorted(values)) if v == value) for value in values]
    middle = len(a) * (len(values) + 1) / 2
    off = abs(sum(ranks[: len(a)]) - middle)
    dealt = [abs(sum(ranks[i] for i in own) - middle) for own in combinations(range(len(values)), len(a))]
    return sum(each >= off - 1e-9 for each in dealt) / len(dealt)


@given(few_ties, few_ties)
def test_p_is_the_share_of_all_ways_to_deal_the_values_out(a: list[float], b: list[float]) -> None:
    assert rank_test(a, b) == pytest.approx(p_by_counting(a, b))


def test_p_of_values_that_do_not_overlap_is_the_least_there_is() -> None:
    for n, m in ((1, 1), (3, 3), (4, 4), (5, 5), (5, 7), (20, 20)):
        low, high = [float(i) for i in range(n)], [100.0 + i for i in range(m)]
        assert rank_test(low, high) == pytest.approx(least_p(n, m)) == pytest.approx(rank_test(high, low))
    assert (least_p(3, 3), least_p(4, 4), least_p(5, 5)) == pytest.approx((0.1, 2 / 70, 2 / 252))


@pytest.mark.parametrize(
    ("n", "k", "coverage"),
    [(4, 1, 1 - 2 / 70), (5, 3, 1 - 2 * 4 / 252), (10, 24, 0.9567)],
)
def test_the_interval_is_between_the_kth_pairs_from_either_end(n: int, k: int, coverage: float) -> None:
    """Values whose n² differences are 0, 1, 2, ..., so that each says its place."""
    a, b = [-float(i) for i in range(n)], [float(n * i) for i in range(n)]
    found = difference(a, b, n * n / 2)
    assert (found.low, found.high) == (k - 1, n * n - k)
    assert found.coverage == pytest.approx(coverage, abs=5e-5)


def test_too_few_values_have_a_range_and_nothing_is_real() -> None:
    found = versus([1.0, 1.01, 1.02], [9.0, 9.1, 9.2], ratio=True)
    assert (found.change.coverage, found.p, found.p_least, found.real) == (None, pytest.approx(0.1), 0.1, False)
    assert (found.change.low, found.change.high) == (9.0 / 1.02, 9.2)
    assert smallest_seen([1.0, 1.01, 1.02], [9.0, 9.1, 9.2], 1) is None


@given(times, times)
def test_the_interval_leaves_out_no_change_exactly_where_the_test_passes(a: list[float], b: list[float]) -> None:
    assume(len({*a, *b}) == len(a) + len(b))
    found = versus(a, b, ratio=True)
    pairs = sorted(second / first for first in a for second in b)
    assert pairs[0] <= found.change.low <= found.change.median <= found.change.high <= pairs[-1]
    if found.real:
        assert found.p <= 0.05
    elif found.p <= 0.05:
        # The estimate is the ratio of medians: the interval is widened to reach it, and then claims less.
        assert found.change.low == found.change.median or found.change.high == found.change.median


@given(times)
def test_a_sample_does_not_differ_from_itself_in_any_order(a: list[float]) -> None:
    found = versus(a, a[::-1], ratio=True)
    assert (found.p, found.change.median, found.real) == (1.0, 1.0, False)
    assert found.change.low <= 1 <= found.change.high


@given(st.lists(st.floats(0.9, 1.1), min_size=4, max_size=8, unique=True), st.integers(1, 3))
def test_what_is_called_the_smallest_change_that_is_seen_is_that(values: list[float], tests: int) -> None:
    b = [value * 1.0001 for value in values]
    least = smallest_seen(values, b, tests)
    assume(least is not None and least > 1e-6)
    level = 0.05 / tests
    middle = statistics.median(b) / statistics.median(values)
    larger = [value / middle * (1 + least) * 1.000001 for value in b]
    assert rank_test(values, larger) <= level
    # A little less is not seen on at least one of the two sides.
    up = [value / middle * (1 + least) * 0.999999 for value in b]
    down = [value / middle / (1 + least) * 1.000001 for value in b]
    assert max(rank_test(values, up), rank_test(values, down)) > level


def test_holms_method_multiplies_the_smallest_by_their_number_and_never_turns_their_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_corrected_p_are_larger_in_the_same_order_and_no_probability_is_above_one(ps: list[float]) -> None:
    found = holm(ps)
    assert all(p <= q <= 1 for p, q in zip(ps, found, strict=True))
    assert sorted(range(len(ps)), key=ps.__getitem__) == sorted(range(len(ps)), key=lambda i: (found[i], ps[i], i))


def test_a_difference_that_is_real_alone_is_not_beside_enough_others() -> None:
    a, b = [1.0, 1.01, 1.02, 1.03], [1.1, 1.11, 1.12, 1.13]
    alone = versus(a, b, ratio=True)
    (one,) = corrected([alone], ratio=True)
    first, second = corrected([alone, alone], ratio=True)
    assert one.real and not first.real and not second.real
    assert first.p_adjusted == pytest.approx(2 * alone.p)
    small = versus(a[:2], b[:2], ratio=True)
    beside, _ = corrected([alone, small], ratio=True)
    assert beside.real, "what could never be real does not count as a test"


def test_what_is_not_known_is_left_out() -> None:
    assert known_versus([None, 1.0], [2.0, float("nan")], ratio=True) == versus([1.0], [2.0], ratio=True)
    assert known_versus([None], [2.0], ratio=True) is None
    assert known_versus([0.0], [2.0], ratio=True) is None
    assert known_versus([0.0], [2.0], ratio=False) is not None
