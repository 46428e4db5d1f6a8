"""What holds for intervals of any values."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.analyze.stats.intervals import CONFIDENCE, coverage, median_interval, ratio_interval, spread

# A shared machine may stop any single example for a while: no deadline.
undisturbed = settings(deadline=None)
times = st.floats(1e-6, 1e6)
samples = st.lists(times, min_size=1, max_size=40)
repeats = st.lists(st.one_of(st.none(), times), max_size=12).filter(lambda values: any(v is not None for v in values))


@undisturbed
@given(samples)
def test_the_interval_contains_the_median_and_stays_among_the_values(values: list[float]) -> None:
    found = median_interval(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert found.median == statistics.median(values)
    assert found.n == len(values)


@undisturbed
@given(samples, st.randoms(use_true_random=False))
def test_the_order_of_repeats_does_not_matter(values: list[float], random) -> None:
    assert median_interval(random.sample(values, len(values))) == median_interval(values)


@undisturbed
@given(st.integers(5, 200))
def test_no_narrower_pair_covers_enough(n: int) -> None:
    found = median_interval([float(value) for value in range(1, n + 1)])
    k = round(found.low)
    assert round(found.high) == n + 1 - k
    assert found.coverage == coverage(n, k)
    assert coverage(n, k) >= CONFIDENCE or k == 1
    assert coverage(n, k + 1) < CONFIDENCE


@undisturbed
@given(st.integers(1, 60), st.data())
def test_coverage_is_the_share_of_coin_tosses_between_the_two(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, (n + 1) // 2))
    between = sum(math.comb(n, heads) for heads in range(k, n - k + 1))
    assert coverage(n, k) == pytest.approx(between / 2**n)


@undisturbed
@given(repeats, repeats)
def test_the_interval_of_a_ratio_contains_it(over: list[float | None], under: list[float | None]) -> None:
    found = ratio_interval(over, under)
    assert found.low <= found.median <= found.high
    medians = [statistics.median(v for v in values if v is not None) for values in (over, under)]
    assert found.median == medians[0] / medians[1]
    assert found.n == sum(a is not None and b is not None for a, b in zip(over, under, strict=False))


@undisturbed
@given(samples)
def test_the_ratio_of_values_to_themselves_is_one(values: list[float]) -> None:
    found = ratio_interval(values, values)
    assert (found.low, found.median, found.high) == (1.0, 1.0, 1.0)


@undisturbed
@given(samples, st.lists(st.floats(1.0, 100.0), min_size=40, max_size=40))
def test_noise_that_falls_on_both_sides_of_a_pair_cancels(values: list[float], noise: list[float]) -> None:
    noisy = [value * factor for value, factor in zip(values, noise, strict=False)]
    found = ratio_interval([2 * value for value in noisy], noisy)
    assert (found.low, found.high) == (2.0, 2.0)


@undisturbed
@given(samples)
def test_the_spread_lies_within_the_range(values: list[float]) -> None:
    found = spread(values)
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert (found.std is None) == (len(values) == 1)
    if found.std is not None:
        assert 0 <= found.std <= max(values) - min(values) + 1e-9 * max(values)
