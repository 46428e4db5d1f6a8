"""The convolutional networks of the published studies, and one for photos.

Pooling before ReLU: max(relu(x)) equals relu(max(x)), and pooling first leaves a quarter of the work for ReLU, forward
and backward.
"""

from __future__ import annotations

from torch import nn

from paceline.errors import ModelError
from paceline.training.models.layers import Dropout, Flatten


def cnn_690k(shape: tuple[int, int, int], classes: int, *, dropout: float = 0.25) -> nn.Module:
    """Three convolutions and three dense layers: 690,590 parameters on 28×28×1, 10 classes."""
    height, width, channels = shape
    features = 256 * _after_pools(height, 3, shape) * _after_pools(width, 3, shape)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 128, 3),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
        nn.Conv2d(128, 256, 3),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
        Flatten(),
        Dropout(dropout),
        nn.Linear(features, 1000),
        nn.ReLU(inplace=True),
        nn.Linear(1000, 100),
        nn.ReLU(inplace=True),
        nn.Linear(100, classes),
    )


def cnn_small(
    shape: tuple[int, int, int], classes: int, *, dropout: float = 0.25, dense_dropout: float = 0.5
) -> nn.Module:
    """Two convolutions and two dense layers: 1,199,882 parameters on 28×28×1, 1,626,442 on 32×32×3."""
    height, width, channels = shape
    if min(height, width) < 6:
        raise _too_small(shape, 6)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, 3),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
        Dropout(dropout),
        Flatten(),
        nn.Linear(64 * ((height - 4) // 2) * ((width - 4) // 2), 128),
        nn.ReLU(inplace=True),
        Dropout(dense_dropout),
        nn.Linear(128, classes),
    )


def cnn_photo(shape: tuple[int, int, int], classes: int, *, dropout: float = 0.25) -> nn.Module:
    """Five convolutions, each followed by pooling, and global average pooling.

    393,893 parameters for 5 classes in colour at any size. Channels double as pixels drop to a quarter, so all
    convolutions but the first have equal cost.
    """
    height, width, channels = shape
    if min(height, width) < 32:
        raise _too_small(shape, 32)
    layers: list[nn.Module] = []
    for filters in (16, 32, 64, 128, 256):
        layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(inplace=True)]
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), Flatten(), Dropout(dropout), nn.Linear(channels, classes))


def _after_pools(side: int, times: int, shape: tuple[int, int, int]) -> int:
    """A side's length after 3×3 convolutions without padding, each followed by 2×2 pooling."""
    for _ in range(times):
        side = (side - 2) // 2
    if side < 1:
        raise _too_small(shape, 22)
    return side


def _too_small(shape: tuple[int, int, int], least: int) -> ModelError:
    return ModelError(
        f"Images of {'×'.join(map(str, shape))} are too small for this network.",
        right=f"It takes images of at least {least}×{least}.",
        next="Choose another model, for example `--set model.name=mlp`.",
    )
