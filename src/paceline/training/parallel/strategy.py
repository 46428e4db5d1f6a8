"""The contract of a strategy: turn each rank's gradients into the same update on all ranks.

The loss of a rank is the *sum* over its samples, divided by the samples of all ranks in this step. Gradients are
therefore *summed* along the data axis of the layout. This weights uneven batches correctly, and a rank without samples
contributes zeros.

    divide(model, context)
                      called once, before the optimizer is made: replaces layers by this rank's shard of them
    module            module of the forward pass
    loss_factor       factor on the loss: the size of the data axis for a strategy that averages
    peers             how ranks along the data axis agree on values that are not gradients: sums of losses and counts
    everyone          how all ranks agree: values of rank 0, a barrier
    restored()        called on every rank after model and optimizer were read from a checkpoint
    warm_up(pass)     called once per process, before the first step: for state that settles only after a first step (as
                      DDP's buckets), so that a resumed run is bitwise equal to one without interruption
    before_forward()  called before every forward pass: copies the buffers of rank 0
    forward_backward(batch, objective)
                      loss and gradients of a batch or micro-batch: a pipeline overrides it
    exchange()        called after backward: communicates the gradients
    clip(norm)        called before the update if gradients are clipped: norm of the gradient of the whole network
    update()          takes the optimizer step
    clear()           called after the update: zeroes the gradients
    settle()          called on all ranks before evaluation, a checkpoint and the end: parameters are then equal on all
                      replicas, and the optimizer of rank 0 has the state of the run
    whole(tensors)    this rank's tensors by name as those of the whole network: rank 0 writes them to a checkpoint
    shard(tensors)    the inverse, after a checkpoint was read
    leave()           called on all ranks after a successful run: servers may end

Ranks start from the parameters and buffers of rank 0, or of the first rank with the same shard. A strategy is
constructed with (model, optimizer, context). The catalog has the axes of its layout besides `data`: ranks along them
have equal samples and equal random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from paceline.layout import DATA, Layout
from paceline.probe.recorder import Recorder
from paceline.records.study import Point
from paceline.training.batches import Batch
from paceline.training.objective import Objective

Tensors = Mapping[str, torch.Tensor]
"""Tensors of a checkpoint by name: model.<name>, optimizer.<parameter>.<slot>, average.<name>."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessContext:
    """The run, as one of its ranks sees it."""

    rank: int
    point: Point
    recorder: Recorder
    groups: Mapping[str, dist.ProcessGroup] = field(default_factory=dict)
    """This rank's process group along each axis; empty for a single axis."""

    @property
    def layout(self) -> Layout:
        """Mesh of the training ranks, without servers and coordinator."""
        return self.point.layout

    @property
    def size(self) -> int:
        """Number of training ranks."""
        return self.point.ranks

    def group(self, axis: str) -> dist.ProcessGroup | None:
        """Process group of this rank along an axis; None for the group of all processes."""
        return self.groups.get(axis)

    def first(self, axis: str) -> int:
        """Rank with index 0 in this rank's group along an axis."""
        return self.layout.group(self.rank, axis)[0]


class Peers(Protocol):
    """How ranks agree on values that are not gradients. All calls are collective."""

    def sum(self, tensor: torch.Tensor) -> None:
        """Sum over ranks, in place."""
        ...

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """One row per rank, in order; all rows are valid only on the first rank."""
        ...

    def broadcast(self, tensor: torch.Tensor) -> None:
        """Copy the values of the first rank, in place."""
        ...

    def barrier(self) -> None:
        """Wait for all ranks."""
        ...


class Strategy(Protocol):
    """How the work is divided over ranks."""

    module: nn.Module
    loss_factor: float
    peers: Peers
    everyone: Peers

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None: ...

    @staticmethod
    def divide(model: nn.Module, context: ProcessContext) -> None: ...

    def restored(self) -> None: ...

    def warm_up(self, forward_backward: Callable[[], None]) -> None: ...

    def before_forward(self) -> None: ...

    def forward_backward(self, batch: Batch, objective: Objective) -> torch.Tensor: ...

    def exchange(self) -> None: ...

    def clip(self, norm: float) -> None: ...

    def update(self) -> None: ...

    def clear(self) -> None: ...

    def settle(self) -> None: ...

    def whole(self, tensors: Tensors) -> Tensors: ...

    def shard(self, tensors: Tensors) -> Tensors: ...

    def leave(self) -> None: ...


