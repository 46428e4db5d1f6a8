"""A replay of a run with instant messages: how long it would have taken on a network that costs nothing.

Every rank does what it did, in the order in which it did it; what it did by itself takes as long as it took. Only the
time in which it communicated and computed nothing is taken anew: it ends when the last of those who take part in the
message has issued it, and not a moment later.

    measured   rank 0   ═══════●··wait··~~~transfer~~~═══════          replayed   ═══════●··wait··═══════
               rank 1   ════════════════●~~~transfer~~~═══                        ════════════════●═══

A message of which a side is not in the traces, and one with a parameter server, is over as soon as it is issued.

Events are taken in the order of measured time. A rank's part in a message is noted with the time that the rank has
saved up to then, and a block of exposed time ends at the latest of those: nothing that it hangs on comes later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paceline.analyze.run.messages import Messages
from paceline.analyze.run.run_timeline import TimeLine


def replayed_ns(lines: Sequence[TimeLine], found: Sequence[Messages], window: tuple[int, int]) -> int:
    """Nanoseconds that a window of a run would have taken; its ends are instants at which segments begin."""
    events = [_events(number, line, own, window) for number, (line, own) in enumerate(zip(lines, found, strict=True))]
    at, rank, start, key = (np.concatenate(column) for column in zip(*events, strict=True))
    order = np.lexsort((start >= 0, at))  # of two at one instant the issue comes first
    saved = [0] * len(lines)
    ready: dict[int, int] = {}
    for instant, who, began, message in zip(
        *(column[order].tolist() for column in (at, rank, start, key)), strict=True
    ):
        if began < 0:
            ready[message] = max(instant - saved[who], ready.get(message, 0))
        else:
            begins = began - saved[who]
            ends = min(max(begins, ready.get(message, 0)), instant - saved[who])
            saved[who] = instant - ends
    return window[1] - window[0] - min(saved, default=0)


def _events(number: int, line: TimeLine, own: Messages, window: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Instants, ranks, starts and messages of what one rank does in a window: issues (start -1) and ends of blocks."""
    part = line.during(*window)
    exposed, message = line.exposed[part], line.message[part]
    # A block is a run of exposed segments that belong to one message.
    changes = np.flatnonzero(np.diff(np.where(exposed, message, -2), prepend=-3))
    heads = changes[exposed[changes]]
    tails = np.append(changes, len(exposed))[np.searchsorted(changes, heads) + 1] - 1
    start, length = line.start_ns[part], line.length_ns[part]
    ends, starts, governing = start[tails] + length[tails], start[heads], message[heads]
    block_keys = np.append(own.key, -1)[governing]

    inside = (own.issued_ns >= window[0]) & (own.issued_ns < window[1]) & (own.key >= 0)
    issued, keys = own.issued_ns[inside], own.key[inside]
    ranks = np.full(len(issued) + len(ends), number)
    none = np.full(len(issued), -1)
    return np.append(issued, ends), ranks, np.append(none, starts), np.append(keys, block_keys)
