"""The rates of a range test, when it stops, and what is read off a problem whose largest stable rate is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paceline.analyze.learning.lr_advice import RangeTest, lr_advice
from paceline.records.settings import TrainSettings
from paceline.training.lr_range_test import RANGE, DivergenceDetector, RisingRates


def rising(first: float, last: float, steps: int) -> RisingRates:
    return RisingRates(TrainSettings(schedule=RANGE, lr=first, step_factor=last / first, steps=steps), steps)


def test_rates_rise_by_the_same_factor_from_the_first_to_the_last():
    rates = [rising(1e-4, 10.0, 6).lr(step) for step in range(6)]
    assert rates == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0])


def stopped_after(losses: list[float], steps: int = 100) -> int | None:
    watch = DivergenceDetector(steps)
    return next((number for number, loss in enumerate(losses, start=1) if watch.diverges(loss)), None)


def test_a_loss_that_is_no_number_ends_it_at_once():
    assert stopped_after([2.3, 2.2, math.nan, 1.0]) == 3
    assert stopped_after([2.3, math.inf]) == 2


def test_four_times_the_lowest_ends_it():
    assert stopped_after([1.0] * 50 + [3.9] * 50) is None
    ended = stopped_after([1.0] * 50 + [4.5] * 50)
    assert ended is not None and 55 < ended < 70, "a mean over some steps, not one step, has to be so high"


def test_back_where_it_began_after_a_fall_ends_it():
    """As where a network has died: it is at chance again, far from four times its lowest loss."""
    ended = stopped_after([2.3] * 30 + [1.5] * 30 + [2.4] * 40)
    assert ended is not None and ended > 60
    assert stopped_after([2.3] * 30 + [2.2] * 30 + [2.35] * 40) is None, "it had not fallen, so it is not back"


def test_noise_about_a_level_does_not_end_it():
    noise = np.random.default_rng(0).normal(2.3, 0.2, 100)
    assert stopped_after(noise.tolist()) is None


@pytest.mark.parametrize("largest", [0.5, 10.0, 400.0])
@pytest.mark.parametrize("seed", range(5))
def test_on_a_quadratic_the_rate_is_stable_and_not_far_below_the_largest_that_is(largest, seed):
    """SGD on ½ Σ λᵢ xᵢ² with noisy gradients diverges above 2 / λ of the steepest direction."""
    generator = np.random.default_rng(seed)
    curvature = largest * np.geomspace(0.1, 1.0, 20)
    steps, stable = 200, 2 / largest
    pace, watch, point = (
        rising(stable * 1e-4, stable * 1e3, steps),
        DivergenceDetector(steps),
        generator.normal(size=20),
    )
    rates, losses = [], []
    for step in range(steps):
        rates.append(pace.lr(step))
        losses.append(0.5 * float(curvature @ np.square(point)) * generator.uniform(0.9, 1.1))
        if watch.diverges(losses[-1]):
            break
        point -= rates[-1] * curvature * (point + 0.3 * generator.normal(size=20))
    advice = lr_advice([RangeTest(seed=seed, rates=rates, losses=losses, planned=steps)], batch_global=1, ranks=1)
    (curve,) = advice.curves
    assert curve.ran_away is not None and stable < curve.ran_away < 10 * stable
    assert curve.lowest is not None and curve.lowest < 1.5 * stable
    assert advice.lr is not None and stable / 100 < advice.lr < stable / 2
