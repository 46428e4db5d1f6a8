"""Epochs to stable: 1,000 generated curves whose truth is known, and cases by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.analyze.learning.stable import WITHIN, noise, stable
from paceline.records.learning import Stable


@dataclass
class Generated:
    """A curve without noise, its noise, and what repeats of it would show."""

    kind: str
    curve: np.ndarray
    sigma: float
    runs: np.ndarray

    @property
    def truth(self) -> int | None:
        """The stable epoch by its definition, from the curve without noise; None where it still changes."""
        epochs = len(self.curve)
        window = max(3, math.ceil(epochs / 4))
        plateau = self.curve[-window:].mean()
        line = np.polyfit(np.arange(window), self.curve[-window:], 1)[0] * (window - 1)
        if abs(line) > WITHIN * self.sigma:
            return None
        outside = np.flatnonzero(np.abs(self.curve - plateau) > WITHIN * self.sigma)
        return int(outside[-1]) + 2 if len(outside) else 1


def generated(rng: np.random.Generator, *, asymptote: bool = False) -> Generated:
    """An exponential, a power law, an early plateau or none at all; 8 to 60 epochs, 1 to 8 repeats."""
    epochs, repeats = int(rng.integers(8, 61)), int(rng.choice([1, 2, 3, 5, 8]))
    height, depth = rng.uniform(0.5, 0.99), rng.uniform(0.2, 0.9)
    sigma = float(np.exp(rng.uniform(math.log(0.001), math.log(0.03))))
    at = np.arange(1, epochs + 1)
    kind = (
        "exponential"
        if asymptote
        else str(rng.choice(["exponential", "power", "early", "none"], p=[0.4, 0.3, 0.15, 0.15]))
    )
    curve = {
        "exponential": lambda: height - depth * np.exp(-at / rng.uniform(0.8, epochs / (8 if asymptote else 4))),
        "power": lambda: height - depth * at ** -rng.uniform(0.6, 2.5),
        "early": lambda: height - depth * np.exp(-at / rng.uniform(0.2, 1)),
        "none": lambda: height - depth * rng.uniform(0.3, 1) * (1 - at / epochs),
    }[kind]()
    levels = rng.normal(0, 0.01, (repeats, 1))  # a seed's own level: repeats need not end at the same accuracy
    return Generated(kind, curve, sigma, curve + levels + rng.normal(0, sigma, (repeats, epochs)))


def covers(found: Stable, truth: int | None) -> bool:
    """Whether an interval holds the truth; one that is open above holds that it is not reached, too."""
    if truth is None:
        return found.epoch is None or found.high is None
    return found.low is not None and found.low <= truth and (found.high is None or truth <= found.high)


def test_the_interval_covers_the_truth_in_nine_of_ten_of_1000_curves() -> None:
    rng = np.random.default_rng(2020)
    curves = [generated(rng) for _ in range(1000)]
    found = [stable(each.runs) for each in curves]
    covered = np.array([covers(one, each.truth) for one, each in zip(found, curves, strict=True)])
    assert covered.mean() >= 0.9
    closed = np.array([one.high is not None for one in found])
    assert covered[closed].mean() >= 0.9 and closed.sum() > 400, "not only by being open"
    for kind in ("exponential", "power", "early", "none"):
        chosen = np.array([each.kind == kind for each in curves])
        assert covered[chosen].mean() >= 0.9, kind
    for runs in (1, 2, 3, 5, 8):
        chosen = np.array([len(each.runs) == runs for each in curves])
        assert covered[chosen].mean() >= 0.9, runs


def test_the_interval_is_worth_having() -> None:
    """An interval from the first to the last epoch would cover everything: these are narrow, and mostly closed."""
    rng = np.random.default_rng(2021)
    curves = [each for each in (generated(rng) for _ in range(600)) if each.truth is not None and len(each.runs) >= 3]
    found = [stable(each.runs) for each in curves]
    closed = [one for one in found if one.high is not None]
    assert len(closed) > 0.75 * len(found)
    assert np.median([one.high - one.low for one in closed if one.high and one.low]) <= 3
    wrong = [abs(one.epoch - each.truth) for one, each in zip(found, curves, strict=True) if one.epoch and each.truth]
    assert len(wrong) > 0.98 * len(curves), "a stable curve is hardly ever called unstable"
    assert np.median(wrong) <= 1


def test_curves_that_still_rise_are_not_called_stable() -> None:
    rng = np.random.default_rng(2022)
    rising = [each for each in (generated(rng) for _ in range(600)) if each.truth is None and len(each.runs) >= 3]
    found = [stable(each.runs) for each in rising]
    assert all(one.high is None for one in found)
    assert np.mean([one.epoch is None for one in found]) > 0.8


def test_the_plateau_of_a_saturated_curve_is_its_asymptote() -> None:
    """The truth by the limit of the formula, which the definition by the last quarter should agree with."""
    rng, held, count = np.random.default_rng(2023), 0, 0
    while count < 300:
        each = generated(rng, asymptote=True)
        inside = np.flatnonzero(each.curve.max() - each.curve <= WITHIN * each.sigma)
        count += 1
        held += covers(stable(each.runs), int(inside[0]) + 1)
    assert held >= 0.9 * count


def test_past_a_peak_the_lower_plateau_counts() -> None:
    rng, at, held = np.random.default_rng(2024), np.arange(1, 41), 0
    for _ in range(200):
        curve = 0.9 - 0.5 * np.exp(-at / 1.5) - 0.15 * (1 - np.exp(-np.maximum(at - 5, 0) / rng.uniform(1, 5)))
        each = Generated("peak", curve, 0.01, curve + rng.normal(0, 0.01, (3, 40)))
        found = stable(each.runs)
        held += covers(found, each.truth)
        assert found.low is not None and found.low > 5, "before the peak it only passes by"
    assert held >= 0.9 * 200


def test_a_curve_without_noise_is_stable_where_it_is_flat() -> None:
    found = stable(np.array([[0.1, 0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]]))
    assert (found.epoch, found.low, found.high) == (3, 3, 3)
    assert (found.plateau, found.tolerance) == (pytest.approx(0.9), pytest.approx(0.0))


@pytest.mark.parametrize("level", [0.0, 1.0])
@pytest.mark.parametrize("left_at", [2, 3])
def test_a_curve_that_leaves_its_plateau_once_is_stable_after_that(level: float, left_at: int) -> None:
    curve = np.full((1, 9), level)
    curve[0, left_at - 1] = 1 - level
    found = stable(curve)
    assert (found.epoch, found.low, found.high) == (left_at + 1, left_at + 1, left_at + 1)


def test_a_curve_that_leaves_its_plateau_at_the_end_is_not_stable() -> None:
    curve = np.full((5, 60), 0.9)
    curve[:, -1] = 0.1
    found = stable(curve)
    assert (found.epoch, found.low, found.high, found.why) == (None, None, None, "not reached in 60 epochs")


def test_five_epochs_are_too_few() -> None:
    found = stable(np.full((3, 5), 0.9))
    assert found.epoch is None and found.why == "5 epochs: a plateau can be told from 6 on"


def test_a_straight_line_never_gets_there() -> None:
    rng = np.random.default_rng(1)
    found = stable(np.linspace(0.1, 0.9, 20) + rng.normal(0, 0.005, (5, 20)))
    assert (found.epoch, found.low, found.high, found.why) == (None, None, None, "not reached in 20 epochs")


def test_the_noise_is_that_of_one_epoch_of_one_run() -> None:
    rng, at = np.random.default_rng(3), np.arange(1, 61)
    curve = 0.9 - 0.5 * np.exp(-at / 4)
    for runs in (1, 5):
        found = [noise(curve + rng.normal(0, 0.05, (runs, 1)) + rng.normal(0, 0.01, (runs, 60)))[0] for _ in range(50)]
        assert np.sqrt(np.mean(np.square(found))) == pytest.approx(0.01, rel=0.05), (
            "what a seed does to all epochs is not noise"
        )


@example([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
@given(st.lists(st.lists(st.floats(0, 1), min_size=9, max_size=9), min_size=1, max_size=4))
def test_any_curve_has_an_ordered_answer(values: list[list[float]]) -> None:
    found = stable(np.array(values))
    if found.epoch is None:
        assert found.why and found.low is None and found.high is None
    else:
        assert found.low is not None and 1 <= found.low <= found.epoch <= (found.high or 9) <= 9
