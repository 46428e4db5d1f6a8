"""A pretrained network from the options of `[model]`, equal for every family of networks.

    weights        imagenet (as published), none (untrained), or a file: .safetensors, .pth, .pt, .bin
    freeze         whether only the head learns; by default true if there are weights
    head           sizes of dense layers before the last one: [] or, as in a published study, [20]
    preprocessing  own, twice, unit or none: see preprocessing.py
    image_size     height and width of the network input; by default that of the network

`facts` of the model records the result.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from paceline.data.weights_store import EFFICIENTNET_LITE0, Published, weights_file
from paceline.errors import ModelError
from paceline.training.models import efficientnet_lite
from paceline.training.models.preprocessing import Preparation, Preprocessing, selected_preparation
from paceline.training.models.transfer import Transfer, dense_head
from paceline.training.models.weights import load_into, read_weights, tensors_sha256

LITE0_SHA256 = "b18da48aa9f129d5743788ee929e72f3f1d84f04b4944b70da4b9edab1d33506"
"""Of the decoded tensors: independent of the file format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrained:
    """A network without its last layer, its preprocessing and its weights."""

    name: str
    base: nn.Module
    """Maps N×3×H×W to N×features, or N×features×1×1."""
    features: int
    own: Preparation
    published: Published | None = None
    """None if another library gets the weights."""
    spare: Collection[str] = ()
    """Prefixes of names in a file of weights that the base does not have: of the last layer."""
    rename: Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]] = dict
    """Maps names of the published file to those of the base."""
    sha256: str = ""
    """Of the published tensors, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOptions:
    """Options of [model] for a pretrained network."""

    weights: str = "imagenet"
    freeze: bool | None = None
    head: Sequence[int] = ()
    preprocessing: str = "own"
    image_size: int | None = None

    @property
    def frozen(self) -> bool:
        """Whether only the head learns."""
        return self.weights != "none" if self.freeze is None else self.freeze


def takes_transfer_options(build: Callable[..., Transfer]) -> Callable[..., Transfer]:
    """The function with the fields of its last parameter, TransferOptions, as separate keyword arguments.

    [model] passes them by name, and unknown options are recognised by the signature.
    """
    *own, _ = inspect.signature(build).parameters.values()
    options = inspect.signature(TransferOptions).parameters

    @functools.wraps(build)
    def builder(*arguments: Any, **named: Any) -> Transfer:
        chosen = {name: named.pop(name) for name in options if name in named}
        return build(*arguments, **named, options=TransferOptions(**chosen))

    cast(Any, builder).__signature__ = inspect.Signature([*own, *options.values()])
    return builder


@takes_transfer_options
def efficientnet_lite0(shape: tuple[int, int, int], classes: int, options: TransferOptions) -> Transfer:
    """EfficientNet-Lite0 with a head for `classes`; 3,371,008 parameters without the head."""
    network = Pretrained(
        name="efficientnet-lite0",
        base=efficientnet_lite.EfficientNetLite0(),
        features=efficientnet_lite.FEATURES,
        own=Preparation(size=efficientnet_lite.SIZE, interpolation="bicubic", mean=(127.0,) * 3, std=(128.0,) * 3),
        published=EFFICIENTNET_LITE0,
        spare=("classifier.",),
        rename=efficientnet_lite.renamed,
        sha256=LITE0_SHA256,
    )
    return pretrained_model(network, shape, classes, options)


def pretrained_model(
    network: Pretrained, shape: tuple[int, int, int], classes: int, options: TransferOptions
) -> Transfer:
    """`transfer_model` with the configured weights."""
    model = transfer_model(network, shape, classes, options)
    model.facts["weights"] = load_weights(network, options.weights)
    return model


def transfer_model(
    network: Pretrained, shape: tuple[int, int, int], classes: int, options: TransferOptions
) -> Transfer:
    """Preprocessing, the given network and a new head; frozen if configured."""
    preparation = selected_preparation(network.own, kind=options.preprocessing, image_size=options.image_size)
    model = Transfer(
        network.base,
        dense_head(network.features, classes, options.head),
        preprocessing=Preprocessing(preparation, shape),
    )
    if options.frozen:
        model.freeze()
    model.facts = {
        "network": network.name,
        "base": "frozen" if model.frozen else "trained",
        "preprocessing": f"{options.preprocessing}: {preparation.text}",
    }
    return model


def load_weights(network: Pretrained, weights: str) -> str:
    """Description of the weights, which are loaded into the base."""
    if weights == "none":
        return "none: as if untrained"
    imagenet = network.published if weights == "imagenet" else None
    path = weights_file(imagenet) if imagenet else Path(weights)
    tensors = network.rename(read_weights(path))
    digest = tensors_sha256(tensors)
    if imagenet and network.sha256 and digest != network.sha256:
        raise ModelError(
            f"The tensors of {path} are not those of {network.name}: their SHA-256 differs.",
            right=f"Expected {network.sha256} over the decoded tensors.",
            next="Remove the file, so that it is fetched again.",
        )
    load_into(network.base, tensors, spare=network.spare, where=path.name)
    return f"{'imagenet' if imagenet else 'own'}: {path.name}, SHA-256 of its tensors {digest[:16]}"


def untrained(options: Mapping[str, object]) -> dict[str, object]:
    """Options that build equal layers without reading weights: for counts and summaries."""
    weights, freeze = str(options.get("weights", "")), cast("bool | None", options.get("freeze"))
    return {**options, "weights": "none", "freeze": TransferOptions(weights=weights, freeze=freeze).frozen}
