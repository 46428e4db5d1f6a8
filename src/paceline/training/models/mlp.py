"""A dense network with any number of layers and neurons."""

from __future__ import annotations

import math

from torch import nn

from paceline.errors import ModelError
from paceline.training.models.layers import Dropout, Flatten


def mlp(
    shape: tuple[int, int, int], classes: int, *, layers: int = 1, neurons: int = 32, dropout: float = 0.0
) -> nn.Module:
    """`layers` hidden layers of `neurons` each, ReLU between them; 0 layers is softmax regression."""
    if layers < 0 or neurons < 1:
        raise ModelError(
            f"A dense network of {layers} layers of {neurons} neurons cannot be built.",
            right="layers is 0 or more, neurons 1 or more.",
        )
    parts: list[nn.Module] = [Flatten()]
    width = math.prod(shape)
    for _ in range(layers):
        parts += [nn.Linear(width, neurons), nn.ReLU(inplace=True)]
        if dropout:
            parts.append(Dropout(dropout))
        width = neurons
    return nn.Sequential(*parts, nn.Linear(width, classes))
