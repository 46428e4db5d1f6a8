"""A step in parts: gradients of several smaller passes add up to those of one, in less memory.

    share of a rank   [ part 1 │ part 2 │ … │ part A ]      A = train.accumulate
    ddp               nothing is sent until the last part's backward pass

A part's loss is the sum over its samples, divided by the samples of the whole step: so the sum over parts is the
gradient of the unsplit step, up to the order of summation. Batch normalisation is another matter: it takes its
statistics over a part.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from paceline.training.batches import Batch, share


def in_parts(batch: Batch, parts: int) -> list[Batch]:
    """A batch as at most so many parts, none of them empty; one that counts no sample stays as it is."""
    count = min(parts, batch.samples)
    if count <= 1:
        return [batch]
    bounds = [share(batch.samples, part, count) for part in range(count)]
    return [
        Batch(batch.inputs[start:end], batch.labels[start:end], end - start, batch.samples_global)
        for start, end in bounds
    ]


def sending_nothing(module: nn.Module, wanted: bool = True) -> AbstractContextManager[None]:
    """Passes in which DDP keeps its gradients to itself; other strategies send nothing during a pass anyway."""
    return module.no_sync() if wanted and isinstance(module, DistributedDataParallel) else nullcontext()
