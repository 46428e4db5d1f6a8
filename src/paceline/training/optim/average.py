"""An exponential average of the weights, which is evaluated in their place.

    average ← average + (1 - d) / (1 - dᵗ) · (weights - average)        d = exp(-1 / (average_epochs · steps per epoch))

after the t-th step. The divisor takes out what the start would weigh, as in Adam's moments: after the first step the
average is the weights, and later it is the mean of all weights so far, each step back by d lighter. Polyak and
Juditsky 1992 average all steps alike; this forgets what lies several times `average_epochs` back.

Parameters that learn are averaged, and nothing else: frozen ones do not move, and statistics of batch normalisation
are averages over many steps as they are. A phase that lets more of them learn has an average of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn

_PREFIX = "average."


class Average:
    """The averaged weights of a model."""

    def __init__(self, model: nn.Module, *, epochs: float, steps_per_epoch: int) -> None:
        learning = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        self._names = list(learning)
        self._weights = [parameter.detach() for parameter in learning.values()]
        self._average = [weights.clone() for weights in self._weights]
        self._log_decay = -1 / (epochs * steps_per_epoch)

    def update(self, step: int) -> None:
        """Take in the weights after a step, counted from 1."""
        # expm1: at a long average both are differences of numbers close to 1.
        share = math.expm1(self._log_decay) / math.expm1(self._log_decay * step)
        torch._foreach_lerp_(self._average, self._weights, share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with its averaged weights; afterwards it has its own again, bit for bit."""
        own = [weights.clone() for weights in self._weights]
        torch._foreach_copy_(self._weights, self._average)
        try:
            yield
        finally:
            torch._foreach_copy_(self._weights, own)

    def tensors(self) -> dict[str, torch.Tensor]:
        """What a checkpoint has to keep, by name."""
        return {_PREFIX + name: average for name, average in zip(self._names, self._average, strict=True)}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Go on from what a checkpoint has kept."""
        for name, average in zip(self._names, self._average, strict=True):
            average.copy_(tensors[_PREFIX + name])
