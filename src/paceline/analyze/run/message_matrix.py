"""The message matrix: bytes and time between ranks, and between hosts.

Sender, receiver and size of a point-to-point message are in the traces. The messages inside a collective are not: its
bytes are divided as the usual algorithm does, and marked as estimated:

    all-reduce                  a ring: 2 (n - 1) / n of the payload from each rank to the next
    all-gather                  a ring: n - 1 payloads from each rank to the next
    reduce-scatter              a ring: (n - 1) / n of the payload from each rank to the next
    all-to-all                  an n-th of the payload from each rank to each other
    broadcast, scatter          the payload from the root to each other rank
    reduce, gather              the payload from each other rank to the root

Time is the transfer: from the last issue of a message to its completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.messages import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SENDING,
    UNKNOWN,
    Messages,
    equal_rows,
)
from paceline.records.rank_trace import RankTrace
from paceline.records.trace_summary import Exchange
from paceline.units import seconds

_RING: dict[str, Callable[[int], float]] = {
    **dict.fromkeys(ALL_REDUCE, lambda n: 2 * (n - 1) / n),
    **dict.fromkeys(ALL_GATHER, lambda n: n - 1),
    **dict.fromkeys(REDUCE_SCATTER, lambda n: (n - 1) / n),
}
"""Payloads from each rank to the next in a ring of n ranks."""
_FROM_ROOT = (*BROADCAST, "scatter_")
_TO_ROOT = (*REDUCE, "gather_")


def message_matrix(
    traces: Sequence[RankTrace], found: Sequence[Messages], groups: Mapping[str, tuple[int, ...]]
) -> tuple[Exchange, ...]:
    """Bytes and seconds from rank to rank, in the order of ranks; `groups` has the ranks of each process group."""
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
    """Sums of one cell."""

    payload_bytes: float = 0.0
    under_way_ns: int = 0
    messages: int = 0
    timed: int = 0
    """Messages with a known transfer time."""
    estimated: bool = False


def _alike(trace: RankTrace, own: Messages) -> Iterator[tuple[str, str, int, np.ndarray]]:
    """The messages of a rank by operation, group and peer: positions in `own`."""
    operation, group = trace.operation.codes[own.row], trace.group.codes[own.row]
    peer = trace.peer[own.row].astype(np.int64)
    label = (
        (operation.astype(np.int64) * (len(trace.group.words) + 1) + group + 1) * (peer.max(initial=0) + 2) + peer + 1
    )
    for rows in equal_rows(label):
        first = int(own.row[rows[0]])
        yield trace.operation[first] or "", trace.group[first] or "", int(trace.peer[first]), rows


def _ways(rank: int, operation: str, members: tuple[int, ...], peer: int) -> Iterator[tuple[int, int, float, bool]]:
    """Sender, receiver, factor of the payload, and whether it is estimated, for one rank's side of a message.

    Only one side counts each byte; of a point-to-point message the sender.
    """
    n = len(members)
    others = [member for member in members if member != rank]
    if operation in SENDING:
        yield rank, peer, 1.0, False
    elif operation in _RING and n > 1:
        following = members[(members.index(rank) + 1) % n] if rank in members else -1
        yield rank, following, _RING[operation](n), True
    elif operation in ALL_TO_ALL and n > 1:
        for other in others:
            yield rank, other, 1.0 / n, True
    elif operation in _FROM_ROOT and peer >= 0 and rank != peer:
        yield peer, rank, 1.0, True
    elif operation in _TO_ROOT and peer >= 0 and rank != peer:
        yield rank, peer, 1.0, True


def host_matrix(matrix: Sequence[Exchange], hosts: Sequence[str]) -> tuple[tuple[str, ...], tuple[Exchange, ...]]:
    """The hosts in the order of their ranks, and a cell for each pair of hosts with messages, by index.

    `hosts` has the host of each rank. Messages with servers, whose hosts are unknown, are left out.
    """
    names = tuple(dict.fromkeys(hosts))
    place = [names.index(host) for host in hosts]
    cells: dict[tuple[int, int], list[Exchange]] = {}
    for cell in matrix:
        if 0 <= cell.source < len(place) and 0 <= cell.target < len(place):
            cells.setdefault((place[cell.source], place[cell.target]), []).append(cell)
    return names, tuple(_sum(source, target, found) for (source, target), found in sorted(cells.items()))


def _sum(source: int, target: int, cells: Sequence[Exchange]) -> Exchange:
    known = [cell.seconds for cell in cells if cell.seconds is not None]
    return Exchange(
        source=source,
        target=target,
        payload_bytes=sum(cell.payload_bytes for cell in cells),
        seconds=sum(known) if known else None,
        messages=sum(cell.messages for cell in cells),
        estimated=any(cell.estimated for cell in cells),
    )
