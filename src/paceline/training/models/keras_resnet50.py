"""ResNet50 as Keras first published it, in torchvision's modules.

    it has                                    here
    the stride in a block's first 1×1         the same: torchvision has it in the 3×3
    batch-norm with epsilon 0.001             the same: torchvision has 0.00001
    a bias b in every convolution             taken off the running mean: (x + b) - mean = x - (mean - b)
    blue, green, red minus ImageNet's mean    the same, as its preprocessing

Its weights are those of He et al. (2015), "Deep residual learning". Kernels are height, width, inputs, outputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import nn

from paceline.data.weights_store import KERAS_RESNET50
from paceline.training.models.preprocessing import Preparation
from paceline.training.models.pretrained import Pretrained, TransferOptions, pretrained_model, takes_transfer_options
from paceline.training.models.torchvision_import import torchvision_models
from paceline.training.models.transfer import Transfer

NAME = "resnet50-keras"
SHA256 = "80d290f08b11deae804132c574f945024ce29e42050371dff75b14aa303ffbb6"
"""Of the tensors as `renamed` gives them."""
_FEATURES = 2048
_MEAN = (123.68, 116.779, 103.939)
_CONVOLUTION = re.compile(r"res(\d)([a-f])_branch(1|2a|2b|2c)")
_PARTS = {
    "1": ("downsample.0", "downsample.1"),
    "2a": ("conv1", "bn1"),
    "2b": ("conv2", "bn2"),
    "2c": ("conv3", "bn3"),
}


@takes_transfer_options
def keras_resnet50(shape: tuple[int, int, int], classes: int, options: TransferOptions) -> Transfer:
    """Keras's first ResNet50 with a head for `classes`; 23,508,032 parameters without the head."""
    network = Pretrained(
        name=NAME,
        base=_network(),
        features=_FEATURES,
        own=Preparation(size=224, mean=_MEAN, reverse=True),
        published=KERAS_RESNET50,
        spare=("fc.",),
        rename=renamed,
        sha256=SHA256,
    )
    return pretrained_model(network, shape, classes, options)


def _network() -> nn.Module:
    network = torchvision_models().resnet50(weights=None)
    network.fc = nn.Identity()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-3
    for layer in (network.layer2, network.layer3, network.layer4):
        layer[0].conv1.stride, layer[0].conv2.stride = (2, 2), (1, 1)
    return network


def renamed(published: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Keras's tensors under the names and in the layout of torchvision; other tensors are unchanged."""
    if "conv1/kernel" not in published:
        return dict(published)
    found = {"fc.weight": published["fc1000/kernel"].T, "fc.bias": published["fc1000/bias"]}
    for name, kernel in published.items():
        layer, _, kind = name.partition("/")
        if kind == "kernel" and layer != "fc1000":
            convolution, norm = _places(layer)
            found[f"{convolution}.weight"] = kernel.permute(3, 2, 0, 1)
            statistics = "bn_conv1" if layer == "conv1" else layer.replace("res", "bn", 1)
            found[f"{norm}.weight"] = published[f"{statistics}/gamma"]
            found[f"{norm}.bias"] = published[f"{statistics}/beta"]
            found[f"{norm}.running_mean"] = published[f"{statistics}/moving_mean"] - published[f"{layer}/bias"]
            found[f"{norm}.running_var"] = published[f"{statistics}/moving_variance"]
    return {name: tensor.contiguous() for name, tensor in found.items()}


def _places(layer: str) -> tuple[str, str]:
    """Names of a convolution of Keras and its batch-norm in torchvision: res3a_branch2b is layer2.0.conv2."""
    if layer == "conv1":
        return "conv1", "bn1"
    match = _CONVOLUTION.fullmatch(layer)
    if match is None:
        return layer, layer
    stage, block, branch = match.groups()
    before = f"layer{int(stage) - 1}.{'abcdef'.index(block)}."
    convolution, norm = _PARTS[branch]
    return before + convolution, before + norm