class Synchronous:
    """Base of strategies whose model and optimizer are equal on all ranks after every step."""

    loss_factor = 1.0

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        self.module = model
        self.everyone: Peers = Collective(context.recorder)
        self.peers: Peers = Collective(context.recorder, context.group(DATA), context.first(DATA))
        self._model = model
        self._optimizer = optimizer
        self._context = context
        self._recorder = context.recorder
        self._buffers = trained_buffers(model)

    @staticmethod
    def divide(model: nn.Module, context: ProcessContext) -> None:
        """Every rank holds the whole network."""

    def restored(self) -> None:
        """Every rank has read the same checkpoint."""

    def warm_up(self, forward_backward: Callable[[], None]) -> None:
        """No state settles later."""

    def before_forward(self) -> None:
        """Copy the buffers of data index 0: batch-norm statistics, which gradients do not carry."""
        if self._buffers:
            with self._recorder.span("communicate"):
                self._copy_from_first(self._buffers)

    def forward_backward(self, batch: Batch, objective: Objective) -> torch.Tensor:
        """Sum of the losses of a batch or micro-batch; adds its gradients."""
        with self._recorder.span("forward"):
            scores = self.module(batch.inputs)
            loss_sum = objective.loss_sum(scores, batch)
            objective.count(scores.detach(), loss_sum.detach(), batch)
        with self._recorder.span("backward"):
            (loss_sum * (self.loss_factor / batch.samples_global)).backward()
        return loss_sum.detach()

    def exchange(self) -> None:
        """Make gradients equal on all ranks."""
        raise NotImplementedError

    def clip(self, norm: float) -> None:
        """Limit the gradient norm: of the whole batch, or of this rank under local-sgd."""
        nn.utils.clip_grad_norm_(self._model.parameters(), norm)

    def update(self) -> None:
        self._optimizer.step()

    def clear(self) -> None:
        self._model.zero_grad(set_to_none=True)

    def settle(self) -> None:
        """Parameters are always equal; buffers of the last step are copied from rank 0."""
        self.before_forward()

    def whole(self, tensors: Tensors) -> Tensors:
        """Every rank holds the whole network."""
        return tensors

    def shard(self, tensors: Tensors) -> Tensors:
        """Every rank holds the whole network."""
        return tensors

    def leave(self) -> None:
        """No server waits for this rank."""

    def _copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy the values of the rank with data index 0, in place."""
        broadcast(tensors, self._context.group(DATA), self._context.first(DATA))


class BufferedGradients(Synchronous):
    """Base of strategies whose gradients are views of one buffer per data type: `self._gradients`."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._copy_from_first((*model.parameters(), *model.buffers()))
        self._gradients = gradient_buffers(model)

    def clear(self) -> None:
        for buffer in self._gradients:
            buffer.zero_()


class SingleRank(Synchronous):
    """Strategy of a single rank: no exchange."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self.peers: Peers = NoPeers()
        self.everyone: Peers = self.peers

    def before_forward(self) -> None:
        pass

    def exchange(self) -> None:
        pass


class Collective:
    """Peers that use collectives of a process group; by default that of all processes."""

    def __init__(self, recorder: Recorder, group: dist.ProcessGroup | None = None, first: int = 0) -> None:
        self._recorder = recorder
        self._group = group
        self._first = first

    def sum(self, tensor: torch.Tensor) -> None:
        with self._recorder.span("communicate"):
            dist.all_reduce(tensor, group=self._group)

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(self._group))]
        with self._recorder.span("communicate"):
            dist.all_gather(parts, tensor, group=self._group)
        return torch.stack(parts)

    def broadcast(self, tensor: torch.Tensor) -> None:
        dist.broadcast(tensor, src=self._first, group=self._group)

    def barrier(self) -> None:
        dist.barrier(group=self._group)


class NoPeers:
    """The peers of a single rank."""

    def sum(self, tensor: torch.Tensor) -> None:
        pass

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.unsqueeze(0)

    def broadcast(self, tensor: torch.Tensor) -> None:
        pass

    def barrier(self) -> None:
        pass


@torch.no_grad()
def broadcast(tensors: Iterable[torch.Tensor], group: dist.ProcessGroup | None = None, source: int = 0) -> None:
    """Copy the values of one rank of a group, in place; by default of rank 0."""
    for tensor in tensors:
        if tensor.numel():
            # Collectives need contiguous tensors; channels-last ones are not.
            ordered = tensor.detach().contiguous()
            dist.broadcast(ordered, src=source, group=group)
            if ordered.data_ptr() != tensor.data_ptr():
                tensor.copy_(ordered)


def trained_buffers(model: nn.Module) -> list[torch.Tensor]:
    """Buffers that training changes.

    The buffers of a frozen base do not: broadcasting a hundred of them would cost more than the gradients of the head.
    """
    training = model.training
    model.train()
    still = {
        id(buffer)
        for module in model.modules()
        if not module.training and (isinstance(module, _BatchNorm) or getattr(module, "one_mode", False))
        for buffer in module.buffers(recurse=False)
    }
    model.train(training)
    return [buffer for buffer in model.buffers() if id(buffer) not in still]


def gradient_buffers(model: nn.Module) -> list[torch.Tensor]:
    """One flat buffer per data type (usually one in all); every gradient is a view of it."""
    by_type: dict[torch.dtype, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            by_type.setdefault(parameter.dtype, []).append(parameter)
    buffers = []
    for dtype, parameters in by_type.items():
        total = sum(p.numel() for p in parameters)
        buffer = torch.zeros(total, dtype=dtype, device=parameters[0].device)
        start = 0
        for p in parameters:
            # The strides of the parameter: autograd then accumulates in place, also for channels-last.
            p.grad = buffer.as_strided(p.shape, p.stride(), start)
            start += p.numel()
        buffers.append(buffer)
    return buffers
