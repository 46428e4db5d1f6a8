"""The ledger: every nanosecond of a rank's window charged to exactly one kind.

A ledger is a rank's timeline (analyze/run/run_timeline.py) summed by kind. It sums to the window. Communication that
is hidden behind computation is not charged. If the exposed time of a rank cannot be divided, its comm-wait and
comm-transfer are None and the time counts as `other`. For a single rank without a server both are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paceline.analyze.run.messages import Messages, messages, served
from paceline.analyze.run.run_timeline import COMM_KINDS, TimeLine, time_line
from paceline.records.rank_trace import LEDGER_KINDS, RankTrace
from paceline.records.trace_summary import RunTrace
from paceline.units import seconds


def ledgers(
    traces: Sequence[RankTrace], *, started_at_ns: int, ended_at_ns: int, ranks: int | None = None
) -> tuple[dict[str, float | None], ...]:
    """Seconds by kind for each trace; the known kinds sum to the window. `ranks` counts ranks without a trace, too."""
    lines = time_lines(traces, (started_at_ns, ended_at_ns), ranks=ranks)
    return tuple(in_seconds(ledger_ns(line)) for line in lines)


def in_seconds(ledger: Mapping[str, int | None]) -> dict[str, float | None]:
    """A ledger in seconds, from nanoseconds."""
    return {kind: None if ns is None else seconds(ns) for kind, ns in ledger.items()}


def time_lines(
    traces: Sequence[RankTrace], window: tuple[int, int], *, ranks: int | None = None, cuts: Sequence[int] = ()
) -> tuple[TimeLine, ...]:
    """The timeline of each trace, with additional cuts at `cuts`."""
    ranks = max(len(traces), ranks or 0)
    found = zip(traces, messages(traces, ranks), strict=True)
    return tuple(rank_line(trace, own, window, ranks, cuts) for trace, own in found)


def rank_lines(run: RunTrace, found: Sequence[Messages]) -> tuple[TimeLine, ...]:
    """Timelines of the training ranks of a run, from launch to end; `found` are its messages."""
    window = (run.started_at_ns, max(run.started_at_ns, run.ended_at_ns))
    sides = zip(run.traces, found, strict=True)
    return tuple(rank_line(trace, own, window, run.ranks) for trace, own in sides if trace.rank < run.ranks)


def rank_line(
    trace: RankTrace, own: Messages, window: tuple[int, int], ranks: int, cuts: Sequence[int] = ()
) -> TimeLine:
    """The timeline of one of `ranks` ranks; a single rank without a server does not communicate."""
    return time_line(trace, own, window, alone=ranks == 1 and not served(trace).any(), cuts=cuts)


def ledger_ns(line: TimeLine, part: slice = slice(None)) -> dict[str, int | None]:
    """Nanoseconds by kind of a timeline, or of a part of it."""
    totals = np.zeros(len(LEDGER_KINDS), dtype=np.int64)
    np.add.at(totals, line.kind[part], line.length_ns[part])
    ledger: dict[str, int | None] = dict(zip(LEDGER_KINDS, totals.tolist(), strict=True))
    return ledger if line.divided else ledger | dict.fromkeys(COMM_KINDS)


def mean_ledger(ledgers: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Mean seconds by kind over ranks; sums to the window.

    A kind that is None for one rank is None in the mean: the other ranks' share of it moves to `other`.
    """
    assert ledgers, "no ledgers"
    mean: dict[str, float | None] = {}
    moved_s = 0.0
    for kind in LEDGER_KINDS:
        values = [ledger[kind] for ledger in ledgers]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            mean[kind] = sum(known) / len(values)
        else:
            mean[kind] = None
            moved_s += sum(known) / len(values)
    other_s = mean["other"]
    assert other_s is not None, "`other` is always known"
    mean["other"] = other_s + moved_s
    return mean
