"""AdaScale against its paper's formulas, and on a quadratic where the gain is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.training.optim.adascale import AdaScale, adascale_of, gain

POSITIVE = st.floats(1e-6, 1e6)


def point(*, ranks=4, **train) -> Point:
    train = {"optimizer": "sgd", "epochs": 1, "lr_rule": "adascale", **train}
    return Point(
        data=DataSettings(),
        data_digest="",
        model=ModelSettings(),
        model_digest="",
        train=TrainSettings(**train),
        ranks=ranks,
    )


def test_the_gain_by_hand():
    assert gain(3.0, 1.0, 4.0) == pytest.approx((3 + 1) / (3 / 4 + 1))
    assert gain(3.0, 0.0, 4.0) == 4.0, "noise alone: the linear rule"
    assert gain(3.0, -0.5, 4.0) == 4.0, "an estimate below 0 is none"
    assert gain(0.0, 1.0, 4.0) == 1.0, "no noise: more samples are worth nothing"
    assert gain(0.0, 0.0, 4.0) == 1.0


@given(POSITIVE, POSITIVE, st.floats(1, 1000))
def test_the_gain_is_between_one_and_the_scale(variance, signal, scale):
    assert 1 - 1e-9 <= gain(variance, signal, scale) <= scale * (1 + 1e-9)


@given(POSITIVE, POSITIVE, st.floats(1, 100), st.floats(1, 10))
def test_a_larger_batch_gains_more_and_a_step_of_two_scales_is_both(variance, signal, scale, more):
    assert gain(variance, signal, scale * more) >= gain(variance, signal, scale) * (1 - 1e-9)
    both = gain(variance, signal, scale) * gain(variance / scale, signal, more)
    assert gain(variance, signal, scale * more) == pytest.approx(both)


def test_averages_are_those_of_the_paper():
    """θ = 1 - S / 1000 with as many parts as the scale; before 1 / (1 - θ) steps, the plain mean of all."""
    ada, scale = AdaScale(batch=32, scale=8.0), 8
    theta, seen = 1 - scale / 1000, []
    for step in range(1, 200):
        seen.append((5.0 + step, 0.1 + step / 1000))
        ada.measured(*seen[-1], parts=8)
        if step <= 125:
            variance, signal = np.mean(seen, axis=0)
        else:
            variance, signal = theta * variance + (1 - theta) * seen[-1][0], theta * signal + (1 - theta) * seen[-1][1]
        sigma, mu = variance / 32, signal
        assert ada.gain == pytest.approx((sigma + mu) / (sigma / scale + mu))


def test_fewer_parts_than_the_scale_are_averaged_for_longer():
    few, many = AdaScale(batch=8, scale=16.0), AdaScale(batch=8, scale=16.0)
    for ada, parts in ((few, 2), (many, 16)):
        for _ in range(100):
            ada.measured(1.0, 1.0, parts)
        ada.measured(100.0, 0.0, parts)
    assert many.gain > few.gain


def test_on_a_quadratic_the_gain_is_the_true_one_and_a_step_comes_as_far_as_it_says():
    """f(w) = |w|² / 2 with gradients w + noise of tr(Σ) = 90, S = 4 times a batch of 3, from 4 parts."""
    chance, dimension, batch, scale = np.random.default_rng(8), 40, 3, 4
    w = np.full(dimension, 0.5)
    ada = AdaScale(batch=batch, scale=float(scale))
    for _ in range(4000):
        parts = w + chance.standard_normal((scale, dimension)) * np.sqrt(90 / dimension / batch)
        mean, samples = parts.mean(0), batch * scale
        variance = ((parts**2).sum(1).mean() - mean @ mean) * samples / (scale - 1)
        ada.measured(variance, mean @ mean - variance / samples, scale)
    sigma, mu = 90 / batch, w @ w
    true = (sigma + mu) / (sigma / scale + mu)
    assert ada.gain == pytest.approx(true, rel=0.02)
    # What one step of r · lr is expected to gain, against r steps of lr, to first order and second (its theorem 1).
    lr = 0.001
    large = true * lr * mu - (true * lr) ** 2 / 2 * (sigma / scale + mu)
    small = true * (lr * mu - lr**2 / 2 * (sigma + mu))
    assert large == pytest.approx(small, rel=1e-12)


def test_progress_is_the_gain_in_steps_of_this_batch():
    ada = AdaScale(batch=32, scale=4.0)
    ada.measured(3.0 * 32, 1.0, 4)
    ada.advance()
    ada.advance()
    assert ada.progress == pytest.approx(2 * gain(3.0, 1.0, 4.0) / 4)
    again = AdaScale(batch=32, scale=4.0)
    again.restore(ada.state())
    assert (again.gain, again.progress) == (ada.gain, ada.progress)
    for each in (ada, again):
        each.measured(1.0, 2.0, 4)
    assert again.gain == ada.gain


def test_the_scale_is_the_batch_against_the_one_that_the_rate_is_meant_for():
    assert adascale_of(point(batch_per_rank=32))._scale == 4
    assert adascale_of(point(batch_per_rank=32, lr_batch=16))._scale == 8
    assert adascale_of(point(batch_global=96, lr_batch=64))._scale == 1.5
    assert adascale_of(point(batch_per_rank=32, ranks=1)) is None, "one rank is the batch that it is meant for"
    assert adascale_of(point(batch_per_rank=32, lr_rule="linear")) is None
