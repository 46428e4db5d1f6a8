"""Synchronised batch-norm along the data axis: `train.sync_batchnorm` of a study file.

PyTorch's own needs GPUs. A rank sends one message forward and one backward for each layer:

    forward     n, mean and sum of squared deviations of every channel, from every rank
                n = Σ n_r    m = Σ n_r m_r / n    v = (Σ M_r + n_r (m_r - m)²) / n        (Chan, Golub, LeVeque, 1979)
                x̂ = (x - m) / √(v + ε)    y = γ x̂ + β
    backward    Σ dy and Σ dy·x̂ of every channel, summed over ranks
                dx = γ / √(v + ε) · (dy - Σ dy / n - x̂ · Σ dy·x̂ / n)                      (Ioffe and Szegedy, 2015)

N ranks normalise as one process with the same global batch, for any shares. A rank without samples passes one sample
of weight zero through the network: it is not counted, and is normalised with the statistics of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from paceline.errors import ModelError
from paceline.probe.recorder import Recorder

SYNCHRONISED = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(slots=True)
class BatchNormParticipation:
    """Whether this rank's samples count in this step; shared by all layers of a model."""

    recorder: Recorder
    group: dist.ProcessGroup | None = None
    """Ranks along the data axis; None for all."""
    counted: bool = True


class SynchronisedBatchNorm(_BatchNorm):
    """Replaces a layer of PyTorch, with its parameters, buffers and checkpoint names."""

    def __init__(self, layer: _BatchNorm, participation: BatchNormParticipation) -> None:
        super().__init__(0, layer.eps, layer.momentum, layer.affine, layer.track_running_stats)
        self.num_features = layer.num_features
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(self, name, getattr(layer, name))
        self.training = layer.training
        self._participation = participation

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training:
            batch_statistics = self.running_mean is None
            return functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, batch_statistics, 0.0, self.eps
            )
        # Statistics of bfloat16 are computed in float32, as in PyTorch's layer.
        wide = input.to(torch.promote_types(input.dtype, torch.float32))
        outputs, mean, variance, count = _Normalise.apply(wide, self.weight, self.bias, self.eps, self._participation)
        self._update_running(mean, variance, int(count))
        return outputs.to(input.dtype)

    @torch.no_grad()
    def _update_running(self, mean: torch.Tensor, variance: torch.Tensor, count: int) -> None:
        """Update the running statistics as PyTorch does, with the unbiased variance."""
        if self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        factor = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
        self.running_var.lerp_((variance * (count / (count - 1))).to(self.running_var.dtype), factor)


class _Normalise(torch.autograd.Function):
    """Normalised inputs; mean, variance and count over all ranks, without gradients."""

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  its own arguments are its point
        ctx: Any,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        participation: BatchNormParticipation,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, variance, count = _global_statistics(inputs, participation)
        if count <= 1:
            raise _single_value(inputs)
        deviation = (variance + eps).rsqrt().to(inputs.dtype)
        normal = (inputs - _broadcast_channels(mean.to(inputs.dtype), inputs)) * _broadcast_channels(deviation, inputs)
        outputs = normal if weight is None else normal * _broadcast_channels(weight, inputs)
        outputs = outputs if bias is None else outputs + _broadcast_channels(bias, inputs)
        ctx.save_for_backward(normal, weight, deviation)
        ctx.count, ctx.counted, ctx.participation = float(count), participation.counted, participation
        ctx.mark_non_differentiable(mean, variance, count)
        return outputs, mean, variance, count

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gradient = gradients[0]
        normal, weight, deviation = ctx.saved_tensors
        over = [dim for dim in range(gradient.dim()) if dim != 1]
        own = torch.stack((gradient.sum(over), (gradient * normal).sum(over)))
        sums = own.double()
        with ctx.participation.recorder.span("communicate"):
            dist.all_reduce(sums, group=ctx.participation.group)
        scale = deviation if weight is None else deviation * weight
        if ctx.counted:
            mean, along = (sums / ctx.count).to(gradient.dtype)
            gradient = gradient - _broadcast_channels(mean, gradient) - normal * _broadcast_channels(along, gradient)
        # Strategies sum these with all other gradients.
        for_weight, for_bias = (own[1], own[0]) if weight is not None else (None, None)
        return gradient * _broadcast_channels(scale, gradient), for_weight, for_bias, None, None


def synchronise(model: nn.Module, recorder: Recorder, group: dist.ProcessGroup | None) -> BatchNormParticipation:
    """Participation record of the model, whose batch-norm layers are replaced by synchronised ones."""
    participation = BatchNormParticipation(recorder, group)
    made: dict[int, SynchronisedBatchNorm] = {}
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, SYNCHRONISED) and type(child) in SYNCHRONISED:  # a subclass may differ
                layer = made.setdefault(id(child), SynchronisedBatchNorm(child, participation))
                setattr(parent, name, layer)
    return participation


def has_batchnorm(model: nn.Module) -> bool:
    """Whether a model has batch-norm layers that can be synchronised."""
    return any(type(module) in SYNCHRONISED for module in model.modules())


def _global_statistics(
    inputs: torch.Tensor, participation: BatchNormParticipation
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean, variance and count of each channel over all ranks: bitwise equal on each."""
    over = [dim for dim in range(inputs.dim()) if dim != 1]
    variance, mean = torch.var_mean(inputs.detach(), over, correction=0)
    # In float64: a float32 cannot hold a count beyond 2^24.
    count = inputs.numel() // inputs.shape[1] * participation.counted
    own = torch.cat((mean.new_tensor([count]), mean, variance * count)).double()
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size(participation.group))]
    with participation.recorder.span("communicate"):
        dist.all_gather(parts, own, group=participation.group)
    rows = torch.stack(parts)
    counts = rows[:, :1]
    means, squares = rows[:, 1:].tensor_split(2, dim=1)
    total = counts.sum()
    together = (counts * means).sum(0) / total
    spread = (squares + counts * (means - together) ** 2).sum(0) / total
    return together, spread, total


def _broadcast_channels(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """One value per channel, with the dimensions of `like`."""
    return values.view(1, -1, *[1] * (like.dim() - 2))


def _single_value(inputs: torch.Tensor) -> ModelError:
    return ModelError(
        f"Batch-norm was given a single value per channel over all ranks: an input of {tuple(inputs.shape)}.",
        right="A step of one sample has no variance, so that a layer without images cannot normalise it.",
        next="Choose a batch_global that does not leave a single sample for the last step of an epoch.",
    )
