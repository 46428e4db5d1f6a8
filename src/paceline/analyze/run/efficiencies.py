"""The efficiency tree: which part of the lost efficiency has which cause, after the POP centre of excellence.

    global = computation scaling × load balance × serialisation × transfer

    useful                 a rank's time but for comm-wait and comm-transfer
    computation scaling    useful rank-seconds per sample of the baseline ÷ here: more work, or slower cores
    load balance           mean useful time ÷ that of the busiest rank
    serialisation          useful time of the busiest rank ÷ a replay with instant messages: ranks that wait in turn
    transfer               that replay ÷ the measured time: what the network costs

The last three multiply to the mean useful time ÷ the measured time, the parallel efficiency. All are of the timed
steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.messages import Messages
from paceline.analyze.run.replay import replayed_ns
from paceline.analyze.run.run_timeline import TimeLine
from paceline.records.trace_summary import Efficiencies

FACTORS = ("computation_scaling", "load_balance", "serialisation", "transfer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the windows of a run came to, in nanoseconds."""

    useful_ns: tuple[int, ...]
    """Of each rank."""
    wall_ns: int
    replayed_ns: int


def work(lines: Sequence[TimeLine], found: Sequence[Messages], windows: Sequence[tuple[int, int]]) -> Work | None:
    """The work of all ranks in the windows; None where exposed time could not be divided, or there is no time."""
    wall = sum(end - start for start, end in windows)
    if not lines or wall <= 0 or not all(line.divided for line in lines):
        return None
    useful = tuple(sum(_useful_ns(line, window) for window in windows) for line in lines)
    return Work(
        useful_ns=useful, wall_ns=wall, replayed_ns=sum(replayed_ns(lines, found, window) for window in windows)
    )


def efficiencies(own: Work, samples: int, baseline: tuple[Work, int] | None = None) -> Efficiencies | None:
    """The tree of a run that trained on so many samples; `baseline` is the work of another, with its samples."""
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
    """Share of the lost efficiency that each factor explains: their logarithms, which add up; empty where none is lost.

    A factor above 1 has a negative share: it made up for others.
    """
    factors = {name: value for name in FACTORS if (value := getattr(tree, name)) is not None}
    lost = math.log(tree.global_)
    return {name: math.log(value) / lost for name, value in factors.items()} if lost < -1e-9 else {}


def _useful_ns(line: TimeLine, window: tuple[int, int]) -> int:
    part = line.during(*window)
    return int(np.sum(line.length_ns[part], where=~line.exposed[part]))
