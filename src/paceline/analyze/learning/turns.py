"""Overfitting: validation loss that turns while training loss goes on falling, both by more than noise.

    turn        the window of epochs with the lowest mean validation loss, before the last one
    rise        mean of the last window less that of the turn's
    called so   where rise and fall exceed what noise gives one time in a hundred, for every window that was looked at

A window is a quarter of the epochs, three at least: a single epoch is too easily the lowest by chance, and the lowest
of many the more so, which is why the level is divided by their number (Bonferroni).
"""

from __future__ import annotations

import math

import numpy as np

from paceline.analyze.learning.stable import FEWEST_EPOCHS, noise
from paceline.analyze.stats.students_t import quantile
from paceline.records.learning import Turn

LEVEL = 0.01


def turn(validation_loss: np.ndarray | None, train_loss: np.ndarray | None) -> Turn | None:
    """Where validation turns; None where it does not by more than noise, or where there is too little to tell.

    Both have one row per run and one column per epoch.
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
    """The mean curve, averaged over every window of epochs."""
    sums = np.concatenate(([0.0], np.cumsum(curves.mean(axis=0))))
    return (sums[window:] - sums[:-window]) / window


def _most_by_chance(curves: np.ndarray, window: int, looks: int) -> float:
    """The most that two windows of a flat curve differ by, at the level, for so many looks."""
    sigma, df = noise(curves)
    return quantile(1 - LEVEL / looks, df) * sigma * math.sqrt(2 / (window * len(curves)))
