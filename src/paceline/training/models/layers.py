"""Two layers of the small networks that are faster on a CPU than those of PyTorch.

Flatten    in the memory order of channels-last images, height × width × channels, as Keras does: PyTorch's order would
           need a copy, forward and backward
Dropout    16 random bits per value instead of a random float: these took a tenth of a small network's step
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

_BITS = 16
_LOWEST = -(1 << 63)
"""Smallest int64."""


class Flatten(nn.Module):
    """N×C×H×W to N×(H·W·C)."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 2, 3, 1).flatten(1)


class Dropout(nn.Dropout):
    """Each value is zeroed with probability p, to 1/65,536, and the others are scaled by 1 / (1 - p)."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p in (0, 1) or input.device.type != "cpu":
            return functional.dropout(input, self.p, self.training)
        return _Drop.apply(input, self.p)


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, p: float) -> torch.Tensor:
        stays = dropout_mask(values, p).to(values.dtype)
        ctx.save_for_backward(stays)
        ctx.factor = 1 / (1 - p)
        # Two products: a factor in bfloat16 would have an error of 0.25 %, and with it every activation.
        return (values * stays).mul_(ctx.factor)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (stays,) = ctx.saved_tensors
        return (gradients[0] * stays).mul_(ctx.factor), None


def dropout_mask(values: torch.Tensor, p: float) -> torch.Tensor:
    """Mask of retained values, from the default generator: as many bits for any memory layout."""
    words = torch.empty(-(-values.numel() * _BITS // 64), dtype=torch.int64).random_(_LOWEST, None)
    draws = words.view(torch.int16)[: values.numel()]
    # In the memory order of the values, for contiguous access.
    dense = values.is_contiguous() or values.is_contiguous(memory_format=torch.channels_last)
    draws = draws.as_strided(values.size(), values.stride()) if dense else draws.view(values.size())
    highest = (1 << (_BITS - 1)) - 1
    return draws >= min(round(p * (1 << _BITS)) - highest - 1, highest)
