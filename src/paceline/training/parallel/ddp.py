"""`ddp`: PyTorch's DistributedDataParallel; buckets are all-reduced while backward still runs.

DDP rebuilds its buckets after the first step of each process, in the order in which gradients arrived. Different
buckets mean a different order of summation: with three or more ranks, the last bits of a resumed run would differ.
A discarded forward and backward pass in every process fixes the buckets before the first real step.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from paceline.layout import DATA
from paceline.training.parallel.strategy import ProcessContext, Synchronous


class UncompiledDdp(DistributedDataParallel):
    """DDP without the import of torch.compile, which costs 1.5 s at the start of every rank."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if "torch._dynamo" in sys.modules:
            super().__init__(*arguments, **options)
            return
        usual = SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
        setattr(torch, "_dynamo", SimpleNamespace(utils=usual))  # noqa: B010  its stub has no such attribute
        try:
            super().__init__(*arguments, **options)
        finally:
            del torch._dynamo  # later imports get the real module

    # Without the wrapper for torch.compile.
    _inside_ddp_forward = contextlib.contextmanager(inspect.unwrap(DistributedDataParallel._inside_ddp_forward))


class Ddp(Synchronous):
    """Bucketed and overlapped all-reduce."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        device = next(model.parameters()).device
        self.module = self._ddp = UncompiledDdp(
            model,
            device_ids=[device] if device.type == "cuda" else None,
            process_group=context.group(DATA),
            gradient_as_bucket_view=True,
            # PyTorch's default, but explicit: it also applies to the first bucket, which is 1 MB otherwise. On a CPU
            # communication uses the core of backward: an extra small message costs more than it hides.
            bucket_cap_mb=25,
            # `before_forward` copies buffers, in a recorded span.
            forward_sync_buffers=False,
        )
        # DDP averages gradients over its group; they have to be summed.
        self.loss_factor = float(context.point.data_size)

    def warm_up(self, forward_backward: Callable[[], None]) -> None:
        buffers = [buffer.clone() for buffer in self._model.buffers()]
        forward_backward()
        with torch.no_grad():
            for buffer, before in zip(self._model.buffers(), buffers, strict=True):
                buffer.copy_(before)
        self.clear()

    def exchange(self) -> None:
        """Nothing to do: backward ends when the last bucket has arrived."""
