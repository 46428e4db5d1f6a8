"""The message table: count, duration and bandwidth of messages by operation and size.

Bandwidths follow nccl-tests. The algorithm bandwidth is the size of the operation over its time. The bus bandwidth is
that times a factor, and is comparable with the speed of a link for any operation and number n of ranks:

    operation               size                     factor
    all-reduce              payload                  2 (n - 1) / n
    all-gather, gather      payload of all ranks     (n - 1) / n
    reduce-scatter          payload                  (n - 1) / n
    scatter                 payload of all ranks     (n - 1) / n
    all-to-all              payload                  (n - 1) / n
    broadcast, reduce       payload                  1
    send, receive           payload                  1

Time is the transfer: from the issue on the last rank to the completion. A straggler therefore does not make the
network look slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from paceline.analyze.run.messages import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    RECEIVING,
    REDUCE,
    REDUCE_SCATTER,
    SENDING,
    TOGETHER,
    UNKNOWN,
    Messages,
    equal_rows,
    is_operation,
)
from paceline.analyze.run.run_timeline import TimeLine
from paceline.records.rank_trace import RankTrace, Words
from paceline.records.trace_summary import Lateness, MessageKind
from paceline.units import seconds

Convention = Callable[[int, int], tuple[int, float]]
"""Payload of a rank, ranks -> size of the operation and factor of the bus bandwidth."""


CONVENTIONS: dict[str, Convention] = {
    **dict.fromkeys(ALL_REDUCE, lambda size, n: (size, 2 * (n - 1) / n)),
    **dict.fromkeys((*ALL_GATHER, "gather_", "scatter_"), lambda size, n: (size * n, (n - 1) / n)),
    **dict.fromkeys((*REDUCE_SCATTER, *ALL_TO_ALL), lambda size, n: (size, (n - 1) / n)),
    **dict.fromkeys((*BROADCAST, *REDUCE, *SENDING, *RECEIVING, "recv_any_source_"), lambda size, n: (size, 1.0)),
}


def message_table(
    traces: Sequence[RankTrace], lines: Sequence[TimeLine], found: Sequence[Messages], members: Mapping[str, int]
) -> tuple[MessageKind, ...]:
    """A row for each operation, group, type and size, most bytes first; `members` is the number of ranks by group."""
    if not traces:
        return ()
    rows = _Rows(traces, lines, found)
    label = np.unique(rows.payload, return_inverse=True)[1]
    for column in (rows.operation, rows.group, rows.dtype):
        label = label * (len(column.words) + 1) + column.codes + 1
    table = [_kind(rows, own, members) for own in equal_rows(label)]
    return tuple(sorted(table, key=lambda kind: (-kind.payload_bytes * kind.count, kind.operation, kind.group)))


def lateness(traces: Sequence[RankTrace], found: Sequence[Messages]) -> Lateness | None:
    """Delay of observed completions, over operations that complete on all ranks at once; None below two ranks."""
    late = []
    for trace, own in zip(traces, found, strict=True):
        known = (own.observed_ns != UNKNOWN) & (own.gathered_ns != UNKNOWN)
        seen = is_operation(trace, own.row, TOGETHER) & known
        late.append((own.observed_ns - own.completed_ns)[seen])
    all_late = np.concatenate(late) if late else np.zeros(0)
    if len(traces) < 2 or not len(all_late):
        return None
    return Lateness(
        median_s=seconds(float(np.median(all_late))),
        p99_s=seconds(float(np.percentile(all_late, 99))),
        messages=len(all_late),
    )


class _Rows:
    """The sides of all messages on all ranks, as columns of equal length."""

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
        self.total = column(lambda trace, line, own: _between(own.issued_ns, own.observed_ns))
        self.wait = column(lambda trace, line, own: _between(own.issued_ns, own.gathered_ns))
        self.transfer = column(lambda trace, line, own: _between(own.gathered_ns, own.completed_ns))
        self.exposed = column(_exposed_transfer)


def _kind(rows: _Rows, own: np.ndarray, members: Mapping[str, int]) -> MessageKind:
    first = own[0]
    operation, group = rows.operation[first] or "", rows.group[first] or ""
    payload = max(int(rows.payload[first]), 0)
    # A collective has a side on every rank of its group; `send` and `recv_` are separate rows of the table.
    count = int(np.bincount(rows.rank[own]).max()) if rows.collective[first] else len(own)
    transfer_s = _percentile_s(rows.transfer[own])
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
        total_s=_percentile_s(rows.total[own]),
        total_p99_s=_percentile_s(rows.total[own], 99),
        wait_s=_percentile_s(rows.wait[own]),
        transfer_s=transfer_s,
        hidden_share=1 - int(rows.exposed[own][known].sum()) / moved if moved else None,
        algorithm_bytes_per_s=speeds[0] if speeds else None,
        bus_bytes_per_s=speeds[1] if speeds else None,
    )


def _between(start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """Nanoseconds from start to end, at least 0; -1 if either is UNKNOWN."""
    known = (start_ns != UNKNOWN) & (end_ns != UNKNOWN)
    return np.where(known, np.maximum(np.where(known, end_ns, 0) - np.where(known, start_ns, 0), 0), -1)


def _exposed_transfer(trace: RankTrace, line: TimeLine, own: Messages) -> np.ndarray:
    """Nanoseconds of each message's transfer in which its rank did not compute; -1 if unknown."""
    known = (own.gathered_ns != UNKNOWN) & (own.completed_ns != UNKNOWN)
    begin = np.where(known, own.gathered_ns, 0)
    end = np.maximum(np.where(known, own.completed_ns, 0), begin)
    return np.where(known, _exposed_until(line, end) - _exposed_until(line, begin), -1)


def _exposed_until(line: TimeLine, instants: np.ndarray) -> np.ndarray:
    """Exposed nanoseconds of a timeline before each of the instants."""
    if not len(line.start_ns):
        return np.zeros(len(instants), np.int64)
    passed = np.append(0, np.cumsum(np.where(line.exposed, line.length_ns, 0)))
    place = np.clip(np.searchsorted(line.start_ns, instants, side="right") - 1, 0, len(line.start_ns) - 1)
    within = np.clip(instants - line.start_ns[place], 0, line.length_ns[place])
    return passed[place] + np.where(line.exposed[place], within, 0)


def _joined(columns: Sequence[tuple[Words, np.ndarray]]) -> Words:
    """Selected rows of several text columns, concatenated."""
    words = {word: code for code, word in enumerate(sorted({word for column, _ in columns for word in column.words}))}
    codes = [np.array([*map(words.__getitem__, column.words), -1])[column.codes[rows]] for column, rows in columns]
    return Words(np.concatenate(codes), tuple(words))


def _percentile_s(values_ns: np.ndarray, percent: float = 50) -> float | None:
    known = values_ns[values_ns >= 0]
    return seconds(float(np.percentile(known, percent))) if len(known) else None
