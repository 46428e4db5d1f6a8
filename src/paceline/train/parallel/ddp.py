"""`ddp`: PyTorch's DistributedDataParallel; buckets are all-reduced while backward still runs.

DDP rebuilds its buckets after the first step of each process, in the order in which gradients
arrived. Other buckets mean another order of summation, so from three ranks on a resumed run
would differ in the last bits from one that was never interrupted. One throw-away forward and
backward pass in every process life settles the buckets before the first real step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from paceline.train.parallel.base import Crew, Synchronous


class Ddp(Synchronous):
    """Bucketed and overlapped all-reduce."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, crew: Crew) -> None:
        super().__init__(model, optimizer, crew)
        device = next(model.parameters()).device
        self.module = self._ddp = DistributedDataParallel(
            model,
            device_ids=[device] if device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            # PyTorch's own, but given: then it holds for the first bucket too, which is 1 MB otherwise. On a CPU a
            # message takes the core that backward computes on, so that a small one more costs more than it hides.
            bucket_cap_mb=25,
            # Buffers are taken over by `before_forward`, where the time it takes is seen.
            forward_sync_buffers=False,
        )
        # DDP averages over ranks; the loop's losses are to be summed.
        self.loss_factor = float(crew.size)

    def warm_up(self, forward_backward: Callable[[], None]) -> None:
        buffers = [buffer.clone() for buffer in self._model.buffers()]
        forward_backward()
        with torch.no_grad():
            for buffer, before in zip(self._model.buffers(), buffers, strict=True):
                buffer.copy_(before)
        self.clear()

    def exchange(self) -> None:
        """Nothing left to do: backward ended when the last bucket had arrived."""
