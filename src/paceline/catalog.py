"""Names of models, data sets, strategies and launchers, and where each is made.

Knows them all and imports none: `load("strategy", "ddp")` imports what it names. A new one is a
file of its own and a line here.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from typing import Any

from paceline.errors import RequestError
from paceline.layout import Axis

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
        "cnn-photo": (
            "paceline.train.models.cnn:cnn_photo",
            "five convolutions for photos of 64 to 256 pixels: 393,893 parameters for five classes",
        ),
        "mlp": ("paceline.train.models.mlp:mlp", "any number of dense layers; options: layers, neurons, dropout"),
        "efficientnet-lite0": (
            "paceline.train.models.pretrained:efficientnet_lite0",
            "pretrained on ImageNet, with a new head: 3,371,008 parameters before it",
        ),
        "efficientnet-b0": (
            "paceline.train.models.torchvision_networks:efficientnet_b0",
            "the same of torchvision: 4,007,548 parameters before the head",
        ),
        "resnet50": (
            "paceline.train.models.torchvision_networks:resnet50",
            "the same of torchvision: 23,508,032 parameters before the head",
        ),
        "resnet50-keras": (
            "paceline.train.models.keras_resnet50:keras_resnet50",
            "the same as Keras first published it: 23,508,032 parameters before the head",
        ),
        "mobilenet-v3-small": (
            "paceline.train.models.torchvision_networks:mobilenet_v3_small",
            "the same of torchvision: 1,517,856 parameters before the head",
        ),
    },
    "dataset": {
        "mnist": ("paceline.data.mnist:mnist", "70,000 handwritten digits, 28×28×1"),
        "fashion-mnist": ("paceline.data.mnist:fashion_mnist", "70,000 pieces of clothing, 28×28×1"),
        "cifar10": ("paceline.data.cifar10:cifar10", "60,000 photos of ten kinds of things, 32×32×3"),
        "flowers": ("paceline.data.named_folders:FLOWERS", "photos of five kinds of flowers, 224×224×3"),
        "fruits": ("paceline.data.named_folders:FRUITS", "fruits from all sides (Fruits-360), 100×100×3"),
        "caltech256": ("paceline.data.named_folders:CALTECH256", "photos of 257 kinds of things, 128×128×3"),
        "digits": ("paceline.data.digits:digits", "1,797 handwritten digits, 8×8×1, shipped with Paceline"),
        "synthetic": ("paceline.data.synthetic:synthetic", "random images of any shape that can be learned"),
    },
    "strategy": {
        "ddp": ("paceline.train.parallel.ddp:Ddp", "gradients all-reduced in buckets while backward still runs"),
        "flat": ("paceline.train.parallel.flat:Flat", "all gradients in one buffer, one all-reduce after backward"),
        "mpi-allreduce": (
            "paceline.train.parallel.mpi:MpiAllreduce",
            "all gradients in one buffer, one Allreduce of MPI after backward",
        ),
        "mpi-reduce-broadcast": (
            "paceline.train.parallel.mpi:MpiReduceBroadcast",
            "all gradients in one buffer, reduced to rank 0 and broadcast by MPI",
        ),
        "mpi-reduce-broadcast-pickled": (
            "paceline.train.parallel.mpi:MpiReduceBroadcastPickled",
            "the same as published: a pickled list of arrays, which costs a copy at every turn",
        ),
        "parameter-server": (
            "paceline.train.parallel.parameter_server:ParameterServer",
            "servers hold the parameters and step them; no byte from rank to rank; options: servers, server_threads",
        ),
        "parameter-server-async": (
            "paceline.train.parallel.parameter_server:ParameterServerAsync",
            "the same without waiting for the slowest, up to a bound; options: servers, server_threads, staleness",
        ),
        "local-sgd": (
            "paceline.train.parallel.local_sgd:LocalSgd",
            "every rank steps on its own; parameters are averaged every few steps; option: average_every",
        ),
        "ddp-fp16": (
            "paceline.train.parallel.compressed:DdpFp16",
            "ddp with gradients sent in 16 bits: half the bytes",
        ),
        "ddp-powersgd": (
            "paceline.train.parallel.compressed:DdpPowerSgd",
            "ddp with gradients sent as products of thin matrices; option: compression_rank",
        ),
    },
    "launcher": {
        "local": ("paceline.launch.local:LocalLauncher", "one process per rank on this machine"),
        "torchrun": ("paceline.launch.torchrun:TorchrunLauncher", "torchrun, on this machine or on several"),
        "mpi": ("paceline.launch.mpi:MpiLauncher", "mpiexec of MPICH or Open MPI, on this machine or on several"),
        "slurm": ("paceline.launch.slurm:SlurmLauncher", "one SLURM job per run, with srun or mpiexec inside"),
        "pbs": ("paceline.launch.pbs:PbsLauncher", "writes a PBS job script per run, to be submitted by hand"),
        "ray": ("paceline.launch.ray_cluster:RayLauncher", "tasks of a Ray cluster, or of one started for the run"),
    },
    "optimizer": {
        "sgd": ("torch.optim:SGD", "stochastic gradient descent; options: momentum, weight_decay"),
        "adam": ("torch.optim:Adam", "Adam; options: weight_decay, epsilon"),
        "adamw": ("torch.optim:AdamW", "Adam with decoupled weight decay; options: weight_decay, epsilon"),
        "adadelta": ("torch.optim:Adadelta", "Adadelta; options: weight_decay, epsilon, rho"),
        "lars": (
            "paceline.train.optim.lars:Lars",
            "SGD whose steps suit the length of each layer's weights; options: momentum, weight_decay, epsilon",
        ),
        "lamb": (
            "paceline.train.optim.lamb:Lamb",
            "Adam whose steps suit the length of each layer's weights; options: weight_decay, epsilon",
        ),
    },
}

# kind -> family -> the same, for names such as torchvision:resnet101, whose second half is passed on
FAMILIES: dict[str, dict[str, tuple[str, str]]] = {
    "model": {
        "torchvision": (
            "paceline.train.models.torchvision_networks:torchvision_network",
            "any classifier of torchvision, pretrained, such as torchvision:resnet101",
        ),
        "keras": (
            "paceline.train.models.keras_networks:keras_network",
            "any application of Keras 3, on PyTorch, such as keras:EfficientNetB0",
        ),
    },
}
# Models whose options are weights, freeze, head, preprocessing and image_size; those of families, too.
PRETRAINED = ("efficientnet-lite0", "efficientnet-b0", "resnet50", "resnet50-keras", "mobilenet-v3-small")
# What their option `weights` may be besides the path of a file.
WEIGHTS = ("imagenet", "none")
# How such a file's name ends; the last of Keras's networks alone.
WEIGHTS_ENDINGS = (".safetensors", ".pth", ".pt", ".bin", ".h5")
PREPROCESSING = ("own", "twice", "unit", "none")

# strategy -> what it alone takes, and what that is where the study does not say
STRATEGY_OPTIONS: dict[str, dict[str, int]] = {
    "parameter-server": {"servers": 1, "server_threads": 1},
    "parameter-server-async": {"servers": 1, "server_threads": 1, "staleness": 4},
    "local-sgd": {"average_every": 8},
    "ddp-powersgd": {"compression_rank": 2},
}
# strategy -> the axes of its mesh of ranks besides `data`, the last of which varies fastest; none for most. Where the
# strategy has an option with the name of an axis, that is its size.
STRATEGY_AXES: dict[str, tuple[Axis, ...]] = {}
# model -> its options, and what each is where the study does not say; a list is the value of those that are lists
MODEL_OPTIONS: dict[str, dict[str, object]] = {
    "cnn-690k": {"dropout": 0.25},
    "cnn-small": {"dropout": 0.25, "dense_dropout": 0.5},
    "cnn-photo": {"dropout": 0.25},
    "mlp": {"layers": 1, "neurons": 32, "dropout": 0.0},
}
PRETRAINED_OPTIONS: dict[str, object] = {
    "weights": "imagenet",
    "freeze": None,
    "head": [],
    "preprocessing": "own",
    "image_size": None,
}
# Optimizers that take momentum, those with a small number that keeps divisions finite, and those that say how much of
# their averages is kept from step to step.
TAKE_MOMENTUM = ("sgd", "lars")
TAKE_EPSILON = ("adam", "adamw", "adadelta", "lars", "lamb")
TAKE_RHO = ("adadelta",)
# What Keras's optimizers have where nobody says, and PyTorch's have otherwise.
KERAS_DEFAULTS: dict[str, dict[str, float]] = {
    "adam": {"epsilon": 1e-7},
    "adamw": {"epsilon": 1e-7},
    "adadelta": {"epsilon": 1e-7, "rho": 0.95},
}
# Those whose step depends on whole layers: a server that holds a part of one cannot take it.
BY_LAYER = ("lars", "lamb")
# Strategies that talk through MPI, and launchers whose ranks find each other through it.
NEED_MPI = ("mpi-allreduce", "mpi-reduce-broadcast", "mpi-reduce-broadcast-pickled")
HAVE_MPI = ("mpi", "slurm")
# Data sets that are folders of image files: the size to which they are decoded is the study's to choose.
IMAGE_FOLDERS = ("flowers", "fruits", "caltech256")
# What may stand before the path of a data set, with a colon, where its name does not say what it is.
DATA_FORMS = ("npz", "idx", "images")
# Strategies after whose exchange every rank has the mean gradient itself: there its noise can be seen.
SHOW_NOISE = ("ddp", "flat", *NEED_MPI)


def names(kind: str) -> tuple[str, ...]:
    """The known names of a kind, in the order in which they are shown."""
    return tuple(ENTRIES[kind])


def description(kind: str, name: str) -> str:
    """One line about an entry."""
    return ENTRIES[kind][name][1]


def strategy_options(strategy: str) -> dict[str, int]:
    """The options that a strategy takes, each with its default; empty for most."""
    return dict(STRATEGY_OPTIONS.get(strategy, {}))


def strategy_axes(strategy: str) -> tuple[Axis, ...]:
    """The axes of a strategy's mesh of ranks besides `data`, each with its default size."""
    return STRATEGY_AXES.get(strategy, ())


