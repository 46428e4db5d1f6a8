"""Optimizers. A new one is a file in training/optim, or a class of PyTorch, and an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.catalog.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerEntry(Entry):
    """Options and properties of an optimizer."""

    takes: tuple[str, ...] = ()
    """Of the settings momentum, epsilon and rho."""
    adaptive: bool = True
    """Whether it divides by running averages of the gradient: its rate scales with the root of the batch."""
    by_layer: bool = False
    """Whether a step needs whole layers: a server with a part of a layer cannot take it."""
    plain_sgd: bool = False
    """Whether a step is the gradient times the rate, as AdaScale assumes."""
    fused: bool = False
    """Whether PyTorch has a fused implementation."""
    keras_defaults: Mapping[str, float] = field(default_factory=dict)
    """Defaults of the Keras optimizer that differ from PyTorch's."""


OPTIMIZERS: dict[str, OptimizerEntry] = {
    "sgd": OptimizerEntry(
        at="torch.optim:SGD",
        text="stochastic gradient descent; options: momentum, weight_decay",
        takes=("momentum",),
        adaptive=False,
        plain_sgd=True,
        fused=True,
    ),
    "adam": OptimizerEntry(
        at="torch.optim:Adam",
        text="Adam; options: weight_decay, epsilon",
        takes=("epsilon",),
        fused=True,
        keras_defaults={"epsilon": 1e-7},
    ),
    "adamw": OptimizerEntry(
        at="torch.optim:AdamW",
        text="Adam with decoupled weight decay; options: weight_decay, epsilon",
        takes=("epsilon",),
        fused=True,
        keras_defaults={"epsilon": 1e-7},
    ),
    "adadelta": OptimizerEntry(
        at="torch.optim:Adadelta",
        text="Adadelta; options: weight_decay, epsilon, rho",
        takes=("epsilon", "rho"),
        keras_defaults={"epsilon": 1e-7, "rho": 0.95},
    ),
    "lars": OptimizerEntry(
        at="paceline.training.optim.lars:Lars",
        text="SGD whose steps suit the length of each layer's weights; options: momentum, weight_decay, epsilon",
        takes=("momentum", "epsilon"),
        adaptive=False,
        by_layer=True,
    ),
    "lamb": OptimizerEntry(
        at="paceline.training.optim.lamb:Lamb",
        text="Adam whose steps suit the length of each layer's weights; options: weight_decay, epsilon",
        takes=("epsilon",),
        by_layer=True,
    ),
}
