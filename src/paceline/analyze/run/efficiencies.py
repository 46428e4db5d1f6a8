"""The efficiency tree of the POP centre of excellence: the causes of lost efficiency, as factors.

    global = computation scaling × load balance × serialisation × transfer

    useful                 a rank's time but for comm-wait and comm-transfer
    computation scaling    useful rank-seconds per sample of the baseline ÷ here: more work, or slower cores
    load balance           mean useful time ÷ that of the busiest rank
    serialisation          useful time of the busiest rank ÷ a replay with instant messages: ranks that wait in turn
    transfer               that replay ÷ the measured time: the cost of the network

The last three multiply to the mean useful time ÷ the measured time, the parallel efficiency. All are of the timed
steps.

The replay simulates a network that costs nothing. Every rank repeats its work in the same order and with the same
durations; exposed communication ends as soon as the last participant has issued the message:

    measured   rank 0   ═══════●··wait··~~~transfer~~~═══════          replayed   ═══════●··wait··═══════
               rank 1   ════════════════●~~~transfer~~~═══                        ════════════════●═══

A message with a parameter server, or with a side that is missing from the traces, ends when it is issued.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.messages import Messages
from paceline.analyze.run.run_timeline import TimeLine
from paceline.records.trace_summary import Efficiencies

FACTORS = ("computation_scaling", "load_balance", "serialisation", "transfer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Useful, measured and replayed time of the windows of a run."""

    useful_ns: tuple[int, ...]
    """By rank."""
    wall_ns: int
    replayed_ns: int


def work(lines: Sequence[TimeLine], found: Sequence[Messages], windows: Sequence[tuple[int, int]]) -> Work | None:
    """Useful and replayed time in the windows; None if exposed time is not divided, or the windows are empty."""
    wall = sum(end - start for start, end in windows)
    if not lines or wall <= 0 or not all(line.divided for line in lines):
        return None
    useful = tuple(sum(_useful_ns(line, window) for window in windows) for line in lines)
    return Work(
        useful_ns=useful, wall_ns=wall, replayed_ns=sum(replayed_ns(lines, found, window) for window in windows)
    )


def efficiencies(own: Work, samples: int, baseline: tuple[Work, int] | None = None) -> Efficiencies | None:
    """The factors of a run that trained on `samples`; `baseline` is the work of the baseline run and its samples."""
    busiest = max(own.useful_ns)
    if not busiest or not own.replayed_ns:
        return None
    scaling = None
    if baseline is not None and samples and baseline[1]:
        scaling = (sum(baseline[0].useful_ns) / baseline[1]) / (sum(own.useful_ns) / samples)
    parts = (
        sum(own.useful_ns) / len(own.useful_ns) / busiest,
        busiest / own.replayed_ns,
        own.replayed_ns / own.wall_ns,
    )
    return Efficiencies(
        global_=math.prod(parts) * (1.0 if scaling is None else scaling),
        computation_scaling=scaling,
        load_balance=parts[0],
        serialisation=parts[1],
        transfer=parts[2],
    )


def explained(tree: Efficiencies) -> Mapping[str, float]:
    """Share of the lost efficiency that each factor explains, by logarithms; empty if no efficiency is lost.

    A factor above 1 has a negative share.
    """
    factors = {name: value for name in FACTORS if (value := getattr(tree, name)) is not None}
    lost = math.log(tree.global_)
    return {name: math.log(value) / lost for name, value in factors.items()} if lost < -1e-9 else {}


def _useful_ns(line: TimeLine, window: tuple[int, int]) -> int:
    part = line.during(*window)
    return int(np.sum(line.length_ns[part], where=~line.exposed[part]))


def replayed_ns(lines: Sequence[TimeLine], found: Sequence[Messages], window: tuple[int, int]) -> int:
    """Nanoseconds of a window with instant messages; segments begin at both ends of the window.

    Events are processed in the order of measured time. Each issue is recorded with the time that its rank has saved so
    far; a block of exposed time ends at the latest issue.
    """
    events = [_events(number, line, own, window) for number, (line, own) in enumerate(zip(lines, found, strict=True))]
    at, rank, start, key = (np.concatenate(column) for column in zip(*events, strict=True))
    order = np.lexsort((start >= 0, at))  # at one instant, issues come before ends of blocks
    saved = [0] * len(lines)
    ready: dict[int, int] = {}
    columns = (column[order].tolist() for column in (at, rank, start, key))
    for instant, place, began, message in zip(*columns, strict=True):
        replayed = instant - saved[place]
        if began < 0:
            ready[message] = max(replayed, ready.get(message, 0))
        else:
            ends = min(max(began - saved[place], ready.get(message, 0)), replayed)
            saved[place] = instant - ends
    return window[1] - window[0] - min(saved, default=0)


def _events(number: int, line: TimeLine, own: Messages, window: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Events of one rank in a window, issues (start -1) and ends of blocks: instants, ranks, starts, messages."""
    part = line.during(*window)
    exposed, message = line.exposed[part], line.message[part]
    # A block: consecutive exposed segments of one message.
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
