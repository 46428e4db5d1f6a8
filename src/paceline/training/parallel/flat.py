"""`flat`: all gradients live in one buffer; one all-reduce after backward sums it.

Nothing is hidden behind computation, but there is a single message, its order of summation is
fixed, and no gradient is ever copied: each parameter's `.grad` is a view of the buffer.
"""

from __future__ import annotations

import torch.distributed as dist

from paceline.layout import DATA
from paceline.training.parallel.strategy import BufferedGradients


class Flat(BufferedGradients):
    """One buffer, one all-reduce."""

    def exchange(self) -> None:
        with self._recorder.span("communicate"):
            for buffer in self._gradients:
                dist.all_reduce(buffer, group=self._context.group(DATA))
