"""Loss and accuracy on a set, sharded over ranks and exact for any size of it.

Each rank takes a contiguous share; sums and counts are added up over ranks, so no sample is
counted twice and none is left out.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from paceline.probe.recorder import Recorder
from paceline.train.batches import Samples, share
from paceline.train.parallel.base import Peers

# Large enough to keep a core busy, small enough for its cache.
_BATCH = 256


def evaluate(
    model: nn.Module,
    samples: Samples,
    indices: np.ndarray,
    recorder: Recorder,
    peers: Peers,
    *,
    rank: int,
    size: int,
) -> tuple[float, float]:
    """Mean loss and accuracy over `indices`, the same on every rank."""
    start, end = share(len(indices), rank, size)
    chosen = torch.from_numpy(indices[start:end])
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    sums = torch.zeros(2, dtype=torch.float64, device=device)
    with recorder.span("evaluate"):
        with torch.inference_mode():
            # An empty share splits into one empty part, which many a model cannot take.
            for part in chosen.split(_BATCH) if len(chosen) else ():
                inputs, labels = samples.gather(part)
                scores = model(inputs)
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                sums += torch.stack((loss.double(), (scores.argmax(1) == labels).sum().double()))
                recorder.beat()
        peers.sum(sums)
    model.train(training)
    loss_sum, correct = sums.tolist()
    return loss_sum / len(indices), correct / len(indices)
