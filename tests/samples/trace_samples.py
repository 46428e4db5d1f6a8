"""Traces by hand: rows with what matters to a test, and nothing said of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from paceline.records.rank_trace import SPAN_KINDS, RankTrace, Words
from paceline.records.run import RunResult
from paceline.records.trace_summary import RunTrace
from paceline.units import nanoseconds


@dataclass(frozen=True, slots=True)
class Row:
    """One span. Instants in nanoseconds; -1 and None stand for null."""

    kind: str
    start: int
    end: int = -1
    step: int = 0
    operation: str | None = None
    bytes: int = -1
    sequence: int = -1
    group: str | None = None
    peer: int = -1
    begun: int = -1
    dtype: str | None = None


def allreduce(start: int, sequence: int, end: int = -1, *, bytes: int = 1000, step: int = 0, group: str = "0") -> Row:
    """A collective of all ranks."""
    return Row("collective", start, end, step, "allreduce_", bytes, sequence, group)


def trace_of(rows: Iterable[Row], rank: int = 0, *, truncated: bool = False) -> RankTrace:
    """The trace of one rank."""
    rows = list(rows)
    return RankTrace(
        rank=rank,
        kind=np.array([SPAN_KINDS.index(row.kind) for row in rows], np.int8),
        start_ns=np.array([row.start for row in rows], np.int64),
        end_ns=np.array([row.end for row in rows], np.int64),
        step=np.array([row.step for row in rows], np.int32),
        operation=Words.of(row.operation for row in rows),
        bytes=np.array([row.bytes for row in rows], np.int64),
        sequence=np.array([row.sequence for row in rows], np.int32),
        group=Words.of(row.group for row in rows),
        peer=np.array([row.peer for row in rows], np.int32),
        begun_ns=np.array([row.begun for row in rows], np.int64),
        dtype=Words.of(row.dtype for row in rows),
        truncated=truncated,
    )


def run_of(traces: Iterable[RankTrace], ranks: int, window: tuple[int, int]) -> RunTrace:
    """A run of so many ranks, of which these traces are there."""
    return RunTrace(name="run", ranks=ranks, started_at_ns=window[0], ended_at_ns=window[1], traces=tuple(traces))


def traces_of(traces: Iterable[RankTrace]) -> Callable[[RunResult], RunTrace]:
    """These traces as those of any run that is asked for."""
    traces = tuple(traces)
    return lambda run: run_of(traces, run.ranks, (run.launched_at_ns, run.launched_at_ns + nanoseconds(run.wall_s)))
