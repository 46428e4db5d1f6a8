"""The contract of a strategy: turn each rank's gradients into the same update everywhere.

The loop gives every strategy a loss that is the *sum* over this rank's samples, divided by the
samples of all ranks in this step. So gradients are to be *summed* over ranks, which weights
uneven batches rightly, and a rank without samples contributes zeros.

    loss_factor       what the loop multiplies that loss with (a strategy that averages wants `size`)
    module            what the forward pass is called on
    warm_up(pass)     called once per process life, before the first step: whatever settles only
                      after a first step (as DDP's buckets do) settles here, so that a resumed run
                      repeats the bits of one that was never interrupted
    exchange()        called after backward: when it returns, gradients are equal on all ranks
    clear()           called after the optimizer's step: forget the gradients

Ranks start from rank 0's parameters and buffers, and take over its buffers before each forward.
"""

from __future__ import annotations

from collections.abc import Callable
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
        self._buffers = [b for b in model.buffers() if b.numel()]
        self._recorder = recorder

    def __call__(self) -> None:
        if not self._buffers:
            return
        with self._recorder.span("communicate"):
            for buffer in self._buffers:
                dist.broadcast(buffer, src=0)


def broadcast_state(model: nn.Module) -> None:
    """Start every rank from rank 0's parameters and buffers."""
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.numel():
                # A channels-last weight is not contiguous in the order that collectives want.
                flat = tensor.detach().contiguous()
                dist.broadcast(flat, src=0)
                tensor.copy_(flat)
