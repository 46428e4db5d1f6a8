"""The contract of a strategy: turn each rank's gradients into the same update everywhere.

The loss of a rank is the *sum* over its samples, divided by the samples of all ranks in this step. So gradients are to
be *summed* along the data axis of the layout, which weights uneven batches correctly, and a rank without samples
contributes zeros.

    divide(model, context)
                      called once, before the optimizer is made: put this rank's shard of layers in their place
    module            what the forward pass is called on
    loss_factor       what the loss is multiplied with (a strategy that averages wants the size of the data axis)
    peers             how ranks along the data axis agree on anything but gradients: sums of losses and counts
    everyone          how all ranks agree: values of rank 0, a barrier
    restored()        called when model and optimizer were read from a checkpoint, on every rank
    warm_up(pass)     called once per process life, before the first step: whatever settles only
                      after a first step (as DDP's buckets do) settles here, so that a resumed run
                      repeats the bits of one that was never interrupted
    before_forward()  called before every forward pass: takes over rank 0's buffers
    forward_backward(batch, objective)
                      loss and gradients of a batch, or of a part of one: a pipeline has its own
    exchange()        called after backward: sends gradients on their way and brings what comes of them
    clip(norm)        called before the update where gradients are clipped: norm of the whole network's gradient
    update()          the optimizer's step, wherever it is taken
    clear()           called after it: forget the gradients
    settle()          called on all ranks before anyone looks at the model (evaluation, checkpoint, the
                      end): then parameters are equal on all replicas, and rank 0's optimizer holds the run's state
    whole(tensors)    this rank's tensors by name as those of the whole network: what rank 0 writes to a checkpoint
    shard(tensors)    the inverse, after a checkpoint was read
    leave()           called on all ranks after a good end: whoever serves them may go

Ranks start from rank 0's parameters and buffers, or from those of the first rank with the same shard. A strategy is
made of (model, optimizer, context). The axes of its mesh of ranks besides `data` are in the catalog: ranks along them
have the same samples and the same random numbers.
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
"""Of a checkpoint, by name: model.<name>, optimizer.<parameter>.<slot>, average.<name>."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessContext:
    """Who takes part in a run, as one of its ranks sees it."""

    rank: int
    point: Point
    recorder: Recorder
    groups: Mapping[str, dist.ProcessGroup] = field(default_factory=dict)
    """This rank's process group along each axis; empty where there is one axis."""

    @property
    def layout(self) -> Layout:
        """The mesh of the ranks that train: servers and the coordinator are not among them."""
        return self.point.layout

    @property
    def size(self) -> int:
        """The number of ranks that train."""
        return self.point.ranks

    def group(self, axis: str) -> dist.ProcessGroup | None:
        """The process group of this rank along an axis; None for that of all processes."""
        return self.groups.get(axis)

    def first(self, axis: str) -> int:
        """The rank with index 0 in this rank's group along an axis."""
        return self.layout.group(self.rank, axis)[0]


class Peers(Protocol):
    """How ranks agree on what is not a gradient; every call is made on all of them."""

    def sum(self, tensor: torch.Tensor) -> None:
        """Add up over ranks, in place."""
        ...

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """One row per rank, in order: to be used on the first of them, where all rows are filled."""
        ...

    def broadcast(self, tensor: torch.Tensor) -> None:
        """Take over the values of the first rank, in place."""
        ...

    def barrier(self) -> None:
        """Wait for all."""
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
    """What strategies share that keep model and optimizer equal on all ranks after every step."""

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
        """Nothing settles later than here."""

    def before_forward(self) -> None:
        """Take over the buffers of data index 0: batch-norm statistics, which gradients do not carry."""
        if self._buffers:
            with self._recorder.span("communicate"):
                self._copy_from_first(self._buffers)

    def forward_backward(self, batch: Batch, objective: Objective) -> torch.Tensor:
        """Add the gradients of a batch, or of a part of one, to what is there; the sum of its losses."""
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
        """Shorten the gradient to this norm at most: that of the whole batch, or of the rank's own under local-sgd."""
        nn.utils.clip_grad_norm_(self._model.parameters(), norm)

    def update(self) -> None:
        self._optimizer.step()

    def clear(self) -> None:
        self._model.zero_grad(set_to_none=True)

    def settle(self) -> None:
        """Parameters are equal at any time; buffers of the last step are not until rank 0's are taken over."""
        self.before_forward()

    def whole(self, tensors: Tensors) -> Tensors:
        """Every rank holds the whole network."""
        return tensors

    def shard(self, tensors: Tensors) -> Tensors:
        """Every rank holds the whole network."""
        return tensors

    def leave(self) -> None:
        """Nobody waits for a word."""

    def _copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Take over the values of the rank with data index 0, in place."""
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
    """One rank: nothing to exchange, under whatever strategy the study names."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self.peers: Peers = NoPeers()
        self.everyone: Peers = self.peers

    def before_forward(self) -> None:
        pass

    def exchange(self) -> None:
        pass


class Collective:
    """Ranks that agree through collectives of a process group: that of all processes where none is named."""

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
    """Take over the values of one rank of a group, in place; of rank 0 where nothing else is said."""
    for tensor in tensors:
        if tensor.numel():
            # A channels-last tensor is not contiguous in the order that collectives want.
            ordered = tensor.detach().contiguous()
            dist.broadcast(ordered, src=source, group=group)
            if ordered.data_ptr() != tensor.data_ptr():
                tensor.copy_(ordered)


def trained_buffers(model: nn.Module) -> list[torch.Tensor]:
    """The buffers that training changes: a frozen base has a hundred that stay, and a broadcast each would cost more
    than the head's gradients."""
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
    """One buffer per data type, nearly always one in all, with every gradient a view of it."""
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
            # The parameter's own strides, so that autograd accumulates in place (channels-last too).
            p.grad = buffer.as_strided(p.shape, p.stride(), start)
            start += p.numel()
        buffers.append(buffer)
    return buffers
