"""torchvision's classifiers with a new head: `resnet50`, or any other as `torchvision:NAME`.

    pixels ──▶ weights.transforms() ──▶ the network without its last layer ──▶ head

The last layer of a classifier is its last dense one (`fc`, `classifier.1`, `heads.head`, ...), or its last convolution
if there is no dense one, as in SqueezeNet. All layers before it stay, including dropout.
"""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any

from torch import nn

from paceline.catalog import nearest
from paceline.data.weights_store import Published
from paceline.errors import ModelError
from paceline.training.models.preprocessing import PIXELS, Preparation
from paceline.training.models.pretrained import Pretrained, TransferOptions, pretrained_model, takes_transfer_options
from paceline.training.models.torchvision_import import torchvision_models
from paceline.training.models.transfer import Transfer

# Networks with auxiliary outputs for training, and with internal scaling.
_WITH_SIDE_OUTPUTS = ("googlenet", "inception_v3")


@takes_transfer_options
def torchvision_network(network: str, shape: tuple[int, int, int], classes: int, options: TransferOptions) -> Transfer:
    """A classifier of torchvision with a head for `classes`."""
    models = torchvision_models()
    known = models.list_models(module=models)
    name = network.replace("-", "_")
    if name not in known:
        near = nearest(name, known)
        raise ModelError(
            f"torchvision has no classifier called {network!r}." + (f" Did you mean {near!r}?" if near else ""),
            right=f"It has {len(known)}, such as {', '.join(known[:3])}, efficientnet_b0, resnet50.",
        )
    official = models.get_model_weights(name).DEFAULT
    return pretrained_model(_pretrained(name, models, official), shape, classes, options)


def _pretrained(name: str, models: Any, official: Any) -> Pretrained:
    own = _preparation(official.transforms())
    options: dict[str, Any] = {}
    if name in _WITH_SIDE_OUTPUTS:
        options = {"aux_logits": False, "transform_input": True, "init_weights": True}
    elif name.startswith("vit_"):
        options = {"image_size": own.size}  # its position embedding has a place for every patch of that size
    network = models.get_model(name, weights=None, **options)
    whole = set(network.state_dict())
    features = _remove_last_layer(network)
    file = PurePosixPath(official.url).name
    return Pretrained(
        name=f"torchvision:{name}",
        base=network,
        features=features,
        own=own,
        spare=(*sorted(whole - set(network.state_dict())), "AuxLogits.", "aux1.", "aux2."),
        published=Published(
            title=f"The ImageNet weights of torchvision's {name}",
            file=file,
            # torchvision's files carry the start of their SHA-256 in their names: resnet50-11ad3fa6.pth.
            sha256=file.rpartition(".")[0].rpartition("-")[2],
            url=official.url,
        ),
    )


def _remove_last_layer(network: nn.Module) -> int:
    """Number of input features of the last layer, which is replaced by an identity."""
    kinds = [(name, m) for name, m in network.named_modules() if isinstance(m, nn.Linear)]
    kinds = kinds or [(name, m) for name, m in network.named_modules() if isinstance(m, nn.Conv2d)]
    path, last = kinds[-1]
    parent, _, attribute = path.rpartition(".")
    setattr(network.get_submodule(parent), attribute, nn.Identity())
    return last.in_features if isinstance(last, nn.Linear) else last.in_channels


def _preparation(transforms: Any) -> Preparation:
    """Preparation of an official preset, in units of pixels."""
    return Preparation(
        size=transforms.crop_size[0],
        resize=transforms.resize_size[0],
        interpolation=transforms.interpolation.value,
        mean=tuple(PIXELS * value for value in transforms.mean),
        std=tuple(PIXELS * value for value in transforms.std),
    )


resnet50 = partial(torchvision_network, "resnet50")
efficientnet_b0 = partial(torchvision_network, "efficientnet_b0")
mobilenet_v3_small = partial(torchvision_network, "mobilenet_v3_small")
