"""EfficientNet-Lite0: EfficientNet-B0 without squeeze-and-excitation, with ReLU6 in place of Swish.

    stage        kernel  stride  expansion  channels  repeats        (Tan & Le, 2019: EfficientNet, table 1)
    stem            3       2        -          32        1
    1               3       1        1          16        1
    2               3       2        6          24        2
    3               5       2        6          40        2
    4               3       2        6          80        3
    5               5       1        6         112        3
    6               5       2        6         192        4
    7               3       1        6         320        1
    top             1       1        -        1280        1          then the mean over height and width

4,652,008 parameters with a last layer of 1,000 classes, 3,371,008 without. Borders are padded as TensorFlow's SAME
does it, which puts the odd pixel of a stride at the right and at the bottom: with PyTorch's symmetric padding the
published weights would see every image shifted by a pixel at each of five strides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

FEATURES = 1280
SIZE = 224
"""Height and width of the images that the weights were trained on."""

# kernel, stride, expansion, channels, repeats
_STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)

# Names of the published file -> ours, in the order in which they are tried.
_NAMES = (
    (r"^_conv_stem\.", "stem.0."),
    (r"^_bn0\.", "stem.1."),
    (r"^_conv_head\.", "top.0."),
    (r"^_bn1\.", "top.1."),
    (r"^_blocks\.(\d+)\._expand_conv\.", r"blocks.\1.expand.0."),
    (r"^_blocks\.(\d+)\._bn0\.", r"blocks.\1.expand.1."),
    (r"^_blocks\.(\d+)\._depthwise_conv\.", r"blocks.\1.depthwise.0."),
    (r"^_blocks\.(\d+)\._bn1\.", r"blocks.\1.depthwise.1."),
    (r"^_blocks\.(\d+)\._project_conv\.", r"blocks.\1.project.0."),
    (r"^_blocks\.(\d+)\._bn2\.", r"blocks.\1.project.1."),
    (r"^_fc\.", "classifier."),
)


class SameConv2d(nn.Conv2d):
    """A convolution without bias whose output has ceil(size / stride) rows and columns."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1) -> None:
        # At stride 1 the padding is the same on both sides, and costs nothing inside the convolution.
        inside = kernel // 2 if stride == 1 else 0
        super().__init__(inputs, outputs, kernel, stride=stride, padding=inside, groups=groups, bias=False)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        if stride > 1:
            rows, columns = (max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in input.shape[2:])
            input = functional.pad(input, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return super().forward(input)


class _Block(nn.Module):
    """Expand the channels, convolve each by itself, and bring them back."""

    def __init__(self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        self.expand = _normalised(SameConv2d(inputs, width, 1)) if expansion > 1 else nn.Identity()
        self.depthwise = _normalised(SameConv2d(width, width, kernel, stride=stride, groups=width))
        self.project = _normalised(SameConv2d(width, outputs, 1), activated=False)
        self._adds = stride == 1 and inputs == outputs

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs = self.project(self.depthwise(self.expand(inputs)))
        return outputs + inputs if self._adds else outputs


class EfficientNetLite0(nn.Module):
    """The network up to the features, N×1280; with `classes` a last layer is added."""

    def __init__(self, classes: int = 0) -> None:
        super().__init__()
        self.stem = _normalised(SameConv2d(3, 32, 3, stride=2))
        blocks, width = [], 32
        for kernel, stride, expansion, channels, repeats in _STAGES:
            for number in range(repeats):
                first = stride if number == 0 else 1
                blocks.append(_Block(width, channels, kernel=kernel, stride=first, expansion=expansion))
                width = channels
        self.blocks = nn.Sequential(*blocks)
        self.top = _normalised(SameConv2d(width, FEATURES, 1))
        self.classifier = nn.Linear(FEATURES, classes) if classes else nn.Identity()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.top(self.blocks(self.stem(inputs))).mean((2, 3)))


def renamed(published: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors of the published file under the names that this network has; others keep theirs."""
    return {_our_name(name): tensor for name, tensor in published.items()}


def _our_name(name: str) -> str:
    for pattern, ours in _NAMES:
        if re.match(pattern, name):
            return re.sub(pattern, ours, name)
    return name


def _normalised(convolution: nn.Conv2d, *, activated: bool = True) -> nn.Sequential:
    """A convolution with batch-norm; TensorFlow's momentum of 0.99 is 0.01 in PyTorch's way of counting."""
    norm = nn.BatchNorm2d(convolution.out_channels, eps=1e-3, momentum=0.01)
    return nn.Sequential(convolution, norm, *([nn.ReLU6(inplace=True)] if activated else []))
