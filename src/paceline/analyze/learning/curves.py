"""Runs -> arrays of their curves, and the mean over repeats with its interval.

A run with a value that is missing or not a finite number has no curve of that measure: it is called diverged
elsewhere, and would make every mean one that is not a number. Of a training in two phases the first counts here: the
second one begins another curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paceline.analyze.stats.intervals import CONFIDENCE, FEWEST_FOR_INTERVAL
from paceline.analyze.stats.students_t import quantile
from paceline.records.learning import Band
from paceline.records.run import RunResult

MEASURES = ("loss", "accuracy")
PARTS = ("train", "validation")


def curve_array(runs: Sequence[RunResult], part: str, measure: str) -> np.ndarray | None:
    """One row per run, one column per whole epoch of the first phase that all have; None where no run has any."""
    rows = [_values(run, f"{part}_{measure}") for run in runs]
    known = [row for row in rows if row]
    if not known:
        return None
    epochs = min(len(row) for row in known)
    return np.array([row[:epochs] for row in known], dtype=np.float64)


def bands(runs: Sequence[RunResult]) -> tuple[Band, ...]:
    """Loss and accuracy, in training and in validation, as far as they were measured."""
    found = ((part, measure, curve_array(runs, part, measure)) for measure in MEASURES for part in PARTS)
    return tuple(_band(part, measure, curves) for part, measure, curves in found if curves is not None)


def _band(part: str, measure: str, curves: np.ndarray) -> Band:
    """The mean of every epoch, and Student's interval for it from five runs on."""
    n, mean, low, high = len(curves), curves.mean(axis=0), np.empty(0), np.empty(0)
    if n >= FEWEST_FOR_INTERVAL:
        half = quantile((1 + CONFIDENCE) / 2, n - 1) * curves.std(axis=0, ddof=1) / math.sqrt(n)
        low, high = mean - half, mean + half
    return Band(
        measure=measure,
        part=part,
        epochs=tuple(range(1, curves.shape[1] + 1)),
        mean=tuple(mean.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        n=n,
    )


def _values(run: RunResult, name: str) -> list[float]:
    """A measure of every whole epoch of a run's first phase; nothing where one is missing or not finite."""
    values = [getattr(epoch, name) for epoch in run.epochs if epoch.whole and epoch.phase == "train"]
    return values if all(value is not None and math.isfinite(value) for value in values) else []
