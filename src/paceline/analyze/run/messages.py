"""Every message of a run, matched over its ranks.

    rank 0   ● issued ────────── wait ──────────┐
    rank 1              ● issued ──── wait ─────┤
    rank 2                                      ● issued = gathered
                                                └───── transfer ─────● completed

A collective is gathered when the last rank of its group has issued it; its sides have the same group and sequence
number. Before that instant ranks wait for each other; after it bytes move. A point-to-point message is gathered when
both ranks have issued their side: the n-th `send` matches the n-th `recv_`.

A rank observes a completion at or after it, never before. For an operation that completes on all ranks at once
(`TOGETHER`) the earliest observation is therefore the most accurate; the delay of the other ranks is their lateness.
For all other operations each rank has its own completion.

Assumes: all traces use one clock (storage/run_trace.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.records.rank_trace import SPAN_KINDS, RankTrace

COLLECTIVE = SPAN_KINDS.index("collective")
UNKNOWN = np.iinfo(np.int64).max
"""An instant that is not in the traces."""
SENDING, RECEIVING = ("send",), ("recv_",)
ALL_REDUCE = ("allreduce_", "allreduce_coalesced_", "mpi_allreduce")
ALL_GATHER = ("allgather_", "_allgather_base_", "allgather_coalesced_", "allgather_into_tensor_coalesced_")
REDUCE_SCATTER = ("reduce_scatter_", "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_")
ALL_TO_ALL = ("alltoall_", "alltoall_base_")
BROADCAST = ("broadcast_", "mpi_bcast", "mpi_bcast_pickled")
REDUCE = ("reduce_", "mpi_reduce", "mpi_reduce_pickled")
TOGETHER = (*ALL_REDUCE, *ALL_GATHER, *REDUCE_SCATTER, *ALL_TO_ALL, "barrier")
"""Operations that no rank can complete before all ranks have issued them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The messages of one rank in the order of their issue, as columns of equal length."""

    rank: int
    row: np.ndarray
    """Index in the rank's trace."""
    key: np.ndarray
    """Equal on all ranks of one message; -1 if the message cannot be matched."""
    issued_ns: np.ndarray
    gathered_ns: np.ndarray
    """When all participants had issued it; UNKNOWN if a side is missing. `issued_ns` for a message with a server."""
    observed_ns: np.ndarray
    """When this rank observed the completion; UNKNOWN if it never did."""
    completed_ns: np.ndarray
    """Earliest known upper bound of the completion; UNKNOWN if there is none."""

    def __len__(self) -> int:
        return len(self.row)


def messages(traces: Sequence[RankTrace], ranks: int) -> tuple[Messages, ...]:
    """The messages of each trace of a run with `ranks` ranks; traces of some ranks may be missing."""
    if not traces:
        return ()
    sides = _sides(traces, ranks)
    order = np.argsort(sides.key, kind="stable")
    starts = np.flatnonzero(np.diff(sides.key[order], prepend=-2))
    sizes = np.diff(starts, append=len(order))
    gathered, completed = np.full(len(order), UNKNOWN), sides.observed.copy()
    if len(order):
        # A sequence number that occurs twice on one rank counts as one participant.
        new = np.diff(sides.trace[order], prepend=-1) != 0
        new[starts] = True
        present = np.add.reduceat(new, starts)
        whole = np.repeat(present >= sides.members[order][starts], sizes) & (sides.key[order] >= 0)
        last = np.repeat(np.maximum.reduceat(sides.issued[order], starts), sizes)
        gathered[order] = np.where(whole, last, UNKNOWN)
        first = np.repeat(np.minimum.reduceat(sides.observed[order], starts), sizes)
        completed[order] = np.where(whole & sides.together[order], np.maximum(first, last), sides.observed[order])
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
                observed_ns=sides.observed[own],
                completed_ns=completed[own],
            )
        )
    return tuple(found)


def served(trace: RankTrace, ranks: int = 1) -> np.ndarray:
    """For each span, whether it is a message with a server; servers are numbered after the ranks."""
    return (trace.kind == COLLECTIVE) & (trace.sequence < 0) & (trace.peer >= ranks)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Every rank's side of every message of a run; sides of one message have equal keys."""

    trace: np.ndarray
    row: np.ndarray
    issued: np.ndarray
    observed: np.ndarray
    key: np.ndarray
    """-1 if the message cannot be matched."""
    members: np.ndarray
    """Number of participants."""
    together: np.ndarray
    served: np.ndarray
    """Whether the other side is a server."""


def _sides(traces: Sequence[RankTrace], ranks: int) -> _Sides:
    groups = {name: code for code, name in enumerate(sorted({word for trace in traces for word in trace.group.words}))}
    members = {name: len(ranks_in) for trace in traces for name, ranks_in in trace.groups.items()}
    parts: list[tuple[np.ndarray, ...]] = []
    for number, trace in enumerate(traces):
        rows = np.flatnonzero(trace.kind == COLLECTIVE)
        group = np.array([*(groups[word] for word in trace.group.words), -1])[trace.group.codes[rows]]
        size = np.array([*(members.get(word, ranks) for word in trace.group.words), ranks])[trace.group.codes[rows]]
        sends, receives, together = (is_operation(trace, rows, names) for names in (SENDING, RECEIVING, TOGETHER))
        between = (sends | receives) & (trace.peer[rows] >= 0)
        me = np.full(len(rows), trace.rank)
        source = np.where(between, np.where(sends, me, trace.peer[rows]), -1)
        target = np.where(between, np.where(sends, trace.peer[rows], me), -1)
        issued = trace.start_ns[rows]
        sequence = np.where(between, _ordinal(issued, group, source, target, sends), trace.sequence[rows])
        if trace.rank >= ranks:
            # A group without a list of members consists of the ranks: a server's sequence numbers do not match theirs.
            known = np.array([*(word in members for word in trace.group.words), False])[trace.group.codes[rows]]
            sequence = np.where(between | known, sequence, -1)
        observed = np.where(trace.end_ns[rows] < 0, UNKNOWN, trace.end_ns[rows])
        with_server = served(trace, ranks)[rows]
        size = np.where(between, 2, size)
        columns = (np.full(len(rows), number), rows, issued, observed, group, source, target, sequence, size)
        parts.append((*columns, together, with_server))
    trace_number, row, issued, observed, group, source, target, sequence, size, together, with_server = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    processes = 2 + int(max(source.max(initial=0), target.max(initial=0)))
    place = np.unique((group * processes + source + 1) * processes + target + 1, return_inverse=True)[1]
    key = np.where(sequence < 0, -1, (place.astype(np.int64) << 32) | sequence.astype(np.int64))
    return _Sides(trace_number, row, issued, observed, key, size, together, with_server)


def is_operation(trace: RankTrace, rows: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """For each of the rows, whether its operation is one of these."""
    return np.array([*(word in names for word in trace.operation.words), False])[trace.operation.codes[rows]]


def _ordinal(at: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """For each row, the number of earlier rows with equal columns."""
    order = np.lexsort((at, *columns))
    sorted_columns = np.stack(columns)[:, order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any(sorted_columns[:, 1:] != sorted_columns[:, :-1], axis=0)
    begins = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    counted = np.empty(len(order), dtype=np.int64)
    counted[order] = np.arange(len(order)) - begins
    return counted


def equal_rows(label: np.ndarray) -> list[np.ndarray]:
    """Indices of the rows with equal labels, one array per label in ascending order."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(order) else []
