"""The ledger: every nanosecond of a rank's window charged to exactly one kind.

A ledger is its rank's timeline (analyze/run/run_timeline.py) summed by kind. It sums to the window, nothing is counted
twice, and communication that is hidden behind computation is not charged. Where a rank's exposed time cannot be
divided, its comm-wait and comm-transfer are None and the time counts as `other`. A single rank without a server
communicates with nobody: both are 0.
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
    """Seconds by kind for each trace; what is not None sums to the window.

    `ranks` is how many ranks the run had, where traces of some may be missing.
    """
    in_ns = ledgers_ns(traces, started_at_ns=started_at_ns, ended_at_ns=ended_at_ns, ranks=ranks)
    return tuple(map(in_seconds, in_ns))


def in_seconds(ledger: Mapping[str, int | None]) -> dict[str, float | None]:
    """A ledger of nanoseconds in seconds."""
    return {kind: None if ns is None else seconds(ns) for kind, ns in ledger.items()}


def ledgers_ns(
    traces: Sequence[RankTrace], *, started_at_ns: int, ended_at_ns: int, ranks: int | None = None
) -> tuple[dict[str, int | None], ...]:
    """The same in whole nanoseconds, where the sum is exact."""
    assert ended_at_ns >= started_at_ns, "a window ends after it starts"
    return tuple(map(ledger_ns, time_lines(traces, (started_at_ns, ended_at_ns), ranks=ranks)))


def time_lines(
    traces: Sequence[RankTrace], window: tuple[int, int], *, ranks: int | None = None, cuts: Sequence[int] = ()
) -> tuple[TimeLine, ...]:
    """The time line of every trace; segments begin at `cuts`, too."""
    ranks = max(len(traces), ranks or 0)
    found = zip(traces, messages(traces, ranks), strict=True)
    return tuple(rank_line(trace, own, window, ranks, cuts) for trace, own in found)


def rank_lines(run: RunTrace, found: Sequence[Messages]) -> tuple[TimeLine, ...]:
    """The time lines of the ranks of a run that train, from its launch to its end; `found` are its messages."""
    window = (run.started_at_ns, max(run.started_at_ns, run.ended_at_ns))
    sides = zip(run.traces, found, strict=True)
    return tuple(rank_line(trace, own, window, run.ranks) for trace, own in sides if trace.rank < run.ranks)


def rank_line(
    trace: RankTrace, own: Messages, window: tuple[int, int], ranks: int, cuts: Sequence[int] = ()
) -> TimeLine:
    """The time line of one of so many ranks: one alone, without a server, communicates with nobody."""
    return time_line(trace, own, window, alone=ranks == 1 and not served(trace).any(), cuts=cuts)


def ledger_ns(line: TimeLine, part: slice = slice(None)) -> dict[str, int | None]:
    """Nanoseconds by kind of a time line, or of a part of it."""
    totals = np.zeros(len(LEDGER_KINDS), dtype=np.int64)
    np.add.at(totals, line.kind[part], line.length_ns[part])
    ledger: dict[str, int | None] = dict(zip(LEDGER_KINDS, totals.tolist(), strict=True))
    return ledger if line.divided else ledger | dict.fromkeys(COMM_KINDS)


def mean_ledger(ledgers: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Mean seconds by kind over ranks.

    A kind that is None for one rank is None in the mean, and the other ranks' share of it moves to
    `other`: so the mean, too, sums to the window.
    """
    assert ledgers, "a mean needs a ledger"
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
    assert other_s is not None, "`other` is the remainder and always known"
    mean["other"] = other_s + moved_s
    return mean
