"""AdaScale SGD: a learning rate that grows as a larger batch reduces noise (Johnson et al., 2020, arXiv 2007.05105).

A step of S times the batch that `lr` is meant for, b, is worth at least one and at most S steps of that batch:

    gain r = (σ² + μ²) / (σ² / S + μ²)        σ² = tr(Σ) / b     variance of a gradient over b samples
                                              μ² = |G|²          square of the true gradient
    rate   = r · lr(τ)                        τ advances by r a step: the argument of the schedule

With noise only, r = S, which is the linear rule; without noise, r = 1, and more samples have no effect. tr(Σ) and |G|²
are those of `gradient_noise.py`, averaged: the mean of all steps so far, and after 1000 / min(S, parts) steps an
exponential average of that length. In the paper (appendix B.3) S is the number of parts. A negative average of |G|² is
replaced by 0; values of single steps are not, which would bias it upwards.

τ is counted in steps of S · b samples, r / S for each: it equals the number of steps for r = S, and is less otherwise.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from paceline.records.study import Point
from paceline.training.optim.lr_schedule import rule_factor


class AdaScale:
    """Gain of every step, and progress of the schedule. Equal on all ranks."""

    def __init__(self, *, batch: float, scale: float) -> None:
        """`batch` is the one that `lr` is meant for, `scale` the ratio of the global batch to it."""
        self._batch = batch
        self._scale = scale
        self._seen = 0
        self._variance = 0.0
        self._signal = 0.0
        self.gain = 1.0
        self.progress = 0.0
        """τ, in steps of this batch."""

    def measured(self, variance: float, signal: float, parts: int) -> None:
        """Add tr(Σ) and |G|² of a step, before the update."""
        self._seen += 1
        weight = min(1.0, max(min(self._scale, parts) / 1000, 1 / self._seen))
        self._variance += weight * (variance - self._variance)
        self._signal += weight * (signal - self._signal)
        self.gain = gain(self._variance / self._batch, self._signal, self._scale)

    def advance(self) -> None:
        """Count a step."""
        self.progress += self.gain / self._scale

    def state(self) -> torch.Tensor:
        """Tensor for a checkpoint."""
        numbers = [self._seen, self._variance, self._signal, self.gain, self.progress]
        return torch.tensor(numbers, dtype=torch.float64)

    def restore(self, state: torch.Tensor) -> None:
        seen, self._variance, self._signal, self.gain, self.progress = state.tolist()
        self._seen = int(seen)


def adascale_of(point: Point) -> AdaScale | None:
    """AdaScale of a point; None for another rule, or if its batch is the one that `lr` is meant for."""
    if point.train.lr_rule != "adascale":
        return None
    linear = replace(point.train, lr_rule="linear")
    scale = rule_factor(linear, batch_global=point.batch_global, ranks=point.data_size)
    return None if scale == 1 else AdaScale(batch=point.batch_global / scale, scale=scale)


def gain(variance: float, signal: float, scale: float) -> float:
    """Gain of a batch `scale` times as large, from the variance at the smaller batch and the squared gradient."""
    signal = max(signal, 0.0)  # an average of few steps may be negative
    below = variance / scale + signal
    return (variance + signal) / below if below > 0 else 1.0
