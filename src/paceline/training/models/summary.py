"""The layers of a model, their output shapes and parameters, as Keras users know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from paceline import catalog
from paceline.training.models.build_model import build_model
from paceline.training.models.keras_count import KerasCount, keras_count
from paceline.training.models.pretrained import untrained


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One module without children."""

    name: str
    kind: str
    output_shape: tuple[int, ...]
    """Without the batch; in PyTorch's order, channels first."""
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """A model at a glance."""

    name: str
    layers: tuple[Layer, ...]
    parameters: int
    trainable: int
    keras: KerasCount
    """The same in Keras's way of counting."""
    facts: dict[str, str] = field(default_factory=dict)
    """Of a pretrained network: what it is made of, and what is done to images first."""


def summary(
    name: str, shape: tuple[int, int, int], classes: int, options: Mapping[str, Any], *, model_file: Path | None = None
) -> ModelSummary:
    """The layers of a model in the order in which an image passes them; no weights are read for it."""
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
