"""Epochs to stable: the first epoch from which a validation curve stays within its own noise of its plateau.

    plateau P      mean of the curve over the last quarter of the epochs, three at least
    noise σ        deviation of one epoch of one run from the smooth curve
    tolerance      2 σ
    stable epoch   the first e with |m(e') − P| ≤ 2 σ for all e' ≥ e, where m is the curve without its noise
    not reached    where m still changes by more than 2 σ over the last quarter

All of it is defined for the curve without noise; what is measured has noise, so the epoch comes with an interval.
It is a test turned round: it begins after the last epoch at which the curve is surely outside of the tolerance, and
ends at the first one from there on at which it is surely inside. As the curve rises (or, past a peak, falls), a mean
over epochs up to e bounds m(e) on one side and a mean over epochs from e on bounds it on the other, so means over 1,
2, 4, ... epochs are tried, and the sharpest counts. Each side errs one time in twenty: the interval holds nine times
in ten, and in 1,000 generated curves (exponentials and power laws, 8 to 60 epochs, 1 to 8 repeats, noise of 0.1 to
3 points) more often.

σ comes from what repeats differ in beyond their own level, and from second differences of their mean curve, over the
last two thirds of the epochs, where the curve bends little; so one run is enough for an interval, if a wide one.

Assumes: the noise of one epoch is independent of the next one's. Where neighbours correlate by 0.3, the interval still
holds nine times in ten; with 0.6 it held in 85 of 100.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from paceline.analyze.stats.students_t import quantile
from paceline.records.learning import Stable
from paceline.units import counted

FEWEST_EPOCHS = 6
"""With fewer, a plateau of three leaves nothing to compare it with."""
WITHIN = 2.0
"""Tolerance in units of the noise: what an epoch on the plateau leaves one time in twenty."""
SURE = 0.95
"""Of either end of the interval."""
COVERAGE = 2 * SURE - 1
"""Of the interval."""
_LOST_TO_DIFFERENCES = 35 / 18
"""Second differences of neighbours overlap: so many of them know as much about σ as one free value."""


@dataclass(frozen=True, slots=True)
class _Level:
    """What is known of a curve as a whole."""

    window: int
    plateau: float
    noise: float
    df: float
    runs: int

    @property
    def tolerance(self) -> float:
        return WITHIN * self.noise

    @property
    def limit(self) -> float:
        """The tolerance, and what sums of equal numbers may differ by: a curve without noise is at its own plateau."""
        return self.tolerance + 1e-12 * max(1.0, abs(self.plateau))

    def error(self, averaged: np.ndarray | float) -> np.ndarray:
        """How far off a distance from the plateau, less the tolerance, may be for a mean of so many epochs."""
        own = self.noise**2 / self.runs * (1 / np.asarray(averaged) + 1 / self.window)
        return quantile(SURE, self.df) * np.sqrt(own + self.tolerance**2 / (2 * self.df))


def stable(curves: np.ndarray) -> Stable:
    """When the curves (one row per run, one column per epoch) are stable."""
    runs, epochs = curves.shape
    if epochs < FEWEST_EPOCHS:
        why = f"{counted(epochs, 'epoch')}: a plateau can be told from {FEWEST_EPOCHS} on"
        return Stable(epoch=None, low=None, high=None, epochs=epochs, plateau=None, tolerance=None, runs=runs, why=why)
    mean = curves.mean(axis=0)
    window = max(3, math.ceil(epochs / 4))
    sigma, df = noise(curves)
    level = _Level(window, float(mean[-window:].mean()), sigma, df, runs)
    change, change_error = _change(mean, level)
    epoch = low = high = None
    if change <= level.limit + change_error:
        epoch, low, high = _crossing(mean, level)
        if change + change_error > level.limit:
            high = None  # it may well go on
    return Stable(
        epoch=epoch,
        low=low,
        high=high,
        epochs=epochs,
        plateau=level.plateau,
        tolerance=level.tolerance,
        runs=runs,
        why="" if epoch is not None else f"not reached in {counted(epochs, 'epoch')}",
    )


def noise(curves: np.ndarray) -> tuple[float, float]:
    """Standard deviation of one epoch of one run around the smooth curve, and its degrees of freedom."""
    runs = len(curves)
    late = curves[:, curves.shape[1] // 3 :]
    bends = np.diff(late.mean(axis=0), 2) * math.sqrt(runs / 6)
    df = len(bends) / _LOST_TO_DIFFERENCES
    squares = float(np.mean(bends**2)) * df
    if runs > 1:
        own = late - late.mean(axis=0) - late.mean(axis=1, keepdims=True) + late.mean()
        squares += float(np.sum(own**2))
        df += (runs - 1) * (late.shape[1] - 1)
    return math.sqrt(squares / df), df


def _change(mean: np.ndarray, level: _Level) -> tuple[float, float]:
    """How much the curve changes over the plateau, along its straight line, and how far off that may be."""
    away = np.arange(level.window) - (level.window - 1) / 2
    length = (level.window - 1) / float(away @ away)
    change = abs(float(mean[-level.window :] @ away)) * length
    own = (level.noise * length) ** 2 * float(away @ away) / level.runs
    error = quantile(SURE, level.df) * math.sqrt(own + level.tolerance**2 / (2 * level.df))
    return change, error


def _crossing(mean: np.ndarray, level: _Level) -> tuple[int | None, int | None, int | None]:
    """The stable epoch, and the ends of its interval; the upper one is None where no epoch is surely inside, all where
    the curve leaves its plateau at the end."""
    begun, sign = _approach(mean, level)
    # Where it comes from below, what is missing is plateau less curve; past a peak it is the other way round.
    missing = sign * (level.plateau - mean[begun:])
    surely_outside = np.full(len(missing), -np.inf)
    perhaps_outside = np.full(len(missing), np.inf)
    for size in _sizes(level.window):
        after, count = _running_mean(missing, size, ahead=True)
        surely_outside = np.maximum(surely_outside, after - level.error(count))
        before, count = _running_mean(missing, size, ahead=False)
        perhaps_outside = np.minimum(perhaps_outside, before + level.error(count))
    inside = _never_rising(missing) <= level.limit
    low = int(np.flatnonzero(surely_outside > level.limit).max(initial=-1)) + 1
    if low == len(missing):
        return None, None, None  # its very last epoch is no part of a plateau
    high = _first(perhaps_outside <= level.limit, since=low)
    middle = max(_first(inside) or 0, low)
    middle = middle if high is None else min(middle, high)
    return begun + middle + 1, begun + low + 1, None if high is None else begun + high + 1


def _approach(mean: np.ndarray, level: _Level) -> tuple[int, int]:
    """Where the last approach to the plateau begins, and from where: 1 from below, -1 from above, past a peak."""
    means, counts = _running_mean(mean, level.window, ahead=True)
    best = int(np.argmax(means[: len(mean) - level.window + 1]))
    above = float(means[best]) - level.plateau
    if above - float(level.error(counts[best])) <= level.limit:
        return 0, 1
    return best, -1


def _running_mean(values: np.ndarray, size: int, *, ahead: bool) -> tuple[np.ndarray, np.ndarray]:
    """Means over `size` values from each on, or up to each, and of how many they are at the ends."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    here = np.arange(len(values))
    first = here if ahead else np.maximum(here - size + 1, 0)
    past = np.minimum(here + size, len(values)) if ahead else here + 1
    return (sums[past] - sums[first]) / (past - first), past - first


def _never_rising(values: np.ndarray) -> np.ndarray:
    """The sequence nearest to these in squares that never rises: isotonic regression, neighbours pooled."""
    pooled: list[tuple[float, int]] = []
    for value in values.tolist():
        total, count = value, 1
        while pooled and pooled[-1][0] / pooled[-1][1] < total / count:
            earlier, more = pooled.pop()
            total, count = total + earlier, count + more
        pooled.append((total, count))
    return np.concatenate([np.full(count, total / count) for total, count in pooled])


def _sizes(window: int) -> list[int]:
    return [1 << power for power in range(window.bit_length())]


def _first(true: np.ndarray, since: int = 0) -> int | None:
    return since + int(np.argmax(true[since:])) if true[since:].any() else None
