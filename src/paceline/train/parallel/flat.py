"""`flat`: all gradients live in one buffer; one all-reduce after backward sums it.

Nothing is hidden behind computation, but there is a single message, its order of summation is
fixed, and no gradient is ever copied: each parameter's `.grad` is a view of the buffer.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

from paceline.probe.recorder import Recorder
from paceline.train.parallel.base import BufferSync, broadcast


class Flat:
    """One buffer, one all-reduce."""

    loss_factor = 1.0

    def __init__(self, model: nn.Module, recorder: Recorder, size: int) -> None:
        self.module = model
        self._recorder = recorder
        self.before_forward = BufferSync(model, recorder)
        broadcast((*model.parameters(), *model.buffers()))
        self._buffers = _gradient_buffers(model)

    def warm_up(self, forward_backward: Callable[[], None]) -> None:
        pass

    def exchange(self) -> None:
        with self._recorder.span("communicate"):
            for buffer in self._buffers:
                dist.all_reduce(buffer)

    def clear(self) -> None:
        for buffer in self._buffers:
            buffer.zero_()


def _gradient_buffers(model: nn.Module) -> list[torch.Tensor]:
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
