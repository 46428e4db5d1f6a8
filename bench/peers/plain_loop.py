"""Peer: the loop most people would write. Eager, NCHW, a DataLoader over tensors, Adam."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def network() -> nn.Module:
    """The 690,590-parameter network as it was published: ReLU, then pooling."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 128, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(128, 256, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(256, 1000),
        nn.ReLU(),
        nn.Linear(1000, 100),
        nn.ReLU(),
        nn.Linear(100, 10),
    )


class PlainLoop:
    """Trains step by step, for as long as it is asked to."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor, batch: int) -> None:
        self._loader = DataLoader(TensorDataset(images, labels), batch_size=batch, shuffle=True, drop_last=True)
        self._model = network()
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=0.001)
        self._loss = nn.CrossEntropyLoss()
        self._batches: Iterator[list[torch.Tensor]] = iter(self._loader)

    def steps(self, count: int) -> None:
        for _ in range(count):
            try:
                images, labels = next(self._batches)
            except StopIteration:
                self._batches = iter(self._loader)
                images, labels = next(self._batches)
            self._optimizer.zero_grad()
            self._loss(self._model(images), labels).backward()
            self._optimizer.step()
