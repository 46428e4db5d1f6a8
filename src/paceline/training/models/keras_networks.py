"""Keras 3's applications with a new head, computed by PyTorch: `keras:EfficientNetB0`.

With its torch backend a Keras network has torch parameters and trains like any other. Differences:

    images        N×H×W×C: inputs are permuted
    statistics    of batch-norm are non-trainable parameters in Keras; here they are buffers, which ranks synchronise
    training mode is an argument of the call, for the whole network
    precision     float32 only
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from paceline.catalog import nearest
from paceline.errors import ModelError
from paceline.identity import set_variables
from paceline.training.models.preprocessing import Preparation, selected_preparation
from paceline.training.models.pretrained import (
    Pretrained,
    TransferOptions,
    load_weights,
    takes_transfer_options,
    transfer_model,
)
from paceline.training.models.transfer import Transfer

# Image sizes of the published weights, if not 224.
_SIZES = {
    **dict.fromkeys(("InceptionV3", "InceptionResNetV2", "Xception"), 299),
    "NASNetLarge": 331,
    **dict(zip((f"EfficientNetB{n}" for n in range(1, 8)), (240, 260, 300, 380, 456, 528, 600), strict=True)),
    **dict(zip((f"EfficientNetV2B{n}" for n in range(1, 4)), (240, 260, 300), strict=True)),
    **dict(zip((f"EfficientNetV2{n}" for n in "SML"), (384, 480, 480), strict=True)),
}
_USUAL_SIZE = 224
# Extension of weight files of Keras.
_KERAS_FILE = ".h5"


class KerasBase(nn.Module):
    """A Keras network as a base: N×3×H×W in, N×features out."""

    one_mode = True
    """Training or evaluation mode applies to the whole network, batch-norm included."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        # In a list: nn.Module would otherwise register Keras's parameters a second time.
        self._network = [network]
        for variable in network.variables:
            if variable.trainable:
                self.register_parameter(variable.path, variable.value)
            else:
                self.register_buffer(variable.path, variable.value.detach())

    @property
    def network(self) -> Any:
        """The Keras model."""
        return self._network[0]

    @property
    def num_fixed(self) -> int:
        """Values that Keras counts as non-trainable, without the state of its random generators."""
        return self.network.count_params() - sum(p.numel() for p in self.parameters())

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if inputs.dtype != torch.float32:
            raise ModelError(
                f"The input of a Keras network is {str(inputs.dtype).removeprefix('torch.')}.",
                right="It computes in float32 only.",
                next="Use `--set train.precision=float32`.",
            )
        return self.network(inputs.permute(0, 2, 3, 1), training=self.training)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Also set `trainable` of Keras, which determines its counts."""
        self.network.trainable = requires_grad
        return super().requires_grad_(requires_grad)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move to a device or memory format; Keras's variables still share memory with the buffers here."""
        super()._apply(fn, recurse)
        for variable in self.network.variables:
            if variable.path in self._buffers:
                variable.value.data = self._buffers[variable.path]
        return self


@takes_transfer_options
def keras_network(network: str, shape: tuple[int, int, int], classes: int, options: TransferOptions) -> Transfer:
    """An application of Keras, pooled to its features, with a head for `classes`."""
    build, module = _application(network)
    own = _preparation(module.preprocess_input, _SIZES.get(network, _USUAL_SIZE))
    size = selected_preparation(own, kind=options.preprocessing, image_size=options.image_size).size
    input_shape = (*shape[:2], 3) if size is None else (size, size, 3)
    base = KerasBase(_built(network, build, input_shape, "imagenet" if options.weights == "imagenet" else None))
    pretrained = Pretrained(
        name=f"keras:{network}",
        base=base,
        features=base.network.output_shape[-1],
        own=own,
    )
    model = transfer_model(pretrained, shape, classes, options)
    model.facts["weights"] = _weights_text(pretrained, base, options.weights)
    return model


@functools.cache
def _keras() -> ModuleType:
    """Keras on its torch backend."""
    if importlib.util.find_spec("keras") is None:
        raise ModelError(
            "Keras's networks need Keras 3, which is not installed.",
            next="Install it with `pip install 'keras>=3.15'`, or use `--set model.name=efficientnet-lite0`.",
        )
    if "keras" not in sys.modules:
        set_variables({"KERAS_BACKEND": "torch"})  # read once, when it is imported
    import keras

    if keras.backend.backend() != "torch":
        raise ModelError(
            f"Keras computes with {keras.backend.backend()} in this process.", right="Here it has to be PyTorch."
        )
    return keras


def _application(network: str) -> tuple[Any, ModuleType]:
    """Function that builds a network, and the module with its preprocessing."""
    applications = _keras().applications
    found = {name: value for name, value in vars(applications).items() if inspect.isfunction(value)}
    if network not in found:
        near = nearest(network, list(found)) or next((name for name in found if name.lower() == network.lower()), None)
        raise ModelError(
            f"Keras has no application called {network!r}." + (f" Did you mean {near!r}?" if near else ""),
            right=f"It has {', '.join(sorted(found))}.",
        )
    # keras.src.applications.resnet builds it, keras.applications.resnet prepares for it.
    return found[network], getattr(applications, found[network].__module__.rpartition(".")[2])


def _built(name: str, build: Any, input_shape: tuple[int, ...], weights: str | None) -> Any:
    keras = _keras()
    # Its initialisers use Python's generator, which is not seeded otherwise.
    keras.utils.set_random_seed(torch.initial_seed() % 2**32)
    try:
        return build(include_top=False, weights=weights, input_shape=input_shape, pooling="avg")
    except Exception as error:
        if weights and "URL fetch failure" in str(error):
            raise ModelError(
                f"The ImageNet weights of {name} could not be downloaded: {str(error).partition(': ')[0]}.",
                right="Keras looks for them in .keras/models of your home folder, and downloads them otherwise.",
                next="Get that file where there is a network, or use `--set model.name=efficientnet-lite0`.",
            ) from error
        raise


def _weights_text(pretrained: Pretrained, base: KerasBase, weights: str) -> str:
    """Description of the weights, which are loaded if they are a file."""
    if weights == "imagenet":
        return "imagenet: as Keras publishes them"
    if not weights.endswith(_KERAS_FILE):
        return load_weights(pretrained, weights)
    try:
        base.network.load_weights(weights)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"{Path(weights).name} does not fit {pretrained.name}: {' '.join(str(error).split())[:300]}",
            right="It has to hold the weights of this network without its top.",
        ) from error
    return f"own: {Path(weights).name}"


def _preparation(preprocess: Any, size: int) -> Preparation:
    """Preparation equal to a `preprocess_input`, determined by calling it: all of them are linear in each channel."""
    images = np.zeros((2, 1, 1, 3), np.float32)
    images[1] = 255.0
    low, high = preprocess(images.copy())[:, 0, 0].astype(float)
    red = np.zeros((1, 1, 1, 3), np.float32)
    red[..., 0] = 255.0
    reverse = bool(abs(preprocess(red.copy())[0, 0, 0, 0] - low[0]) < 1e-6)
    std = [round(float(255.0 / (b - a)), 4) for a, b in zip(low, high, strict=True)]
    mean = [round(float(-a * s), 4) for a, s in zip(low, std, strict=True)]
    if reverse:  # ours are in the order of the input channels
        mean, std = mean[::-1], std[::-1]
    return Preparation(size=size, mean=tuple(mean), std=tuple(std), reverse=reverse)
