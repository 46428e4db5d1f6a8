"""Loss and accuracy on a set, sharded over ranks and exact for any size of it.

Each index along the data axis takes a contiguous share; sums and counts are added up along that axis, so no sample is
counted twice and none is left out.
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

# Of the images that a network sees at once: enough that its weights are read once for many, few enough for a core's
# cache. ResNet50 tests 1.6 times as many images of 32×32 a second in batches of 256 as of 32, EfficientNet-Lite0 at
# 112×112 1.5 times as many in batches of 32 as of 256.
_PIXELS = 256 * 32 * 32
# A rank has to be heard of meanwhile, and memory is finite.
_MIN_BATCH, _MAX_BATCH = 32, 256


def evaluation_batch(model: nn.Module, samples: Samples) -> int:
    """How many images a model computes soonest where nothing is learned from them."""
    if len(samples.shape) != 3:
        return _MAX_BATCH  # features, which are few
    preparation = getattr(getattr(model, "preprocessing", None), "preparation", None)
    if getattr(model, "wants_pixels", False) and not isinstance(preparation, Preparation):
        return _MIN_BATCH  # it may make any size of them
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
    """Mean loss and accuracy over `indices`, the same on every rank; of the averaged weights where there are any."""
    start, end = share(len(indices), index, size)
    chosen = torch.from_numpy(indices[start:end])
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    sums = torch.zeros(2, dtype=torch.float64, device=device)
    with recorder.span("evaluate"), average.in_place() if average else nullcontext():
        with torch.inference_mode():
            # An empty share splits into one empty part, which many a model cannot take.
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
