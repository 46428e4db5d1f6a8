"""The messages of ranks as rows of a picture: those that overlap go to different ones, in turn.

    issue    ●──────────● A
                 ●──────────● B        a burst: messages each of which is issued before all before it are over
                         ●──────● C
    row 0    [── A ─────]    [─ C ──]
    row 1        [── B ─────]

A burst has as many rows as it has messages under way at once, three at most; beyond that a message is shown from where
the one before it in its row ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.messages import UNKNOWN, Messages
from paceline.analyze.run.run_timeline import TRANSFER, WAIT
from paceline.records.rank_trace import RankTrace
from paceline.records.run_picture import PICTURE_KINDS, MessageLabel

_MOST_ROWS = 3
_MESSAGE, _NONE = PICTURE_KINDS.index("message"), PICTURE_KINDS.index("none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The parts of one lane; instants in nanoseconds since the run's start, `ref` into the messages of all ranks."""

    rank: int
    row: int
    start_ns: np.ndarray
    kind: np.ndarray
    step: np.ndarray
    ref: np.ndarray


def message_rows(
    trace: RankTrace, own: Messages, window: tuple[int, int], offset: int, tick_ns: int
) -> Iterator[Strip]:
    """The messages of a rank, in as many rows as they need."""
    issued = np.clip(own.issued_ns, *window) - window[0]
    known = own.completed_ns != UNKNOWN
    gathered = own.gathered_ns != UNKNOWN
    # One that was never seen to end is shown as far as it was seen, and be it a tick.
    seen = np.where(known, own.completed_ns, np.where(gathered, own.gathered_ns, own.issued_ns))
    end = np.minimum(np.maximum(np.clip(seen, *window) - window[0], issued + tick_ns), window[1] - window[0])
    # Over for this rank before the last had come: what of it was waiting is not known.
    divided = gathered & known & (own.gathered_ns <= own.completed_ns)
    last = np.where(divided, np.clip(own.gathered_ns, *window) - window[0], issued)
    row = _row_numbers(issued, end)
    for number in range(int(row.max(initial=-1)) + 1):
        mine = np.flatnonzero(row == number)
        begin = np.maximum(issued[mine], np.append(0, np.maximum.accumulate(end[mine])[:-1]))
        mine, begin = mine[begin < end[mine]], begin[begin < end[mine]]
        middle = np.clip(last[mine], begin, end[mine])
        # Each message is three parts: it waits, it moves, and then there is none; those without length go.
        start = np.append(0, np.stack((begin, middle, end[mine]), axis=1).ravel())
        moves = np.where(divided[mine], TRANSFER, _MESSAGE)
        kinds = np.stack((np.full(len(mine), WAIT), moves, np.full(len(mine), _NONE)), axis=1).ravel()
        lasting = np.diff(start, append=window[1] - window[0]) > 0
        no_message = np.tile((False, False, True), len(mine))
        yield Strip(
            rank=trace.rank,
            row=number,
            start_ns=start[lasting],
            kind=np.append(_NONE, kinds)[lasting],
            step=np.append(-1, np.where(no_message, -1, np.repeat(trace.step[own.row[mine]], 3)))[lasting],
            ref=np.append(-1, np.where(no_message, -1, np.repeat(mine + offset, 3)))[lasting],
        )


def _row_numbers(issued: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The row of each message; they are in the order of issue."""
    if not len(issued):
        return np.zeros(0, np.int64)
    over = np.append(0, np.maximum.accumulate(end)[:-1])
    first = issued >= over
    first[0] = True
    starts = np.flatnonzero(first)
    burst = np.cumsum(first) - 1
    number = np.arange(len(issued))
    under_way = number + 1 - np.searchsorted(np.sort(end), issued, side="right")
    rows = np.clip(np.maximum.reduceat(under_way, starts), 1, _MOST_ROWS)
    return (number - starts[burst]) % rows[burst]


@dataclass(frozen=True, slots=True)
class SentMessages:
    """Some of the messages of all ranks, as columns of equal length."""

    issued_ns: np.ndarray
    gathered_ns: np.ndarray
    completed_ns: np.ndarray
    label: np.ndarray
    labels: tuple[MessageLabel, ...]

    @classmethod
    def of(cls, sides: Sequence[tuple[RankTrace, Messages]], chosen: np.ndarray) -> SentMessages:
        """The messages with these numbers, which count those of the first rank, then those of the second."""
        known: dict[MessageLabel, int] = {}
        columns: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(4)]
        offset = 0
        for trace, own in sides:
            begin, end = np.searchsorted(chosen, (offset, offset + len(own)))
            mine = chosen[begin:end] - offset
            numbers = _labels(trace, own.row[mine], known)
            for column, values in zip(
                columns, (own.issued_ns[mine], own.gathered_ns[mine], own.completed_ns[mine], numbers), strict=True
            ):
                column.append(values)
            offset += len(own)
        issued, gathered, completed, label = map(np.concatenate, columns)
        return cls(issued, gathered, completed, label, tuple(known))


def _labels(trace: RankTrace, rows: np.ndarray, known: dict[MessageLabel, int]) -> np.ndarray:
    """The number of each row's label; labels that are new are added."""
    columns = (trace.operation.codes, trace.group.codes, trace.dtype.codes, trace.bytes, trace.peer)
    alike = np.stack([column[rows].astype(np.int64) for column in columns], axis=1)
    _, first, which = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    numbers = [known.setdefault(_label(trace, int(rows[row])), len(known)) for row in first]
    return np.array(numbers, np.int64)[which.reshape(-1)]


def _label(trace: RankTrace, row: int) -> MessageLabel:
    payload, peer = int(trace.bytes[row]), int(trace.peer[row])
    return MessageLabel(
        operation=trace.operation[row] or "",
        group=trace.group[row] or "",
        dtype=trace.dtype[row],
        payload_bytes=payload if payload >= 0 else None,
        peer=peer if peer >= 0 else None,
    )
