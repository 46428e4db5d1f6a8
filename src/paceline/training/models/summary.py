"""Layers of a model with output shapes and parameters, and its parameter count as Keras reports it.

    ours    what an optimizer can change: weights and biases
    Keras   also the running mean and variance of every batch-norm (never trainable), and additional values of its own
            version of the network: a bias in every convolution, the values of a normalisation layer

Published counts can thus be compared without Keras: 4,062,381 with 12,810 trainable is its EfficientNetB0 with a dense
layer of 10; 23,628,902 with 41,190 its ResNet50 with dense layers of 20 and 10, both frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from paceline import catalog
from paceline.training.models.build_model import build_model
from paceline.training.models.keras_networks import KerasBase
from paceline.training.models.pretrained import untrained
from paceline.training.models.transfer import Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasCounterpart:
    """Keras's version of one of torchvision's networks."""

    name: str
    biased: bool = False
    """Whether its convolutions have biases, which are redundant before batch-norm."""
    values: int = 0
    """Of its normalisation layer: three means, three variances and a count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasCount:
    """Parameter counts by the rules of Keras."""

    total: int
    trainable: int
    why: str
    """Values that only Keras counts; empty without any."""


COUNTERPARTS = {
    **{f"torchvision:resnet{n}": KerasCounterpart(name=f"ResNet{n}", biased=True) for n in (50, 101, 152)},
    **{f"torchvision:efficientnet_b{n}": KerasCounterpart(name=f"EfficientNetB{n}", values=7) for n in range(8)},
    **{f"torchvision:densenet{n}": KerasCounterpart(name=f"DenseNet{n}") for n in (121, 169, 201)},
    "torchvision:mobilenet_v2": KerasCounterpart(name="MobileNetV2"),
    "resnet50-keras": KerasCounterpart(name="ResNet50", biased=True),
}
"""Networks of Keras with equal layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A module without children."""

    name: str
    kind: str
    output_shape: tuple[int, ...]
    """Without the batch; in PyTorch's order, channels first."""
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """Layers and parameters of a model."""

    name: str
    layers: tuple[Layer, ...]
    parameters: int
    trainable: int
    keras: KerasCount
    """Counts by the rules of Keras."""
    facts: dict[str, str] = field(default_factory=dict)
    """Of a pretrained network: its parts and its preprocessing."""


def summary(
    name: str, shape: tuple[int, int, int], classes: int, options: Mapping[str, Any], *, model_file: Path | None = None
) -> ModelSummary:
    """Layers of a model in the order of the forward pass; no weights are read."""
    built = untrained(options) if catalog.model(name).pretrained else options
    model = build_model(name, built, shape=shape, classes=classes, model_file=model_file).eval()
    layers: list[Layer] = []

    def note(label: str, module: nn.Module, output: Any) -> None:
        size = tuple(output.shape[1:]) if isinstance(output, torch.Tensor) else ()
        count = sum(p.numel() for p in module.parameters(recurse=False))
        layers.append(Layer(name=label, kind=type(module).__name__, output_shape=size, parameters=count))

    for label, module in model.named_modules():
        if not any(module.children()):
            module.register_forward_hook(lambda m, _, out, label=label: note(label, m, out))
    height, width, channels = shape
    with torch.inference_mode():
        model(torch.zeros(2, channels, height, width))
    return ModelSummary(
        name=name,
        layers=tuple(layers),
        parameters=sum(p.numel() for p in model.parameters()),
        trainable=sum(p.numel() for p in model.parameters() if p.requires_grad),
        keras=keras_count(model),
        facts={key: text for key, text in getattr(model, "facts", {}).items() if key != "weights"},
    )


def keras_count(model: nn.Module) -> KerasCount:
    """Parameter counts of a model by the rules of Keras."""
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    whys: list[str] = []
    statistics = _statistics(model)
    if statistics:
        total += statistics
        whys.append(f"{statistics:,} running statistics")
    sibling = COUNTERPARTS.get(model.facts.get("network", "")) if isinstance(model, Transfer) else None
    if isinstance(model, Transfer) and sibling is not None:
        biases = _missing_biases(model.base) if sibling.biased else 0
        total += biases + sibling.values
        trainable += 0 if model.frozen else biases
        whys += [f"{biases:,} biases of convolutions"] * bool(biases)
        whys += [f"{sibling.values} values of normalisation"] * bool(sibling.values)
        whys.append(f"as Keras's {sibling.name} has them")
    return KerasCount(total=total, trainable=trainable, why=", ".join(whys))


def _statistics(model: nn.Module) -> int:
    """Number of running means and variances, of torch layers and Keras networks."""
    own = sum(2 * m.num_features for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats)
    keras = sum(module.num_fixed for module in model.modules() if isinstance(module, KerasBase))
    return own + keras


def _missing_biases(base: nn.Module) -> int:
    convolutions = (module for module in base.modules() if isinstance(module, nn.Conv2d))
    return sum(c.out_channels for c in convolutions if c.bias is None)
