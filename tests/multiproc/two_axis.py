"""A strategy on a mesh of two axes, in one file: `flat` along `data`, columns of dense layers along `tensor`.

    x ──▶ own columns of the layer ──▶ gathered along `tensor` ──▶ y          backward: dx summed along `tensor`

Nothing outside this file knows of it: sampling, evaluation, checkpoints and random numbers ask the layout.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from paceline import catalog
from paceline.layout import Axis
from paceline.training.parallel.flat import Flat
from paceline.training.parallel.strategy import ProcessContext, Tensors

NAME, TENSOR = "flat-tensor", "tensor"


def register() -> None:
    """Add the strategy to the catalog of this process."""
    catalog.ENTRIES["strategy"][NAME] = catalog.StrategyEntry(
        at="two_axis:FlatTensor",
        text="flat, with dense layers divided over two ranks",
        axes=(Axis(name=TENSOR, size=2, divides_network=True),),
    )


class FlatTensor(Flat):
    """Gradients are summed along `data`; dense layers are divided along `tensor`."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        divided = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, Columns)]
        self._divided = {f"{name}.{each}" for name, layer in divided for each, _ in layer.named_parameters()}

    @staticmethod
    def divide(model: nn.Module, context: ProcessContext) -> None:
        for parent in list(model.modules()):
            for name, layer in list(parent.named_children()):
                if isinstance(layer, nn.Linear):
                    setattr(parent, name, Columns(layer, context))

    def clip(self, norm: float) -> None:
        """The squares of divided gradients are summed over shards, those of the others are counted once."""
        squares = torch.zeros(2, dtype=torch.float64)
        gradients = [(name, p.grad) for name, p in self._model.named_parameters() if p.grad is not None]
        for name, gradient in gradients:
            squares[int(name in self._divided)] += gradient.double().square().sum()
        dist.all_reduce(squares[1:], group=self._context.group(TENSOR))
        factor = min(1.0, norm / (float(squares.sum().sqrt()) + 1e-6))
        for _, gradient in gradients:
            gradient.mul_(factor)

    def whole(self, tensors: Tensors) -> Tensors:
        return {name: self._gathered(each) if self._is_divided(name, each) else each for name, each in tensors.items()}

    def shard(self, tensors: Tensors) -> Tensors:
        context = self._context
        size, index = context.layout.size(TENSOR), context.layout.index(context.rank, TENSOR)
        return {n: t.chunk(size)[index] if self._is_divided(n, t) else t for n, t in tensors.items()}

    def _is_divided(self, name: str, tensor: torch.Tensor) -> bool:
        kind, _, parameter = name.partition(".")
        if kind == "optimizer":
            parameter = parameter.rpartition(".")[0]
        return tensor.dim() > 0 and parameter in self._divided

    def _gathered(self, tensor: torch.Tensor) -> torch.Tensor:
        return _gather(tensor.detach().contiguous(), self._context.group(TENSOR), 0)


class Columns(nn.Module):
    """This rank's columns of a dense layer; its output is that of the whole layer."""

    def __init__(self, layer: nn.Linear, context: ProcessContext) -> None:
        super().__init__()
        size, self._index = context.layout.size(TENSOR), context.layout.index(context.rank, TENSOR)
        self.weight = nn.Parameter(layer.weight.detach().chunk(size)[self._index].clone())
        self.bias = nn.Parameter(layer.bias.detach().chunk(size)[self._index].clone())
        self._group = context.group(TENSOR)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        own = functional.linear(_Copied.apply(inputs, self._group), self.weight, self.bias)
        return _Joined.apply(own, self._group, self._index)


class _Copied(torch.autograd.Function):
    """The same inputs on all ranks of a group, whose gradients are summed."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return inputs.view_as(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        gradient = gradients[0].contiguous().clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class _Joined(torch.autograd.Function):
    """The columns of all ranks of a group side by side; each has the gradient of its own."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, group: Any, index: int) -> torch.Tensor:
        ctx.index, ctx.columns = index, own.shape[1]
        return _gather(own.contiguous(), group, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        start = ctx.index * ctx.columns
        return gradients[0][:, start : start + ctx.columns], None, None


def _gather(own: torch.Tensor, group: Any, dim: int) -> torch.Tensor:
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, own, group=group)
    return torch.cat(parts, dim)
