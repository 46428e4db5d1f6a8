"""The matrix: bytes and time between ranks.

A message between two processes is known: from whom to whom, how much. What a backend sends for a collective is not seen
from here; it is divided as the usual algorithm for it would, and called estimated:

    all-reduce                  a ring: 2 (n - 1) / n of the payload from each rank to the next
    all-gather                  a ring: n - 1 payloads from each rank to the next
    reduce-scatter              a ring: (n - 1) / n of the payload from each rank to the next
    all-to-all                  an n-th of the payload from each rank to each other
    broadcast, scatter          the payload from the root to each other rank
    reduce, gather              the payload from each other rank to the root

Time is the transfer, from when both sides had issued a message to its completion: as long as it was under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.messages import SENDING, UNKNOWN, Messages
from paceline.records.rank_trace import RankTrace
from paceline.records.trace_summary import Exchange
from paceline.units import seconds

_RING = {
    "allreduce_": lambda payload, n: payload * 2 * (n - 1) / n,
    "allreduce_coalesced_": lambda payload, n: payload * 2 * (n - 1) / n,
    "mpi_allreduce": lambda payload, n: payload * 2 * (n - 1) / n,
    "allgather_": lambda payload, n: payload * (n - 1),
    "_allgather_base_": lambda payload, n: payload * (n - 1),
    "allgather_coalesced_": lambda payload, n: payload * (n - 1),
    "allgather_into_tensor_coalesced_": lambda payload, n: payload * (n - 1),
    "reduce_scatter_": lambda payload, n: payload * (n - 1) / n,
    "_reduce_scatter_base_": lambda payload, n: payload * (n - 1) / n,
    "reduce_scatter_tensor_coalesced_": lambda payload, n: payload * (n - 1) / n,
}
_EACH = ("alltoall_", "alltoall_base_")
_FROM_ROOT = ("broadcast_", "scatter_", "mpi_bcast", "mpi_bcast_pickled")
_TO_ROOT = ("reduce_", "gather_", "mpi_reduce", "mpi_reduce_pickled")


def matrix(
    traces: Sequence[RankTrace], found: Sequence[Messages], groups: Mapping[str, tuple[int, ...]]
) -> tuple[Exchange, ...]:
    """What went from rank to rank, in the order of ranks. `groups` says who belongs to which."""
    cells: dict[tuple[int, int], _Cell] = {}
    for trace, own in zip(traces, found, strict=True):
        for operation, group, peer, rows in _alike(trace, own):
            for source, target, share, estimated in _ways(trace.rank, operation, groups.get(group, ()), peer):
                cell = cells.setdefault((source, target), _Cell())
                payload = np.maximum(trace.bytes[own.row[rows]], 0)
                known = (own.gathered_ns[rows] != UNKNOWN) & (own.completed_ns[rows] != UNKNOWN)
                under_way = np.maximum(own.completed_ns[rows][known] - own.gathered_ns[rows][known], 0)
                cell.payload_bytes += float(payload.sum()) * share
                cell.under_way_ns += int(under_way.sum())
                cell.messages += len(rows)
                cell.timed += int(known.sum())
                cell.estimated |= estimated
    return tuple(
        Exchange(
            source=source,
            target=target,
            payload_bytes=round(cell.payload_bytes),
            seconds=seconds(cell.under_way_ns) if cell.timed else None,
            messages=cell.messages,
            estimated=cell.estimated,
        )
        for (source, target), cell in sorted(cells.items())
    )


@dataclass(slots=True)
class _Cell:
    """A sum that grows."""

    payload_bytes: float = 0.0
    under_way_ns: int = 0
    messages: int = 0
    timed: int = 0
    """Messages whose time is known."""
    estimated: bool = False


def _alike(trace: RankTrace, own: Messages) -> Iterator[tuple[str, str, int, np.ndarray]]:
    """The messages of a rank by operation, group and peer: positions in `own`."""
    operation, group = trace.operation.codes[own.row], trace.group.codes[own.row]
    peer = trace.peer[own.row].astype(np.int64)
    label = (
        (operation.astype(np.int64) * (len(trace.group.words) + 1) + group + 1) * (peer.max(initial=0) + 2) + peer + 1
    )
    order = np.argsort(label, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(order) else ():
        first = int(own.row[rows[0]])
        yield trace.operation[first] or "", trace.group[first] or "", int(trace.peer[first]), rows


def _ways(rank: int, operation: str, members: tuple[int, ...], peer: int) -> Iterator[tuple[int, int, float, bool]]:
    """From whom to whom one rank's side of a message goes, times its payload, and whether that is estimated.

    Every byte is told by one side only: that of a message between two by its sender.
    """
    n = len(members)
    others = [member for member in members if member != rank]
    if operation in SENDING:
        yield rank, peer, 1.0, False
    elif operation in _RING and n > 1:
        following = members[(members.index(rank) + 1) % n] if rank in members else -1
        yield rank, following, _RING[operation](1.0, n), True
    elif operation in _EACH and n > 1:
        for other in others:
            yield rank, other, 1.0 / n, True
    elif operation in _FROM_ROOT and peer >= 0 and rank != peer:
        yield peer, rank, 1.0, True
    elif operation in _TO_ROOT and peer >= 0 and rank != peer:
        yield rank, peer, 1.0, True
