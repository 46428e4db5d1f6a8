"""Plateau and overfitting of validation curves.

**Epochs to stable**: the first epoch from which a validation curve stays within its own noise of its plateau.

    plateau P      mean of the curve over the last quarter of the epochs, three at least
    noise σ        deviation of one epoch of one run from the smooth curve
    tolerance      2 σ
    stable epoch   the first e with |m(e') − P| ≤ 2 σ for all e' ≥ e, where m is the curve without its noise
    not reached    if m still changes by more than 2 σ over the last quarter

These are defined for the curve without noise. Measured curves have noise, so the epoch has an interval, from inverted
tests: it begins after the last epoch that is significantly outside the tolerance, and ends at the next epoch that is
significantly inside. The curve is monotonic on its last approach, so a mean over epochs up to e bounds m(e) on one
side and a mean over epochs from e on bounds it on the other. Means over 1, 2, 4, ... epochs are tried, and the tightest
bound counts. Each end has an error rate of 5 %, so the coverage is at least 90 %; it was higher for 1,000 generated
curves (exponentials and power laws, 8 to 60 epochs, 1 to 8 repeats, noise of 0.1 to 3 points).

σ is estimated from differences between repeats, and from second differences of their mean curve, over the last two
thirds of the epochs, where curvature is small. One run is therefore enough for a (wide) interval.

Assumes: the noise of neighbouring epochs is independent. With a correlation of 0.3 the coverage is still 90 %, with 0.6
it is 85 %.

**Overfitting**: validation loss rises while training loss keeps falling, both beyond noise.

    turn        the window of epochs with the lowest mean validation loss, before the last window
    rise        mean of the last window − mean of that window
    reported    if rise and fall exceed what noise gives with a probability of 1 %, divided by the number of windows
                that were compared (Bonferroni)

A window is a quarter of the epochs, at least three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from paceline.analyze.stats.students_t import quantile
from paceline.records.learning import Stable, Turn
from paceline.units import counted

FEWEST_EPOCHS = 6
"""With fewer, a plateau of three epochs has nothing to be compared with."""
WITHIN = 2.0
"""Tolerance in units of the noise: an epoch on the plateau exceeds it with a probability of 5 %."""
SURE = 0.95
"""Confidence of either end of the interval."""
COVERAGE = 2 * SURE - 1
"""Coverage of the interval."""
OVERFITTING_LEVEL = 0.01
_DIFFERENCES_PER_DF = 35 / 18
"""Second differences overlap: so many of them count as one degree of freedom of σ."""


@dataclass(frozen=True, slots=True)
class _Level:
    """Plateau and noise of a curve."""

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
        """The tolerance plus rounding errors: a curve without noise is at its own plateau."""
        return self.tolerance + 1e-12 * max(1.0, abs(self.plateau))

    def error(self, averaged: np.ndarray | float) -> np.ndarray:
        """Half width of the interval of (distance from the plateau − tolerance), for a mean over so many epochs."""
        own = self.noise**2 / self.runs * (1 / np.asarray(averaged) + 1 / self.window)
        return quantile(SURE, self.df) * np.sqrt(own + self.tolerance**2 / (2 * self.df))


def stable(curves: np.ndarray) -> Stable:
    """The stable epoch, with its interval, of curves with one row per run and one column per epoch."""
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
            high = None  # the curve may still change
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
    df = len(bends) / _DIFFERENCES_PER_DF
    squares = float(np.mean(bends**2)) * df
    if runs > 1:
        own = late - late.mean(axis=0) - late.mean(axis=1, keepdims=True) + late.mean()
        squares += float(np.sum(own**2))
        df += (runs - 1) * (late.shape[1] - 1)
    return math.sqrt(squares / df), df


def _change(mean: np.ndarray, level: _Level) -> tuple[float, float]:
    """The change of the curve's linear fit over the plateau, and the half width of its interval."""
    away = np.arange(level.window) - (level.window - 1) / 2
    length = (level.window - 1) / float(away @ away)
    change = abs(float(mean[-level.window :] @ away)) * length
    own = (level.noise * length) ** 2 * float(away @ away) / level.runs
    error = quantile(SURE, level.df) * math.sqrt(own + level.tolerance**2 / (2 * level.df))
    return change, error


