"""Peer: a DDP loop with every trick of ours in it and nothing else: no probe, no records, no metrics.

The same tricks: mapped uint8 batches, channels_last, fused Adam, pooling before ReLU, our own dropout, gradients as
views of DDP's buckets, and one large bucket for a small model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from paceline.training.models.layers import Dropout, Flatten

SAMPLES = 12_000


class BareDdp:
    """Trains step by step, for as long as it is asked to."""

    def __init__(self, data: Path, rank: int, size: int, batch_global: int) -> None:
        self._images = torch.from_numpy(np.load(data / "train-images.npy", mmap_mode="c"))
        self._labels = torch.from_numpy(np.load(data / "train-labels.npy", mmap_mode="c"))
        self._rank, self._per_rank, self._batch = rank, batch_global // size, batch_global
        self._model = nn.Sequential(
            nn.Conv2d(1, 32, 3),
            nn.MaxPool2d(2),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 128, 3),
            nn.MaxPool2d(2),
            nn.ReLU(inplace=True),
            nn.Conv2d(128, 256, 3),
            nn.MaxPool2d(2),
            nn.ReLU(inplace=True),
            Flatten(),
            Dropout(0.25),
            nn.Linear(256, 1000),
            nn.ReLU(inplace=True),
            nn.Linear(1000, 100),
            nn.ReLU(inplace=True),
            nn.Linear(100, 10),
        ).to(memory_format=torch.channels_last)
        self._ddp = DistributedDataParallel(self._model, gradient_as_bucket_view=True, bucket_cap_mb=25)
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=0.001, fused=True)
        self._order = torch.from_numpy(np.random.default_rng(0).permutation(SAMPLES))
        self._at = 0

    def steps(self, count: int) -> None:
        for _ in range(count):
            if self._at + self._batch > SAMPLES:
                self._at = 0
            first = self._at + self._rank * self._per_rank
            mine = self._order[first : first + self._per_rank]
            self._at += self._batch
            images = self._images.index_select(0, mine).float().mul_(1 / 255 / 0.3081).add_(-0.1307 / 0.3081)
            labels = self._labels.index_select(0, mine)
            functional.cross_entropy(self._ddp(images.permute(0, 3, 1, 2)), labels).backward()
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
