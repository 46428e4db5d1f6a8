"""What is read off range tests made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.learning.lr_advice import RangeTest, lr_advice, lr_curve


def measured(
    middle: float = 0.01, away: float = 1.0, *, steps: int = 120, noise: float = 0.02, seed: int = 0, to: float = 10.0
) -> RangeTest:
    """A loss that falls from 2.3 to 0.5 about one rate, and runs away from another on; rates from 1e-5 on."""
    rates = np.geomspace(1e-5, to, steps)
    falls = 0.5 + 1.8 / (1 + (rates / middle) ** 1.5)
    losses = (
        falls + np.where(rates > away, 3 * (rates / away - 1), 0) + np.random.default_rng(seed).normal(0, noise, steps)
    )
    taken = int(np.argmax(losses > 8)) + 1 if (losses > 8).any() else steps
    return RangeTest(seed=seed, rates=rates[:taken].tolist(), losses=losses[:taken].tolist(), planned=steps)


@given(middle=st.floats(1e-3, 0.03), seed=st.integers(0, 50))
def test_the_steepest_fall_is_found_through_noise(middle, seed):
    curve = lr_curve(measured(middle, seed=seed))
    assert curve.steepest == pytest.approx(middle, rel=0.8)
    assert curve.advised == curve.steepest
    assert curve.lowest is not None and curve.steepest < curve.lowest
    assert curve.ran_away is not None and 1 < curve.ran_away <= 10


def test_a_tenth_of_where_it_ran_away_is_the_most():
    curve = lr_curve(measured(0.15, 0.25))
    assert curve.steepest is not None and curve.ran_away is not None and curve.advised is not None
    assert curve.steepest > curve.ran_away / 10
    assert curve.advised == pytest.approx(curve.ran_away / 10)


def test_several_tests_are_a_median_and_a_range():
    advice = lr_advice([measured(rate, noise=0.0) for rate in (0.001, 0.004, 0.02)], batch_global=64, ranks=2)
    assert advice.lr == pytest.approx(0.004, rel=0.2)
    assert advice.low == pytest.approx(0.001, rel=0.2) and advice.high == pytest.approx(0.02, rel=0.2)
    assert (advice.batch_global, advice.ranks, len(advice.curves)) == (64, 2, 3)
    two = lr_advice([measured(rate, noise=0.0) for rate in (0.001, 0.01)], batch_global=64, ranks=2)
    assert two.lr == pytest.approx(math.sqrt(0.001 * 0.01), rel=0.2), "between two rates by their ratio"


def test_a_rate_has_two_digits():
    lr = lr_advice([measured()], batch_global=1, ranks=1).lr
    assert lr is not None and lr == float(f"{lr:.2g}")


def test_where_nothing_falls_no_rate_is_given_and_it_is_said_what_to_do():
    noise = np.random.default_rng(1).normal(2.3, 0.1, 100).tolist()
    flat = RangeTest(seed=0, rates=np.geomspace(1e-9, 1e-8, 100).tolist(), losses=noise, planned=100)
    advice = lr_advice([flat], batch_global=1, ranks=1)
    assert advice.lr is advice.low is advice.high is None
    assert "did not fall beyond its noise" in advice.notes[0] and "--to" in advice.notes[0]


@pytest.mark.parametrize("losses", [[2.3, 2.4, 3.0, 9.0, 40.0], [2.3, math.nan], [math.nan], [math.inf, math.inf]])
def test_where_it_ran_away_at_once_a_smaller_first_rate_is_named(losses):
    rates = np.geomspace(1.0, 100.0, len(losses)).tolist()
    advice = lr_advice([RangeTest(seed=0, rates=rates, losses=losses, planned=100)], batch_global=1, ranks=1)
    assert advice.lr is None
    assert "--from" in advice.notes[0]
    assert all(math.isfinite(value) for value in advice.curves[0].smoothed)


def test_a_loss_that_still_falls_at_the_last_rate_is_told():
    advice = lr_advice([measured(0.01, to=0.015)], batch_global=1, ranks=1)
    assert advice.lr is not None
    assert "--to" in advice.notes[0]
    assert not lr_advice([measured()], batch_global=1, ranks=1).notes


def test_a_test_without_a_rate_does_not_spoil_the_others():
    flat = RangeTest(seed=9, rates=[1.0, 2.0], losses=[2.3, math.nan], planned=100)
    advice = lr_advice([measured(), flat], batch_global=1, ranks=1)
    assert advice.lr == pytest.approx(0.01, rel=0.8)
    (note,) = advice.notes
    assert note.startswith("In 1 of 2 tests the loss did not fall beyond its noise.") and "--from" in note
