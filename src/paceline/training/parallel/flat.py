"""`flat`: all gradients are views of one buffer; one all-reduce after backward sums it.

Communication does not overlap with computation, but there is a single message, its order of summation is fixed, and no
gradient is copied.
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
