from __future__ import annotations

import math

import pytest

from paceline.analyze.stats.intervals import median_interval, ratio_interval, scaled, spread
from paceline.records.results import Interval, Spread


@pytest.mark.parametrize(
    ("n", "low", "high", "coverage"),
    [
        (2, 1, 2, None),
        (4, 1, 4, None),
        (5, 1, 5, 0.9375),
        (6, 1, 6, 0.96875),
        (8, 1, 8, 0.9921875),
        (9, 2, 8, 0.9609375),
        (20, 6, 15, 0.958610534667968750),
    ],
)
def test_intervals_are_those_of_the_tables(n: int, low: int, high: int, coverage: float | None) -> None:
    values = [float(value) for value in range(n, 0, -1)]
    assert median_interval(values) == Interval(
        median=(n + 1) / 2, low=float(low), high=float(high), n=n, coverage=coverage
    )


def test_a_single_value_is_its_own_interval() -> None:
    assert median_interval([3.5]) == Interval(median=3.5, low=3.5, high=3.5, n=1, coverage=None)


def test_coverage_does_not_overflow_with_many_repeats() -> None:
    found = median_interval([float(value) for value in range(3000)])
    assert found.coverage is not None and 0.95 <= found.coverage < 0.955


def test_spread_is_mean_and_sample_deviation() -> None:
    assert spread([1.0, 2.0, 3.0]) == Spread(mean=2.0, std=1.0, n=3)
    assert spread([0.97]) == Spread(mean=0.97, std=None, n=1)


def test_the_spread_of_a_diverged_loss_is_not_a_number() -> None:
    found = spread([math.inf, 1.0])
    assert found.mean == math.inf
    assert found.std is not None and math.isnan(found.std)


def test_a_ratio_is_of_medians_and_its_interval_of_pairs() -> None:
    found = ratio_interval([2.0, 4.0, 60.0], [1.0, 2.0, 30.0])
    assert (found.median, found.low, found.high, found.n) == (2.0, 2.0, 2.0, 3)
    alone = median_interval([2.0, 4.0, 60.0])
    assert alone.high / alone.low == 30, "without pairs the noisy repeat would fill the interval"


def test_the_interval_is_widened_to_reach_the_ratio() -> None:
    # medians 2 and 2, yet within each repeat the ratio is 1/3, 2 or 2
    found = ratio_interval([1.0, 2.0, 4.0], [3.0, 1.0, 2.0])
    assert (found.median, found.low, found.high) == (1.0, pytest.approx(1 / 3), 2.0)
    found = ratio_interval([1.0, 2.0, 9.0], [9.0, 1.0, None])
    assert (found.median, found.low, found.high) == (pytest.approx(0.4), pytest.approx(1 / 9), 2.0)
    found = ratio_interval([8.0, 1.0], [4.0, None])
    assert (found.median, found.low, found.high, found.n) == (1.125, 1.125, 2.0, 1)


def test_a_repeat_without_partner_counts_for_the_ratio_alone() -> None:
    found = ratio_interval([2.0, 2.0, None, 8.0], [1.0, 1.0, 5.0])
    assert (found.n, found.median, found.low, found.high) == (2, 2.0, 2.0, 2.0)


def test_without_any_pair_the_interval_is_all_that_is_possible() -> None:
    found = ratio_interval([2.0, None, 4.0], [None, 1.0, None])
    assert found == Interval(median=3.0, low=2.0, high=4.0, n=0, coverage=None)


def test_a_scaled_interval_keeps_its_coverage() -> None:
    found = scaled(Interval(median=2.0, low=1.0, high=4.0, n=5, coverage=0.9375), 0.5)
    assert found == Interval(median=1.0, low=0.5, high=2.0, n=5, coverage=0.9375)
