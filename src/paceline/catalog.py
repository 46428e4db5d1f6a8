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
        "adam": ("torch.optim:Adam", "Adam; option: weight_decay"),
        "adamw": ("torch.optim:AdamW", "Adam with decoupled weight decay; option: weight_decay"),
        "adadelta": ("torch.optim:Adadelta", "Adadelta; option: weight_decay"),
    },
}

# strategy -> what it alone takes, and what that is where the study does not say
STRATEGY_OPTIONS: dict[str, dict[str, int]] = {
    "parameter-server": {"servers": 1, "server_threads": 1},
    "parameter-server-async": {"servers": 1, "server_threads": 1, "staleness": 4},
    "local-sgd": {"average_every": 8},
    "ddp-powersgd": {"compression_rank": 2},
}
# Strategies that talk through MPI, and launchers whose ranks find each other through it.
NEED_MPI = ("mpi-allreduce", "mpi-reduce-broadcast", "mpi-reduce-broadcast-pickled")
HAVE_MPI = ("mpi", "slurm")


def names(kind: str) -> tuple[str, ...]:
    """The known names of a kind, in the order in which they are shown."""
    return tuple(ENTRIES[kind])


def description(kind: str, name: str) -> str:
    """One line about an entry."""
    return ENTRIES[kind][name][1]


def strategy_options(strategy: str) -> dict[str, int]:
    """The options that a strategy takes, each with its default; empty for most."""
    return dict(STRATEGY_OPTIONS.get(strategy, {}))


def carriers(strategy: str) -> tuple[str, ...]:
    """The launchers that can carry a strategy; those of MPI alone where it needs MPI."""
    return HAVE_MPI if strategy in NEED_MPI else names("launcher")


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
