"""Number formats of a model: `train.precision`.

    float32     weights, gradients, messages and arithmetic
    float64     for results that must not depend on the order of a sum
    bfloat16    mixed: convolutions and matrix products in bfloat16, the rest in float32

Mixed precision is torch's autocast (Micikevicius 2017, arXiv 1710.03740). Weights, gradients, optimizer state and
messages stay float32: strategies, checkpoints and counted bytes are those of float32. bfloat16 has the range of float32
and needs no loss scaling.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from paceline.records.settings import TrainSettings

WEIGHT_DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}
"""Data type of weights and inputs, by precision."""


def move_to_device(model: nn.Module, settings: TrainSettings, device: torch.device) -> None:
    """Move a model to a device, with its memory format and precision."""
    model.to(device=device, dtype=WEIGHT_DTYPES[settings.precision])
    # Not model.to(memory_format=...): it fails for weights with five dimensions.
    model._apply(_channels_last)
    if settings.precision == "bfloat16":
        _mix(model, "forward", device)
        if settings.cached_features:  # features and head are called separately
            _mix(model, "features", device)
            _mix(model, "head", device)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(tensor.dtype, memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def _mix(model: nn.Module, name: str, device: torch.device) -> None:
    """Run a method or submodule of a model in mixed precision."""
    part = getattr(model, name)
    if isinstance(part, nn.Module):
        part.forward = _mixed(part.forward, device)
    else:
        setattr(model, name, _mixed(part, device))


def _mixed(compute: Callable[..., torch.Tensor], device: torch.device) -> Callable[..., torch.Tensor]:
    """The function under autocast: float32 in, float32 out."""

    def computed(*inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return compute(*inputs).float()

    return computed
