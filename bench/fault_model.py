"""The network that faults are put into: some ten milliseconds of work for forty images of 8×8, and few gradients.

`ballast_mb` is weight that is never trained and has no gradient: it is only in the checkpoint.
"""

from __future__ import annotations

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, classes: int, ballast_mb: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 64, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(64, 128, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(8),
            nn.Flatten(),
            nn.Linear(128, classes),
        )
        if ballast_mb:
            self.ballast = nn.Parameter(torch.zeros(ballast_mb * 250_000), requires_grad=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


def build(classes: int, ballast_mb: int = 0) -> nn.Module:
    return Network(classes, ballast_mb)
