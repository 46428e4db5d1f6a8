"""Models. A new one is a file in training/models and an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.catalog.entry import Entry

WEIGHTS = ("imagenet", "none")
"""Values of the option `weights` of a pretrained network, in addition to the path of a file."""
TORCH_WEIGHTS_ENDINGS = (".safetensors", ".pth", ".pt", ".bin")
WEIGHTS_ENDINGS = (*TORCH_WEIGHTS_ENDINGS, ".h5")
PREPROCESSING = ("own", "twice", "unit", "none")
PRETRAINED_OPTIONS: dict[str, object] = {
    "weights": "imagenet",
    "freeze": None,
    "head": [],
    "preprocessing": "own",
    "image_size": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry(Entry):
    """Options and capabilities of a model."""

    options: Mapping[str, object] | None = None
    """Its options with their defaults; a default is a list if the value is a list. None for a user's function."""
    pretrained: bool = False
    """Whether it can load published weights, and takes the options of pretrained networks."""
    weights_endings: tuple[str, ...] = TORCH_WEIGHTS_ENDINGS
    """Suffixes of weights files."""
    precisions: tuple[str, ...] = ("float32", "float64", "bfloat16")
    """Supported precisions."""


def _pretrained(at: str, text: str) -> ModelEntry:
    return ModelEntry(at=at, text=text, options=PRETRAINED_OPTIONS, pretrained=True)


MODELS: dict[str, ModelEntry] = {
    "cnn-690k": ModelEntry(
        at="paceline.training.models.cnn:cnn_690k",
        text="three convolutions, three dense layers: 690,590 parameters on 28×28×1",
        options={"dropout": 0.25},
    ),
    "cnn-small": ModelEntry(
        at="paceline.training.models.cnn:cnn_small",
        text="two convolutions, two dense layers: 1,199,882 parameters on 28×28×1, 1,626,442 on 32×32×3",
        options={"dropout": 0.25, "dense_dropout": 0.5},
    ),
    "cnn-photo": ModelEntry(
        at="paceline.training.models.cnn:cnn_photo",
        text="five convolutions for photos of 64 to 256 pixels: 393,893 parameters for five classes",
        options={"dropout": 0.25},
    ),
    "mlp": ModelEntry(
        at="paceline.training.models.mlp:mlp",
        text="any number of dense layers; options: layers, neurons, dropout",
        options={"layers": 1, "neurons": 32, "dropout": 0.0},
    ),
    "efficientnet-lite0": _pretrained(
        "paceline.training.models.pretrained:efficientnet_lite0",
        "pretrained on ImageNet, with a new head: 3,371,008 parameters before it",
    ),
    "efficientnet-b0": _pretrained(
        "paceline.training.models.torchvision_networks:efficientnet_b0",
        "pretrained, of torchvision: 4,007,548 parameters before the head",
    ),
    "resnet50": _pretrained(
        "paceline.training.models.torchvision_networks:resnet50",
        "pretrained, of torchvision: 23,508,032 parameters before the head",
    ),
    "resnet50-keras": _pretrained(
        "paceline.training.models.keras_resnet50:keras_resnet50",
        "pretrained, as Keras first published it: 23,508,032 parameters before the head",
    ),
    "mobilenet-v3-small": _pretrained(
        "paceline.training.models.torchvision_networks:mobilenet_v3_small",
        "pretrained, of torchvision: 1,517,856 parameters before the head",
    ),
}
FAMILIES: dict[str, ModelEntry] = {
    "torchvision": _pretrained(
        "paceline.training.models.torchvision_networks:torchvision_network",
        "any classifier of torchvision, pretrained, such as torchvision:resnet101",
    ),
    "keras": ModelEntry(
        at="paceline.training.models.keras_networks:keras_network",
        text="any application of Keras 3, on PyTorch, such as keras:EfficientNetB0",
        options=PRETRAINED_OPTIONS,
        pretrained=True,
        weights_endings=WEIGHTS_ENDINGS,
        precisions=("float32",),
    ),
}
"""Prefixes of names such as torchvision:resnet101; the rest is an argument of the object."""