def model_options(model: str) -> dict[str, object] | None:
    """The options that a model takes, each with its default; None for a model of the user's own."""
    if pretrained(model):
        return dict(PRETRAINED_OPTIONS)
    return dict(MODEL_OPTIONS[model]) if model in MODEL_OPTIONS else None


def carriers(strategy: str) -> tuple[str, ...]:
    """The launchers that can carry a strategy; those of MPI alone where it needs MPI."""
    return HAVE_MPI if strategy in NEED_MPI else names("launcher")


def family(kind: str, name: str) -> str | None:
    """The family of a name such as torchvision:resnet101; None where it is of none."""
    first, colon, rest = name.partition(":")
    return first if colon and rest and first in FAMILIES.get(kind, ()) else None


def known(kind: str, name: str) -> bool:
    """Whether a name is of the catalog; whether its family has such a member, only loading it tells."""
    return name in ENTRIES[kind] or family(kind, name) is not None


def pretrained(model: str) -> bool:
    """Whether a model takes the options of pretrained networks."""
    return model in PRETRAINED or family("model", model) is not None


def weights_endings(model: str) -> tuple[str, ...]:
    """How the files of weights end that a pretrained network takes."""
    return WEIGHTS_ENDINGS if family("model", model) == "keras" else WEIGHTS_ENDINGS[:-1]


def load(kind: str, name: str) -> Any:
    """The object that a name stands for; an unknown name is refused with the nearest one."""
    first = family(kind, name)
    if not known(kind, name):
        raise RequestError(unknown(kind, name))
    module, attribute = (FAMILIES[kind][first] if first else ENTRIES[kind][name])[0].split(":")
    found = getattr(importlib.import_module(module), attribute)
    return functools.partial(found, name.partition(":")[2]) if first else found


def unknown(kind: str, name: str) -> str:
    """The sentence for a name that is not in the catalog."""
    near = nearest(name, names(kind))
    hint = f" Did you mean {near!r}?" if near else ""
    members = [f"{first}:NAME" for first in FAMILIES.get(kind, ())]
    return f"There is no {kind} called {name!r}.{hint} Known: {', '.join((*names(kind), *members))}."


def nearest(name: str, candidates: tuple[str, ...] | list[str]) -> str | None:
    """The candidate that was probably meant, or None."""
    found = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.6)
    return found[0] if found else None
