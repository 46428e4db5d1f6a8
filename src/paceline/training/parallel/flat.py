"""`flat`: all gradients live in one buffer; one all-reduce after backward sums it.

Nothing is hidden behind computation, but there is a single message, its order of summation is
fixed, and no gradient is ever copied: each parameter's `.grad` is a view of the buffer.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from paceline.layout import DATA
from paceline.training.parallel.strategy import ProcessContext, Synchronous, gradient_buffers


class Flat(Synchronous):
    """One buffer, one all-reduce."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._copy_from_first((*model.parameters(), *model.buffers()))
        self._gradients = gradient_buffers(model)

    def exchange(self) -> None:
        with self._recorder.span("communicate"):
            for buffer in self._gradients:
                dist.all_reduce(buffer, group=self._context.group(DATA))

    def clear(self) -> None:
        for buffer in self._gradients:
            buffer.zero_()
