"""The numbers a model computes with: `train.precision`.

    float32     weights, gradients, messages and arithmetic
    float64     the same, for what must not depend on the order of a sum
    bfloat16    mixed: convolutions and products in bfloat16, the rest as in float32

Mixed is what torch calls autocast (Micikevicius 2017, arXiv 1710.03740). Weights, gradients, the optimizer's state and
every message stay float32, so that strategies, checkpoints and counted bytes are those of float32. bfloat16 has the
range of float32 and needs no scaling of the loss.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from paceline.records.settings import TrainSettings

WEIGHT_DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}
"""What weights and inputs are, by precision."""


def move_to_device(model: nn.Module, settings: TrainSettings, device: torch.device) -> None:
    """Put a model on a device, in the layout and the precision that it computes with."""
    model.to(device=device, dtype=WEIGHT_DTYPES[settings.precision])
    # Not model.to(memory_format=...): it asks the same of weights with five dimensions, which have no such layout.
    model._apply(_channels_last)
    if settings.precision == "bfloat16":
        _mix(model, "forward", device)
        if settings.cached_features:  # its two halves are then called apart
            _mix(model, "features", device)
            _mix(model, "head", device)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(tensor.dtype, memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def _mix(model: nn.Module, name: str, device: torch.device) -> None:
    """Let what a model has by this name, a method or a layer of its own, compute in mixed precision."""
    part = getattr(model, name)
    if isinstance(part, nn.Module):
        part.forward = _mixed(part.forward, device)
    else:
        setattr(model, name, _mixed(part, device))


def _mixed(compute: Callable[..., torch.Tensor], device: torch.device) -> Callable[..., torch.Tensor]:
    """The same function in mixed precision: float32 in, float32 out."""

    def computed(*inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return compute(*inputs).float()

    return computed
