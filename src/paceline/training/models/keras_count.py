"""How many parameters Keras would say a model has: its rules, applied to our modules.

    ours    what an optimizer could change: weights and biases
    Keras   these, the running mean and variance of every batch-norm (never trainable), and what its version of the
            network has beside ours: a bias in every convolution, the values of a normalisation inside the network

A published count can so be compared without Keras at hand: 4,062,381 with 12,810 trainable is its EfficientNetB0
under a dense layer of 10; 23,628,902 with 41,190 its ResNet50 under dense layers of 20 and 10, both frozen.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from paceline.training.models.keras_networks import KerasBase
from paceline.training.models.transfer import Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Keras's version of one of torchvision's networks."""

    name: str
    biased: bool = False
    """Whether its convolutions have biases, which batch-norm makes useless and ours therefore lack."""
    values: int = 0
    """Of its own normalisation: three means, three variances and a count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasCount:
    """Parameters in Keras's way of counting."""

    total: int
    trainable: int
    why: str
    """What is counted that ours leaves out; empty where nothing is."""


SIBLINGS = {
    **{f"torchvision:resnet{n}": Sibling(name=f"ResNet{n}", biased=True) for n in (50, 101, 152)},
    **{f"torchvision:efficientnet_b{n}": Sibling(name=f"EfficientNetB{n}", values=7) for n in range(8)},
    **{f"torchvision:densenet{n}": Sibling(name=f"DenseNet{n}") for n in (121, 169, 201)},
    "torchvision:mobilenet_v2": Sibling(name="MobileNetV2"),
    "resnet50-keras": Sibling(name="ResNet50", biased=True),
}
"""Networks that Keras has with the same layers."""


def keras_count(model: nn.Module) -> KerasCount:
    """The counts of a model as Keras would give them."""
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    whys: list[str] = []
    statistics = _statistics(model)
    if statistics:
        total += statistics
        whys.append(f"{statistics:,} running statistics")
    sibling = SIBLINGS.get(model.facts.get("network", "")) if isinstance(model, Transfer) else None
    if isinstance(model, Transfer) and sibling is not None:
        biases = _missing_biases(model.base) if sibling.biased else 0
        total += biases + sibling.values
        trainable += 0 if model.frozen else biases
        whys += [f"{biases:,} biases of convolutions"] * bool(biases)
        whys += [f"{sibling.values} values of normalisation"] * bool(sibling.values)
        whys.append(f"as Keras's {sibling.name} has them")
    return KerasCount(total=total, trainable=trainable, why=", ".join(whys))


def _statistics(model: nn.Module) -> int:
    """Running means and variances, be they torch's or those of a Keras network."""
    own = sum(2 * m.num_features for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats)
    keras = sum(module.num_fixed for module in model.modules() if isinstance(module, KerasBase))
    return own + keras


def _missing_biases(base: nn.Module) -> int:
    convolutions = (module for module in base.modules() if isinstance(module, nn.Conv2d))
    return sum(c.out_channels for c in convolutions if c.bias is None)