def _crossing(mean: np.ndarray, level: _Level) -> tuple[int | None, int | None, int | None]:
    """The stable epoch and the ends of its interval; the upper end is None if no epoch is significantly inside, all are
    None if the curve leaves its plateau at the end."""
    begun, sign = _approach(mean, level)
    missing = sign * (level.plateau - mean[begun:])
    surely_outside = np.full(len(missing), -np.inf)
    perhaps_outside = np.full(len(missing), np.inf)
    for size in (1 << power for power in range(level.window.bit_length())):
        after, count = _running_mean(missing, size, ahead=True)
        surely_outside = np.maximum(surely_outside, after - level.error(count))
        before, count = _running_mean(missing, size, ahead=False)
        perhaps_outside = np.minimum(perhaps_outside, before + level.error(count))
    inside = _never_rising(missing) <= level.limit
    low = int(np.flatnonzero(surely_outside > level.limit).max(initial=-1)) + 1
    if low == len(missing):
        return None, None, None  # the last epoch is outside the tolerance
    high = _first(perhaps_outside <= level.limit, since=low)
    middle = max(_first(inside) or 0, low)
    middle = middle if high is None else min(middle, high)
    return begun + middle + 1, begun + low + 1, None if high is None else begun + high + 1


def _approach(mean: np.ndarray, level: _Level) -> tuple[int, int]:
    """Index of the epoch at which the last approach to the plateau begins; 1 from below, -1 from above."""
    means, counts = _running_mean(mean, level.window, ahead=True)
    best = int(np.argmax(means[: len(mean) - level.window + 1]))
    above = float(means[best]) - level.plateau
    if above - float(level.error(counts[best])) <= level.limit:
        return 0, 1
    return best, -1


def _running_mean(values: np.ndarray, size: int, *, ahead: bool) -> tuple[np.ndarray, np.ndarray]:
    """Means over up to `size` values from each value on (`ahead`) or up to it, and the number of values in each."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    here = np.arange(len(values))
    first = here if ahead else np.maximum(here - size + 1, 0)
    past = np.minimum(here + size, len(values)) if ahead else here + 1
    return (sums[past] - sums[first]) / (past - first), past - first


def _never_rising(values: np.ndarray) -> np.ndarray:
    """The non-increasing sequence with the least squares: isotonic regression by pooling neighbours."""
    pooled: list[tuple[float, int]] = []
    for value in values.tolist():
        total, count = value, 1
        while pooled and pooled[-1][0] / pooled[-1][1] < total / count:
            earlier, more = pooled.pop()
            total, count = total + earlier, count + more
        pooled.append((total, count))
    return np.concatenate([np.full(count, total / count) for total, count in pooled])


def _first(true: np.ndarray, since: int = 0) -> int | None:
    return since + int(np.argmax(true[since:])) if true[since:].any() else None


def turn(validation_loss: np.ndarray | None, train_loss: np.ndarray | None) -> Turn | None:
    """The epoch at which overfitting begins; None if there is none beyond noise, or too few epochs.

    Both arrays have one row per run and one column per epoch.
    """
    if validation_loss is None or train_loss is None:
        return None
    epochs = min(validation_loss.shape[1], train_loss.shape[1])
    if epochs < FEWEST_EPOCHS:
        return None
    window = max(3, math.ceil(epochs / 4))
    validation, training = (_window_means(curves[:, :epochs], window) for curves in (validation_loss, train_loss))
    earlier = len(validation) - window  # windows that share no epoch with the last one
    if earlier < 1:
        return None
    lowest = int(np.argmin(validation[:earlier]))
    rise, fall = float(validation[-1] - validation[lowest]), float(training[lowest] - training[-1])
    if rise <= _most_by_chance(validation_loss, window, earlier) or fall <= _most_by_chance(train_loss, window, 1):
        return None
    centre = lowest + window // 2
    return Turn(epoch=centre + 1, rise=rise, fall=fall)


def _window_means(curves: np.ndarray, window: int) -> np.ndarray:
    """The mean over runs, averaged over every window of epochs."""
    sums = np.concatenate(([0.0], np.cumsum(curves.mean(axis=0))))
    return (sums[window:] - sums[:-window]) / window


def _most_by_chance(curves: np.ndarray, window: int, looks: int) -> float:
    """The largest difference of two windows of a flat curve at OVERFITTING_LEVEL, for so many comparisons."""
    sigma, df = noise(curves)
    return quantile(1 - OVERFITTING_LEVEL / looks, df) * sigma * math.sqrt(2 / (window * len(curves)))
