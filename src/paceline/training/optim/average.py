"""Exponential average of the weights, which is evaluated instead of the weights.

    average ← average + (1 - d) / (1 - dᵗ) · (weights - average)        d = exp(-1 / (average_epochs · steps per epoch))

after step t. The divisor corrects the bias of the start, as in Adam's moments: after the first step the average equals
the weights, and later it is the mean of all weights so far, with weights d, d², ... for earlier steps. Polyak and
Juditsky 1992 weight all steps equally.

Only trained parameters are averaged: frozen ones do not change, and batch-norm statistics are averages already. Each
phase has a new average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn

_PREFIX = "average."


class Average:
    """Averaged weights of a model."""

    def __init__(self, model: nn.Module, *, epochs: float, steps_per_epoch: int) -> None:
        learning = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        self._names = list(learning)
        self._weights = [parameter.detach() for parameter in learning.values()]
        self._average = [weights.clone() for weights in self._weights]
        self._log_decay = -1 / (epochs * steps_per_epoch)

    def update(self, step: int) -> None:
        """Add the weights after a step, counted from 1."""
        # expm1: for a long average both are differences of numbers close to 1.
        share = math.expm1(self._log_decay) / math.expm1(self._log_decay * step)
        torch._foreach_lerp_(self._average, self._weights, share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Context in which the model has its averaged weights; its own weights are restored bitwise."""
        own = [weights.clone() for weights in self._weights]
        torch._foreach_copy_(self._weights, self._average)
        try:
            yield
        finally:
            torch._foreach_copy_(self._weights, own)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors for a checkpoint, by name."""
        return {_PREFIX + name: average for name, average in zip(self._names, self._average, strict=True)}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Continue from the tensors of a checkpoint."""
        for name, average in zip(self._names, self._average, strict=True):
            average.copy_(tensors[_PREFIX + name])
