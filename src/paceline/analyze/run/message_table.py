"""The message table: what was sent by operation and size, how long it took, and how fast that is.

Bandwidths follow nccl-tests. The algorithm bandwidth is the size of the operation over its time; the bus bandwidth is
that times a factor which makes it comparable with the speed of a link, whatever the operation and the number n of
ranks:

    operation               size                     factor
    all-reduce              payload                  2 (n - 1) / n
    all-gather, gather      payload of all ranks     (n - 1) / n
    reduce-scatter          payload                  (n - 1) / n
    scatter                 payload of all ranks     (n - 1) / n
    all-to-all              payload                  (n - 1) / n
    broadcast, reduce       payload                  1
    send, receive           payload                  1

Time is the transfer: from when the last rank had issued it to its completion. So a rank that comes late does not
make the network look slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from paceline.analyze.run.messages import TOGETHER, UNKNOWN, Messages
from paceline.analyze.run.run_timeline import TimeLine
from paceline.records.rank_trace import RankTrace, Words
from paceline.records.trace_summary import Lateness, MessageKind
from paceline.units import seconds

Convention = Callable[[int, int], tuple[int, float]]
"""Payload of a rank, ranks -> size of the operation and factor of the bus bandwidth."""


def _conventions() -> dict[str, Convention]:
    def share(n: int) -> float:
        return (n - 1) / n

    kinds: dict[Convention, tuple[str, ...]] = {
        lambda b, n: (b, 2 * share(n)): ("allreduce_", "allreduce_coalesced_", "mpi_allreduce"),
        lambda b, n: (b * n, share(n)): (
            "allgather_",
            "_allgather_base_",
            "allgather_coalesced_",
            "allgather_into_tensor_coalesced_",
            "gather_",
            "scatter_",
        ),
        lambda b, n: (b, share(n)): (
            "reduce_scatter_",
            "_reduce_scatter_base_",
            "reduce_scatter_tensor_coalesced_",
            "alltoall_",
            "alltoall_base_",
        ),
        lambda b, n: (b, 1.0): (
            "broadcast_",
            "reduce_",
            "send",
            "recv_",
            "recv_any_source_",
            "mpi_reduce",
            "mpi_bcast",
            "mpi_reduce_pickled",
            "mpi_bcast_pickled",
        ),
    }
    return {name: convention for convention, names in kinds.items() for name in names}


CONVENTIONS = _conventions()


def message_table(
    traces: Sequence[RankTrace], lines: Sequence[TimeLine], found: Sequence[Messages], members: Mapping[str, int]
) -> tuple[MessageKind, ...]:
    """A row for every operation, group, type and size; most bytes first. `members` says how many ranks a group has."""
    if not traces:
        return ()
    rows = _Rows(traces, lines, found)
    label = np.unique(rows.payload, return_inverse=True)[1]
    for column in (rows.operation, rows.group, rows.dtype):
        label = label * (len(column.words) + 1) + column.codes + 1
    order = np.argsort(label, kind="stable")
    kinds = np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(order) else []
    table = [_kind(rows, own, members) for own in kinds]
    return tuple(sorted(table, key=lambda kind: (-kind.payload_bytes * kind.count, kind.operation, kind.group)))


def lateness(traces: Sequence[RankTrace], found: Sequence[Messages]) -> Lateness | None:
    """How late completions were seen, over messages that end for all at once; None where fewer than two ranks say."""
    late = []
    for trace, own in zip(traces, found, strict=True):
        together = np.array([*(word in TOGETHER for word in trace.operation.words), False])
        seen = together[trace.operation.codes[own.row]] & (own.told_ns != UNKNOWN) & (own.gathered_ns != UNKNOWN)
        late.append((own.told_ns - own.completed_ns)[seen])
    all_late = np.concatenate(late) if late else np.zeros(0)
    if len(traces) < 2 or not len(all_late):
        return None
    return Lateness(
        median_s=seconds(float(np.median(all_late))),
        p99_s=seconds(float(np.percentile(all_late, 99))),
        messages=len(all_late),
    )


class _Rows:
    """Every rank's side of every message of the run, as columns of equal length."""

    def __init__(self, traces: Sequence[RankTrace], lines: Sequence[TimeLine], found: Sequence[Messages]) -> None:
        sides = list(zip(traces, lines, found, strict=True))

        def column(of: Callable[[RankTrace, TimeLine, Messages], np.ndarray]) -> np.ndarray:
            return np.concatenate([of(*side) for side in sides])

        self.rank = column(lambda trace, line, own: np.full(len(own), trace.rank))
        self.operation = _joined([(trace.operation, own.row) for trace, _, own in sides])
        self.group = _joined([(trace.group, own.row) for trace, _, own in sides])
        self.dtype = _joined([(trace.dtype, own.row) for trace, _, own in sides])
        self.payload = column(lambda trace, line, own: trace.bytes[own.row])
        self.collective = column(lambda trace, line, own: trace.sequence[own.row] >= 0)
        self.total = column(lambda trace, line, own: _between(own.issued_ns, own.told_ns))
        self.wait = column(lambda trace, line, own: _between(own.issued_ns, own.gathered_ns))
        self.transfer = column(lambda trace, line, own: _between(own.gathered_ns, own.completed_ns))
        self.exposed = column(_exposed_transfer)


