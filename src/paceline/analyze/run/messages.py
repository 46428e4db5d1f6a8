"""Every message of a run, as its ranks together show it.

    rank 0   ● issued ────────── wait ──────────┐
    rank 1              ● issued ──── wait ─────┤
    rank 2                                      ● issued = gathered
                                                └───── transfer ─────● completed

A collective is gathered when the last rank of its group has issued it: the same group and the same number on all of
them. Before that a rank waits for others, whatever the network does; after it bytes move. A message between two is
gathered when both have issued their side: the n-th `send` of one to the other belongs to the n-th `recv_` of that.

A rank is told of a completion at or after it, never before. Of an operation that ends for all ranks at once
(`TOGETHER`) the earliest stamp is therefore the best of them, and how much later the others are is how late a
completion was seen. Of the rest each rank has its own.

Assumes: one time line for all traces (storage/run_trace.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.records.rank_trace import SPAN_KINDS, RankTrace

COLLECTIVE = SPAN_KINDS.index("collective")
UNKNOWN = np.iinfo(np.int64).max
"""An instant that the traces do not show."""
SENDING, RECEIVING = ("send",), ("recv_",)
TOGETHER = frozenset(
    (
        "allreduce_",
        "allreduce_coalesced_",
        "allgather_",
        "_allgather_base_",
        "allgather_coalesced_",
        "allgather_into_tensor_coalesced_",
        "reduce_scatter_",
        "_reduce_scatter_base_",
        "reduce_scatter_tensor_coalesced_",
        "alltoall_",
        "alltoall_base_",
        "barrier",
        "mpi_allreduce",
    )
)
"""Nobody has the result before everybody has given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The messages of one rank in the order of their issue, as columns of equal length."""

    rank: int
    row: np.ndarray
    """Where each stands in the rank's trace."""
    key: np.ndarray
    """Equal on all ranks that take part in the same message; -1 where nothing says which that is."""
    issued_ns: np.ndarray
    gathered_ns: np.ndarray
    """When all who take part had issued it; UNKNOWN where a trace does not show it. Of a message with a server the same
    as `issued_ns`: what the server does meanwhile passes on its side."""
    told_ns: np.ndarray
    """When this rank was told that it was over; UNKNOWN where it never was."""
    completed_ns: np.ndarray
    """When it was over, at the latest; UNKNOWN likewise."""

    def __len__(self) -> int:
        return len(self.row)


def messages(traces: Sequence[RankTrace], ranks: int) -> tuple[Messages, ...]:
    """The messages of every trace of a run of so many ranks, some of whose traces may be missing."""
    if not traces:
        return ()
    sides = _sides(traces, ranks)
    order = np.argsort(sides.key, kind="stable")
    starts = np.flatnonzero(np.diff(sides.key[order], prepend=-2))
    sizes = np.diff(starts, append=len(order))
    gathered, completed = np.full(len(order), UNKNOWN), sides.told.copy()
    if len(order):
        # A number that one rank shows twice does not stand for another rank.
        new = np.diff(sides.trace[order], prepend=-1) != 0
        new[starts] = True
        present = np.add.reduceat(new, starts)
        whole = np.repeat(present >= sides.members[order][starts], sizes) & (sides.key[order] >= 0)
        last = np.repeat(np.maximum.reduceat(sides.issued[order], starts), sizes)
        gathered[order] = np.where(whole, last, UNKNOWN)
        first = np.repeat(np.minimum.reduceat(sides.told[order], starts), sizes)
        completed[order] = np.where(whole & sides.together[order], np.maximum(first, last), sides.told[order])
    gathered[sides.served] = sides.issued[sides.served]
    found = []
    for number, trace in enumerate(traces):
        own = np.flatnonzero(sides.trace == number)
        own = own[np.lexsort((gathered[own], sides.issued[own]))]
        found.append(
            Messages(
                rank=trace.rank,
                row=sides.row[own],
                key=sides.key[own],
                issued_ns=sides.issued[own],
                gathered_ns=gathered[own],
                told_ns=sides.told[own],
                completed_ns=completed[own],
            )
        )
    return tuple(found)


def served(trace: RankTrace, ranks: int = 1) -> np.ndarray:
    """Which spans are messages with a server: these are numbered after the ranks."""
    return (trace.kind == COLLECTIVE) & (trace.sequence < 0) & (trace.peer >= ranks)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Every rank's side of every message of a run; equal keys belong together."""

    trace: np.ndarray
    row: np.ndarray
    issued: np.ndarray
    told: np.ndarray
    key: np.ndarray
    """-1 where nothing says what it belongs to."""
    members: np.ndarray
    """How many take part."""
    together: np.ndarray
    served: np.ndarray
    """Whether the other side is a server's, which are numbered after the ranks."""


def _sides(traces: Sequence[RankTrace], ranks: int) -> _Sides:
    groups = {name: code for code, name in enumerate(sorted({word for trace in traces for word in trace.group.words}))}
    members = {name: len(who) for trace in traces for name, who in trace.groups.items()}
    parts: list[tuple[np.ndarray, ...]] = []
    for number, trace in enumerate(traces):
        rows = np.flatnonzero(trace.kind == COLLECTIVE)
        group = np.array([*(groups[word] for word in trace.group.words), -1])[trace.group.codes[rows]]
        size = np.array([*(members.get(word, ranks) for word in trace.group.words), ranks])[trace.group.codes[rows]]
        operation = trace.operation.codes[rows]
        sends, receives, together = (_is(trace, operation, names) for names in (SENDING, RECEIVING, TOGETHER))
        between = (sends | receives) & (trace.peer[rows] >= 0)
        me = np.full(len(rows), trace.rank)
        source = np.where(between, np.where(sends, me, trace.peer[rows]), -1)
        target = np.where(between, np.where(sends, trace.peer[rows], me), -1)
        issued = trace.start_ns[rows]
        sequence = np.where(between, _ordinal(issued, group, source, target, sends), trace.sequence[rows])
        if trace.rank >= ranks:
            # Where nothing says who belongs to a group it is the ranks: a server's numbers in it are not theirs.
            known = np.array([*(word in members for word in trace.group.words), False])[trace.group.codes[rows]]
            sequence = np.where(between | known, sequence, -1)
        told = np.where(trace.end_ns[rows] < 0, UNKNOWN, trace.end_ns[rows])
        with_server = served(trace, ranks)[rows]
        size = np.where(between, 2, size)
        columns = (np.full(len(rows), number), rows, issued, told, group, source, target, sequence, size)
        parts.append((*columns, together, with_server))
    trace_number, row, issued, told, group, source, target, sequence, size, together, with_server = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    processes = 2 + int(max(source.max(initial=0), target.max(initial=0)))
    place = np.unique((group * processes + source + 1) * processes + target + 1, return_inverse=True)[1]
    key = np.where(sequence < 0, -1, (place.astype(np.int64) << 32) | sequence.astype(np.int64))
    return _Sides(trace_number, row, issued, told, key, size, together, with_server)


def _is(trace: RankTrace, operation: np.ndarray, names: Sequence[str] | frozenset[str]) -> np.ndarray:
    return np.array([*(word in names for word in trace.operation.words), False])[operation]


def _ordinal(at: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """For each row, how many rows with the same columns come before it."""
    order = np.lexsort((at, *columns))
    sorted_columns = np.stack(columns)[:, order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any(sorted_columns[:, 1:] != sorted_columns[:, :-1], axis=0)
    begins = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    counted = np.empty(len(order), dtype=np.int64)
    counted[order] = np.arange(len(order)) - begins
    return counted
