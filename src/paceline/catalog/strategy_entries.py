"""Strategies: how a step is divided over ranks. A new one is a file in training/parallel and an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.catalog.entry import Entry
from paceline.layout import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyEntry(Entry):
    """Capabilities and requirements of a strategy."""

    options: Mapping[str, int] = field(default_factory=dict)
    """Its options of `[run]` with their defaults: see RUN_OPTIONS."""
    needs_mpi: bool = False
    """Whether its ranks communicate through MPI."""
    shows_noise: bool = False
    """Whether every rank has the mean gradient after the exchange: gradient noise can then be measured."""
    needs_every_gradient: bool = False
    """Whether it fails if the loss does not depend on a trainable parameter."""
    own_weights: bool = False
    """Whether the weights of two ranks may differ between two steps."""

    axes: tuple[Axis, ...] = ()
    """Axes of its mesh in addition to `data`; the last varies fastest. An option named like an axis is its size."""

    @property
    def has_servers(self) -> bool:
        """Whether servers store and update the parameters, each a shard."""
        return "servers" in self.options


STRATEGIES: dict[str, StrategyEntry] = {
    "ddp": StrategyEntry(
        at="paceline.training.parallel.ddp:Ddp",
        text="gradients all-reduced in buckets while backward still runs",
        shows_noise=True,
        needs_every_gradient=True,
    ),
    "flat": StrategyEntry(
        at="paceline.training.parallel.flat:Flat",
        text="all gradients in one buffer, one all-reduce after backward",
        shows_noise=True,
    ),
    "mpi-allreduce": StrategyEntry(
        at="paceline.training.parallel.mpi_strategies:MpiAllreduce",
        text="all gradients in one buffer, one Allreduce of MPI after backward",
        needs_mpi=True,
        shows_noise=True,
    ),
    "mpi-reduce-broadcast": StrategyEntry(
        at="paceline.training.parallel.mpi_strategies:MpiReduceBroadcast",
        text="all gradients in one buffer, reduced to rank 0 and broadcast by MPI",
        needs_mpi=True,
        shows_noise=True,
    ),
    "mpi-reduce-broadcast-pickled": StrategyEntry(
        at="paceline.training.parallel.mpi_strategies:MpiReduceBroadcastPickled",
        text="mpi-reduce-broadcast as published: a pickled list of arrays, which costs a copy at every turn",
        needs_mpi=True,
        shows_noise=True,
    ),
    "parameter-server": StrategyEntry(
        at="paceline.training.parallel.parameter_server:ParameterServer",
        text="servers hold the parameters and step them; no byte from rank to rank; options: servers, server_threads",
        options={"servers": 1, "server_threads": 1},
    ),
    "parameter-server-async": StrategyEntry(
        at="paceline.training.parallel.parameter_server:ParameterServerAsync",
        text="parameter-server without waiting for the slowest, up to a bound; "
        "options: servers, server_threads, staleness",
        options={"servers": 1, "server_threads": 1, "staleness": 4},
        own_weights=True,
    ),
    "local-sgd": StrategyEntry(
        at="paceline.training.parallel.local_sgd:LocalSgd",
        text="every rank steps on its own; parameters are averaged every few steps; option: average_every",
        options={"average_every": 8},
        own_weights=True,
    ),
    "ddp-fp16": StrategyEntry(
        at="paceline.training.parallel.compressed:DdpFp16",
        text="ddp with gradients sent in 16 bits: half the bytes",
        needs_every_gradient=True,
    ),
    "ddp-powersgd": StrategyEntry(
        at="paceline.training.parallel.compressed:DdpPowerSgd",
        text="ddp with gradients sent as products of thin matrices; option: compression_rank",
        options={"compression_rank": 2},
        needs_every_gradient=True,
    ),
}
RUN_OPTIONS = tuple(dict.fromkeys(option for entry in STRATEGIES.values() for option in entry.options))
"""All options of `[run]` that only some strategies take."""
