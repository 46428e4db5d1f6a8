"""The critical path: the chain of work and messages over ranks that determines the duration of a window.

It is followed backwards from the rank that was busy last. When a rank waited for a collective, the path continues on
the rank that issued it last, at the instant of that issue:

    rank 0   ════════════●·······wait·······~~~═══════         path:  rank 1 ═════, then ~~~ and ═══ of rank 0
    rank 1   ═══════════════════════════════●~~~══

Work on the path has no slack: a second less of it shortens the run by a second, until another path is longer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from paceline.analyze.run.arrivals import sums_until
from paceline.analyze.run.messages import UNKNOWN, Messages
from paceline.analyze.run.run_timeline import WAIT, TimeLine
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.trace_summary import PathPart

_OTHER = LEDGER_KINDS.index("other")


def critical_path(
    lines: Sequence[TimeLine], found: Sequence[Messages], windows: Sequence[tuple[int, int]]
) -> tuple[PathPart, ...]:
    """Shares of the critical path by rank and ledger kind, the largest first; empty if waits are unknown."""
    whole = sum(end - start for start, end in windows)
    if not lines or whole <= 0 or not all(line.divided for line in lines):
        return ()
    arrivers = _last_arrivers(found)
    spent = np.zeros((len(lines), len(LEDGER_KINDS)))
    for window in windows:
        for number, pieces in enumerate(_pieces(lines, found, window, arrivers)):
            if pieces:
                begins, ends = (np.array(side, np.int64) for side in zip(*pieces, strict=True))
                spent[number] += (sums_until(lines[number], ends) - sums_until(lines[number], begins)).sum(axis=1)
    parts = [
        PathPart(rank=line.rank, kind=LEDGER_KINDS[kind], share=float(spent[number, kind] / whole))
        for number, line in enumerate(lines)
        for kind in np.flatnonzero(spent[number] > 0)
    ]
    return tuple(sorted(parts, key=lambda part: -part.share))


def _pieces(
    lines: Sequence[TimeLine], found: Sequence[Messages], window: tuple[int, int], arrivers: dict[int, int]
) -> list[list[tuple[int, int]]]:
    """For each rank, the intervals in ns that are on the path."""
    waits = [_waits(line, own, window) for line, own in zip(lines, found, strict=True)]
    pieces: list[list[tuple[int, int]]] = [[] for _ in lines]
    rank, until = _busy_last(lines, window), window[1]
    while until > window[0]:
        ends, gathered, keys = waits[rank]
        place = bisect_left(ends, until) - 1
        if place < 0 or gathered[place] <= window[0]:
            pieces[rank].append((window[0], until))
            break
        pieces[rank].append((gathered[place], until))
        until = gathered[place]
        rank = arrivers.get(keys[place], rank)
    return pieces


def _waits(line: TimeLine, own: Messages, window: tuple[int, int]) -> tuple[list[int], list[int], list[int]]:
    """The waits of a rank: their ends, when their messages were gathered, and the messages' keys."""
    part = line.during(*window)
    waiting = line.kind[part] == WAIT
    message = line.message[part]
    tails = np.flatnonzero(waiting & ~(np.append(waiting[1:], False) & (np.append(message[1:], -2) == message)))
    ends = (line.start_ns[part] + line.length_ns[part])[tails]
    of = message[tails]
    gathered = np.minimum(own.gathered_ns[of], ends)
    known = (gathered != UNKNOWN) & (own.key[of] >= 0)
    return ends[known].tolist(), gathered[known].tolist(), own.key[of][known].tolist()


def _last_arrivers(found: Sequence[Messages]) -> dict[int, int]:
    """Message key -> index of the rank that issued it last."""
    last: dict[int, int] = {}
    for number, own in enumerate(found):
        arrived = (own.issued_ns == own.gathered_ns) & (own.key >= 0)
        last.update(dict.fromkeys(own.key[arrived].tolist(), number))
    return last


def _busy_last(lines: Sequence[TimeLine], window: tuple[int, int]) -> int:
    """Index of the rank whose last segment of a kind other than `other` ended last."""

    def ended(line: TimeLine) -> int:
        part = line.during(*window)
        busy = np.flatnonzero(line.kind[part] != _OTHER)
        return int(line.start_ns[part][busy[-1]] + line.length_ns[part][busy[-1]]) if len(busy) else window[0]

    return max(range(len(lines)), key=lambda number: ended(lines[number]))
