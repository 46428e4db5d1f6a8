"""Runs of many steps, made up as columns: what pictures and timelines are tested on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paceline.analyze.run.run_summary import trace_summary
from paceline.records.rank_trace import SPAN_KINDS, RankTrace, Words
from paceline.records.results import StudyResults
from paceline.records.trace_summary import Efficiencies, RunTrace
from samples import report_samples as samples

STEP_NS = 1_000_000
MESSAGE_BYTES = 2_762_360
SPANS_PER_STEP = 7
STARTUP_NS = 5_000_000
GROUP = SPAN_KINDS.index("group")


def busy_run(ranks: int, steps: int, *, hosts: tuple[str, ...] = (), clock_error_ns: int = 0) -> RunTrace:
    """Steps of a millisecond in which every rank arrives at one all-reduce at a moment of its own, 0.12 ms long."""
    chance = np.random.default_rng(steps)
    begin = STARTUP_NS + STEP_NS * np.arange(steps, dtype=np.int64)
    arrivals = begin + 450_000 + chance.integers(0, 200_000, (ranks, steps))
    over = arrivals.max(axis=0) + 120_000
    return RunTrace(
        name="busy",
        ranks=ranks,
        started_at_ns=0,
        ended_at_ns=int(begin[-1]) + 2 * STEP_NS,
        traces=tuple(_trace(rank, ranks, begin, arrivals[rank], over) for rank in range(ranks)),
        hosts=hosts,
        clock_error_ns=clock_error_ns,
    )


def _trace(rank: int, ranks: int, begin: np.ndarray, arrival: np.ndarray, over: np.ndarray) -> RankTrace:
    spans = (
        ("step", begin, over + 100_000),
        ("input-wait", begin, begin + 20_000),
        ("forward", begin + 20_000, begin + 200_000),
        ("backward", begin + 200_000, arrival),
        ("communicate", arrival, over + 5_000),
        ("collective", arrival, over + 1_000 * rank),
        ("optimizer", over + 5_000, over + 60_000),
    )
    # One row before the steps says who is in the group.
    members = " ".join(map(str, range(ranks)))
    kind = np.append(GROUP, np.tile([SPAN_KINDS.index(name) for name, _, _ in spans], len(begin))).astype(np.int8)
    step = np.append(-1, np.repeat(np.arange(len(begin)), len(spans))).astype(np.int32)
    message = kind == SPAN_KINDS.index("collective")
    none = np.full(len(kind), -1)

    def instants(column: int) -> np.ndarray:
        return np.append(begin[0], np.stack([span[column] for span in spans], axis=1).ravel())

    def words(*texts: str, first: int = -1) -> Words:
        codes = np.where(message, 0, -1).astype(np.int32)
        codes[0] = first
        return Words(codes, texts)

    return RankTrace(
        rank=rank,
        kind=kind,
        start_ns=instants(1),
        end_ns=instants(2),
        step=step,
        operation=words("allreduce_", members, first=1),
        bytes=np.where(message, MESSAGE_BYTES, -1),
        sequence=np.where(message, step, -1),
        group=words("0", first=0),
        peer=none,
        begun_ns=none,
        dtype=words("float32"),
    )


def looked_into(run: RunTrace) -> StudyResults:
    """A study whose points have trees, and whose widest point had this run as its median one."""
    results = samples.typical(ranks=(1, run.ranks))
    tree = Efficiencies(global_=0.9, computation_scaling=1.02, load_balance=0.97, serialisation=0.95, transfer=0.96)
    first, last = results.points
    points = (replace(first, efficiencies=tree), replace(last, efficiencies=tree, anatomy=trace_summary(run)))
    return replace(results, points=points)
