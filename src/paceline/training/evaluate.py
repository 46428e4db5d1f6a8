"""Loss and accuracy on a set, sharded over ranks and exact for any number of samples.

Each index along the data axis evaluates a contiguous share. Sums and counts are added along that axis, so every sample
is counted exactly once.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from paceline.probe.recorder import Recorder
from paceline.training.batches import Samples, share
from paceline.training.models.preprocessing import Preparation
from paceline.training.optim.average import Average
from paceline.training.parallel.strategy import Peers

# Pixels per forward pass: many images per read of the weights, but few enough for a core's cache.
# ResNet50 tests 1.6 times as many images of 32×32 a second in batches of 256 as of 32, EfficientNet-Lite0 at
# 112×112 1.5 times as many in batches of 32 as of 256.
_PIXELS = 256 * 32 * 32
# Bounded for heartbeats and memory.
_MIN_BATCH, _MAX_BATCH = 32, 256


def evaluation_batch(model: nn.Module, samples: Samples) -> int:
    """Number of images per forward pass with the highest throughput without gradients."""
    if len(samples.shape) != 3:
        return _MAX_BATCH  # features are small
    preparation = getattr(getattr(model, "preprocessing", None), "preparation", None)
    if getattr(model, "wants_pixels", False) and not isinstance(preparation, Preparation):
        return _MIN_BATCH  # it may resize images to any size
    size = preparation.size if isinstance(preparation, Preparation) else None
    seen = size * size if size else math.prod(samples.shape[:2])
    return min(max(_MIN_BATCH, _PIXELS // seen), _MAX_BATCH)


def evaluate(
    model: nn.Module,
    samples: Samples,
    indices: np.ndarray,
    recorder: Recorder,
    peers: Peers,
    *,
    index: int,
    size: int,
    average: Average | None = None,
) -> tuple[float, float]:
    """Mean loss and accuracy over `indices`, equal on every rank; of the averaged weights, if there are any."""
    start, end = share(len(indices), index, size)
    chosen = torch.from_numpy(indices[start:end])
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    sums = torch.zeros(2, dtype=torch.float64, device=device)
    with recorder.span("evaluate"), average.in_place() if average else nullcontext():
        with torch.inference_mode():
            # An empty share splits into one empty part, which many models do not accept.
            for part in chosen.split(evaluation_batch(model, samples)) if len(chosen) else ():
                inputs, labels = samples.gather(part)
                scores = model(inputs)
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                sums += torch.stack((loss.double(), (scores.argmax(1) == labels).sum().double()))
                recorder.beat()
        peers.sum(sums)
    model.train(training)
    loss_sum, correct = sums.tolist()
    return loss_sum / len(indices), correct / len(indices)
