"""The contract of a strategy: turn each rank's gradients into the same update everywhere.

The loop gives every strategy a loss that is the *sum* over this rank's samples, divided by the
samples of all ranks in this step. So gradients are to be *summed* over ranks, which weights
uneven batches rightly, and a rank without samples contributes zeros.

    loss_factor       what the loop multiplies that loss with (a strategy that averages wants `size`)
    module            what the forward pass is called on
    warm_up(pass)     called once per process life, before the first step: whatever settles only
                      after a first step (as DDP's buckets do) settles here, so that a resumed run
                      repeats the bits of one that was never interrupted
    before_forward()  called before every forward pass: takes over rank 0's buffers
    exchange()        called after backward: when it returns, gradients are equal on all ranks
    clear()           called after the optimizer's step: forget the gradients

Ranks start from rank 0's parameters and buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
import torch.distributed as dist
from torch import nn

from paceline.probe.recorder import Recorder


class Strategy(Protocol):
    """How the work is divided over ranks."""

    module: nn.Module
    loss_factor: float

    def warm_up(self, forward_backward: Callable[[], None]) -> None: ...

    def before_forward(self) -> None: ...

    def exchange(self) -> None: ...

    def clear(self) -> None: ...


class Alone:
    """One rank: nothing to exchange, under whatever strategy the study names."""

    loss_factor = 1.0

    def __init__(self, model: nn.Module, recorder: Recorder, size: int) -> None:
        self.module = model

    def warm_up(self, forward_backward: Callable[[], None]) -> None:
        pass

    def before_forward(self) -> None:
        pass

    def exchange(self) -> None:
        pass

    def clear(self) -> None:
        self.module.zero_grad(set_to_none=True)


class BufferSync:
    """Takes over rank 0's buffers (batch-norm statistics) before a forward pass."""

    def __init__(self, model: nn.Module, recorder: Recorder) -> None:
        self._buffers = list(model.buffers())
        self._recorder = recorder

    def __call__(self) -> None:
        if not self._buffers:
            return
        with self._recorder.span("communicate"):
            broadcast(self._buffers)


@torch.no_grad()
def broadcast(tensors: Iterable[torch.Tensor]) -> None:
    """Take over rank 0's values, in place."""
    for tensor in tensors:
        if tensor.numel():
            # A channels-last tensor is not contiguous in the order that collectives want.
            ordered = tensor.detach().contiguous()
            dist.broadcast(ordered, src=0)
            if ordered.data_ptr() != tensor.data_ptr():
                tensor.copy_(ordered)
