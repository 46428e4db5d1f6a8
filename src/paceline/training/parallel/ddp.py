"""`ddp`: PyTorch's DistributedDataParallel; buckets are all-reduced while backward still runs.

DDP rebuilds its buckets after the first step of each process, in the order in which gradients
arrived. Other buckets mean another order of summation, so from three ranks on a resumed run
would differ in the last bits from one that was never interrupted. One throw-away forward and
backward pass in every process life settles the buckets before the first real step.
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
    """DDP that does not import torch.compile, only to hear that nothing is compiled: 1.5 s of every rank's start."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if "torch._dynamo" in sys.modules:
            super().__init__(*arguments, **options)
            return
        usual = SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
        setattr(torch, "_dynamo", SimpleNamespace(utils=usual))  # noqa: B010  its stub has no such attribute
        try:
            super().__init__(*arguments, **options)
        finally:
            del torch._dynamo  # whoever asks for it from now on gets the real one

    # Without the wrapper that is there for torch.compile.
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
            # PyTorch's own, but given: then it holds for the first bucket too, which is 1 MB otherwise. On a CPU a
            # message takes the core that backward computes on, so that a small one more costs more than it hides.
            bucket_cap_mb=25,
            # Buffers are taken over by `before_forward`, where the time it takes is seen.
            forward_sync_buffers=False,
        )
        # DDP averages over the ranks of its group; the loop's losses are to be summed.
        self.loss_factor = float(context.point.data_size)

    def warm_up(self, forward_backward: Callable[[], None]) -> None:
        buffers = [buffer.clone() for buffer in self._model.buffers()]
        forward_backward()
        with torch.no_grad():
            for buffer, before in zip(self._model.buffers(), buffers, strict=True):
                buffer.copy_(before)
        self.clear()

    def exchange(self) -> None:
        """Nothing left to do: backward ended when the last bucket had arrived."""
