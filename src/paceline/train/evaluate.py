"""Loss and accuracy on a set, sharded over ranks and exact for any size of it.

Each rank takes a contiguous share; sums and counts are added up over ranks, so no sample is
counted twice and none is left out.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from paceline.probe.recorder import Recorder
from paceline.train.batches import Samples, share
from paceline.train.optim.average import Average
from paceline.train.parallel.base import Peers

# Large enough to keep a core busy, small enough for its cache.
_BATCH = 256
# A network that makes 224×224 pixels of every image takes seconds for so many, and a rank has to be heard of meanwhile.
_BATCH_OF_PIXELS = 32


def evaluate(
    model: nn.Module,
    samples: Samples,
    indices: np.ndarray,
    recorder: Recorder,
    peers: Peers,
    *,
    rank: int,
    size: int,
    average: Average | None = None,
) -> tuple[float, float]:
    """Mean loss and accuracy over `indices`, the same on every rank; of the averaged weights where there are any."""
    start, end = share(len(indices), rank, size)
    chosen = torch.from_numpy(indices[start:end])
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    sums = torch.zeros(2, dtype=torch.float64, device=device)
    batch = _BATCH_OF_PIXELS if getattr(model, "wants_pixels", False) else _BATCH
    with recorder.span("evaluate"), average.in_place() if average else nullcontext():
        with torch.inference_mode():
            # An empty share splits into one empty part, which many a model cannot take.
            for part in chosen.split(batch) if len(chosen) else ():
                inputs, labels = samples.gather(part)
                scores = model(inputs)
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                sums += torch.stack((loss.double(), (scores.argmax(1) == labels).sum().double()))
                recorder.beat()
        peers.sum(sums)
    model.train(training)
    loss_sum, correct = sums.tolist()
    return loss_sum / len(indices), correct / len(indices)
