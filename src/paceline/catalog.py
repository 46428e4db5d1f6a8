"""Names of models, data sets, strategies and launchers, and where each is made.

Knows them all and imports none: `load("strategy", "ddp")` imports what it names. A new one is a
file of its own and a line here.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from paceline.errors import RequestError

# kind -> name -> ("module:attribute", one line for a person)
ENTRIES: dict[str, dict[str, tuple[str, str]]] = {
    "model": {
        "cnn-690k": (
            "paceline.train.models.cnn:cnn_690k",
            "three convolutions, three dense layers: 690,590 parameters on 28×28×1",
        ),
        "cnn-small": (
            "paceline.train.models.cnn:cnn_small",
            "two convolutions, two dense layers: 1,199,882 parameters on 28×28×1, 1,626,442 on 32×32×3",
        ),
        "mlp": ("paceline.train.models.mlp:mlp", "any number of dense layers; options: layers, neurons, dropout"),
    },
    "dataset": {
        "mnist": ("paceline.data.mnist:mnist", "70,000 handwritten digits, 28×28×1"),
        "fashion-mnist": ("paceline.data.mnist:fashion_mnist", "70,000 pieces of clothing, 28×28×1"),
        "digits": ("paceline.data.digits:digits", "1,797 handwritten digits, 8×8×1, carried by scikit-learn"),
        "synthetic": ("paceline.data.synthetic:synthetic", "random images of any shape that can be learned"),
    },
    "strategy": {
        "ddp": ("paceline.train.parallel.ddp:Ddp", "gradients all-reduced in buckets while backward still runs"),
        "flat": ("paceline.train.parallel.flat:Flat", "all gradients in one buffer, one all-reduce after backward"),
    },
    "launcher": {
        "local": ("paceline.launch.local:LocalLauncher", "one process per rank on this machine"),
    },
    "optimizer": {
        "sgd": ("torch.optim:SGD", "stochastic gradient descent; options: momentum, weight_decay"),
        "adam": ("torch.optim:Adam", "Adam; option: weight_decay"),
        "adamw": ("torch.optim:AdamW", "Adam with decoupled weight decay; option: weight_decay"),
        "adadelta": ("torch.optim:Adadelta", "Adadelta; option: weight_decay"),
    },
}


def names(kind: str) -> tuple[str, ...]:
    """The known names of a kind, in the order in which they are shown."""
    return tuple(ENTRIES[kind])


def description(kind: str, name: str) -> str:
    """One line about an entry."""
    return ENTRIES[kind][name][1]


def load(kind: str, name: str) -> Any:
    """The object that a name stands for; an unknown name is refused with the nearest one."""
    if name not in ENTRIES[kind]:
        raise RequestError(unknown(kind, name))
    module, attribute = ENTRIES[kind][name][0].split(":")
    return getattr(importlib.import_module(module), attribute)


def unknown(kind: str, name: str) -> str:
    """The sentence for a name that is not in the catalog."""
    near = nearest(name, names(kind))
    hint = f" Did you mean {near!r}?" if near else ""
    return f"There is no {kind} called {name!r}.{hint} Known: {', '.join(names(kind))}."


def nearest(name: str, candidates: tuple[str, ...] | list[str]) -> str | None:
    """The candidate that was probably meant, or None."""
    found = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.6)
    return found[0] if found else None
