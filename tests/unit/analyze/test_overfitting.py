"""Overfitting: found where validation turns, and seldom where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.analyze.learning.stable import turn

AT = np.arange(1, 31)
LEARNING = 1.5 * np.exp(-AT / 4)


def noisy(rng: np.random.Generator, curve: np.ndarray, runs: int, sigma: float = 0.01) -> np.ndarray:
    return curve + rng.normal(0, sigma, (runs, len(curve)))


@pytest.mark.parametrize("runs", [1, 5])
def test_a_turn_is_found_near_where_it_is(runs: int) -> None:
    rng = np.random.default_rng(0)
    validation = 0.3 + LEARNING + 0.02 * np.maximum(AT - 12, 0)
    lowest = int(np.argmin(validation)) + 1
    found = [turn(noisy(rng, validation, runs), noisy(rng, LEARNING, runs)) for _ in range(50)]
    assert all(found)
    assert np.median([one.epoch for one in found if one]) == pytest.approx(lowest, abs=2)
    assert all(one.rise > 0.1 and one.fall > 0.02 for one in found if one)


@pytest.mark.parametrize("runs", [1, 3, 5])
def test_noise_alone_seldom_turns(runs: int) -> None:
    rng = np.random.default_rng(1)
    flat = np.full(30, 0.3)
    false = sum(turn(noisy(rng, flat, runs), noisy(rng, LEARNING, runs)) is not None for _ in range(400))
    assert false <= 0.03 * 400


def test_where_training_stands_still_it_is_not_overfitting() -> None:
    rng = np.random.default_rng(2)
    rising = 0.3 + 0.02 * AT
    assert turn(noisy(rng, rising, 5), noisy(rng, np.full(30, 0.5), 5)) is None


def test_too_little_to_tell() -> None:
    short = np.ones((1, 5))
    assert turn(None, short) is None and turn(short, None) is None and turn(short, short) is None
