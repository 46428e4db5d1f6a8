"""A pretrained network with a new head, for transfer learning.

    pixels ──▶ preprocessing ──▶ base ──▶ N×F features ──▶ head ──▶ N×classes scores
                          └── frozen: no gradient, batch-norm in evaluation mode ──┘

A frozen base computes equal features for an image at any time and on any rank: its parameters have no gradient and its
running statistics do not change. When it is unfrozen for fine-tuning, its batch-norm uses either the statistics of the
pretraining or those of each batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from paceline.errors import ModelError


class Transfer(nn.Module):
    """Preprocessing, base and head; starts unfrozen."""

    def __init__(self, base: nn.Module, head: nn.Module, *, preprocessing: nn.Module | None = None) -> None:
        super().__init__()
        self.preprocessing = nn.Identity() if preprocessing is None else preprocessing
        self.base = base
        self.head = head
        self.wants_pixels = preprocessing is not None
        """Whether inputs are unscaled pixels as floats from 0 to 255, N×C×H×W."""
        self.frozen = False
        self.facts: dict[str, str] = {}
        """For the record: network, weights, preprocessing."""
        self._keeps_statistics = False

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """Features of the images, N×F."""
        if self.frozen:
            # No backward pass: stored activations would take most of the memory.
            with torch.no_grad():
                return self._features(inputs)
        return self._features(inputs)

    def _features(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.base(self.preprocessing(inputs)).flatten(1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(inputs))

    def freeze(self) -> None:
        """Train only the head."""
        self.frozen = True
        self.base.requires_grad_(False)
        self.train(self.training)

    def unfreeze(self, *, batchnorm: str = "frozen") -> None:
        """Train the base, too; its batch-norm statistics are fixed if `batchnorm` is frozen, and updated if it is
        train.
        """
        self.frozen = False
        self._keeps_statistics = batchnorm == "frozen"
        self.base.requires_grad_(True)
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """Training mode; a frozen base, or its batch-norm, stays in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.base.eval()
        elif self._keeps_statistics:
            for module in self.base.modules():
                if isinstance(module, _BatchNorm) or getattr(module, "one_mode", False):
                    module.eval()
        return self


def dense_head(features: int, classes: int, sizes: Sequence[int]) -> nn.Sequential:
    """Dense layers of `sizes`, each with ReLU, and a last one of `classes`."""
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        raise ModelError(
            f"A head of {list(sizes)} cannot be built.",
            right="head lists the sizes of the dense layers before the last one, each 1 or more; [] for none.",
        )
    layers: list[nn.Module] = []
    for size in sizes:
        layers += [nn.Linear(features, size), nn.ReLU(inplace=True)]
        features = size
    return nn.Sequential(*layers, nn.Linear(features, classes))
