"""Layout: the ranks of a run as a mesh with named axes. Pure, no torch.

    data=2 × model=2          model 0   model 1          a rank's number counts through the mesh in row-major
                     data 0   rank 0    rank 1           order: the last axis varies fastest
                     data 1   rank 2    rank 3

    group of rank 2 along data     (0, 2)     they train on different samples
    group of rank 2 along model    (2, 3)     they train on the same samples

The `data` axis divides the samples of a step. An axis that divides the network gives each of its indices another shard
of the weights. Ranks that hold the same shard are replicas: they end a run with equal weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DATA = "data"
"""The axis that divides the samples of a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction of a mesh of ranks."""

    name: str
    size: int
    """Ranks along it."""
    divides_network: bool = False
    """Whether each index along it holds another shard of the weights; otherwise weights are replicated along it."""

    def __post_init__(self) -> None:
        assert self.size >= 1, f"axis {self.name} has size {self.size}"


@dataclass(frozen=True, slots=True)
class Layout:
    """A mesh of ranks: named axes, the last of which varies fastest."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        assert len({axis.name for axis in self.axes}) == len(self.axes), f"an axis occurs twice in {self.text}"

    @property
    def ranks(self) -> int:
        """The number of ranks in the mesh."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def sizes(self) -> dict[str, int]:
        """Name of each axis -> size, as in the records of a run."""
        return {axis.name: axis.size for axis in self.axes}

    @property
    def text(self) -> str:
        """`data=2,model=2`."""
        return ",".join(f"{axis.name}={axis.size}" for axis in self.axes)

    def size(self, axis: str) -> int:
        """The number of ranks along an axis; 1 if the mesh has no such axis."""
        return self.sizes.get(axis, 1)

    def coordinates(self, rank: int) -> dict[str, int]:
        """The index of a rank along each axis."""
        assert 0 <= rank < self.ranks, f"rank {rank} is not in {self.text}"
        found: dict[str, int] = {}
        for axis in reversed(self.axes):
            rank, found[axis.name] = divmod(rank, axis.size)
        return {axis.name: found[axis.name] for axis in self.axes}

    def rank_at(self, coordinates: Mapping[str, int]) -> int:
        """The rank with these indices, one for each axis."""
        rank = 0
        for axis in self.axes:
            index = coordinates[axis.name]
            assert 0 <= index < axis.size, f"index {index} is not on axis {axis.name} of {self.text}"
            rank = rank * axis.size + index
        return rank

    def index(self, rank: int, axis: str) -> int:
        """The index of a rank along an axis; 0 if the mesh has no such axis."""
        return self.coordinates(rank).get(axis, 0)

    def group(self, rank: int, axis: str) -> tuple[int, ...]:
        """The ranks of a rank's group along an axis, itself included, in order."""
        own = self.coordinates(rank)
        if axis not in own:
            return (rank,)
        return tuple(self.rank_at({**own, axis: index}) for index in range(self.size(axis)))

    def groups(self, axis: str) -> tuple[tuple[int, ...], ...]:
        """All groups along an axis: each rank is in exactly one."""
        return tuple(dict.fromkeys(self.group(rank, axis) for rank in range(self.ranks)))

    def shard(self, rank: int) -> int:
        """Number of the shard of the weights that a rank has; 0 if no axis divides the network."""
        own, shard = self.coordinates(rank), 0
        for axis in self.axes:
            if axis.divides_network:
                shard = shard * axis.size + own[axis.name]
        return shard

    def replicas(self, rank: int) -> tuple[int, ...]:
        """The ranks that hold the same weights as this rank, itself included, in order."""
        return tuple(other for other in range(self.ranks) if self.shard(other) == self.shard(rank))


def mesh(ranks: int, inner: Sequence[Axis] = ()) -> Layout:
    """The layout of `ranks` ranks: the data axis, then the inner axes; a single rank has the data axis only."""
    if ranks == 1:
        inner = ()
    data_size, remainder = divmod(ranks, math.prod(axis.size for axis in inner))
    assert not remainder, f"{ranks} ranks cannot be divided over {Layout(tuple(inner)).text}"
    return Layout((Axis(name=DATA, size=data_size), *inner))