def _kind(rows: _Rows, own: np.ndarray, members: Mapping[str, int]) -> MessageKind:
    first = own[0]
    operation, group = rows.operation[first] or "", rows.group[first] or ""
    payload = max(int(rows.payload[first]), 0)
    # A collective has a side on every rank of its group; a message between two is counted where it is sent or received.
    count = int(np.bincount(rows.rank[own]).max()) if rows.collective[first] else len(own)
    transfer_s = _median_s(rows.transfer[own])
    speeds = None
    if operation in CONVENTIONS and transfer_s and payload:
        size, factor = CONVENTIONS[operation](payload, max(members.get(group, 0), 1))
        speeds = (size / transfer_s, size / transfer_s * factor)
    known = rows.transfer[own] >= 0
    moved = int(rows.transfer[own][known].sum())
    return MessageKind(
        operation=operation,
        group=group,
        dtype=rows.dtype[first],
        payload_bytes=payload,
        count=count,
        total_s=_median_s(rows.total[own]),
        total_p99_s=_percentile_s(rows.total[own], 99),
        wait_s=_median_s(rows.wait[own]),
        transfer_s=transfer_s,
        hidden_share=1 - int(rows.exposed[own][known].sum()) / moved if moved else None,
        algorithm_bytes_per_s=speeds[0] if speeds else None,
        bus_bytes_per_s=speeds[1] if speeds else None,
    )


def _between(start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """Nanoseconds from one to the other, at least 0; -1 where one of them is not known."""
    known = (start_ns != UNKNOWN) & (end_ns != UNKNOWN)
    return np.where(known, np.maximum(np.where(known, end_ns, 0) - np.where(known, start_ns, 0), 0), -1)


def _exposed_transfer(trace: RankTrace, line: TimeLine, own: Messages) -> np.ndarray:
    """Nanoseconds of each message's transfer in which its rank computed nothing; -1 where that is not known."""
    known = (own.gathered_ns != UNKNOWN) & (own.completed_ns != UNKNOWN)
    begin = np.where(known, own.gathered_ns, 0)
    end = np.maximum(np.where(known, own.completed_ns, 0), begin)
    return np.where(known, _exposed_until(line, end) - _exposed_until(line, begin), -1)


def _exposed_until(line: TimeLine, instants: np.ndarray) -> np.ndarray:
    """Exposed nanoseconds of a time line before each of the instants."""
    if not len(line.start_ns):
        return np.zeros(len(instants), np.int64)
    passed = np.append(0, np.cumsum(np.where(line.exposed, line.length_ns, 0)))
    place = np.clip(np.searchsorted(line.start_ns, instants, side="right") - 1, 0, len(line.start_ns) - 1)
    within = np.clip(instants - line.start_ns[place], 0, line.length_ns[place])
    return passed[place] + np.where(line.exposed[place], within, 0)


def _joined(columns: Sequence[tuple[Words, np.ndarray]]) -> Words:
    """Some rows of several columns of text, as one."""
    words = {word: code for code, word in enumerate(sorted({word for column, _ in columns for word in column.words}))}
    codes = [np.array([*map(words.__getitem__, column.words), -1])[column.codes[rows]] for column, rows in columns]
    return Words(np.concatenate(codes), tuple(words))


def _median_s(values_ns: np.ndarray) -> float | None:
    return _percentile_s(values_ns, 50)


def _percentile_s(values_ns: np.ndarray, percent: float) -> float | None:
    known = values_ns[values_ns >= 0]
    return seconds(float(np.percentile(known, percent))) if len(known) else None
