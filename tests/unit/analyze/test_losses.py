from __future__ import annotations

import itertools

import pytest

from paceline.analyze.points.losses import SERVERS, exposed_share, loop_costs_s, loop_windows, lost_shares
from paceline.analyze.run.ledger import time_lines
from paceline.records.rank_trace import LEDGER_KINDS, RankTrace
from paceline.records.run import Epoch
from samples.trace_samples import Row, allreduce, trace_of

SECOND = 1_000_000_000


def trace(rank: int, rows: list[tuple[str, float, float, int]]) -> RankTrace:
    """Spans as (kind, start, end, step) in seconds; a collective is numbered in order."""
    sequence = itertools.count()

    def row(kind: str, start: float, end: float, step: int) -> Row:
        instants = (round(start * SECOND), round(end * SECOND))
        return (
            allreduce(instants[0], next(sequence), step=step, bytes=4)
            if kind == "collective"
            else Row(kind, *instants, step)
        )

    return trace_of(itertools.starmap(row, rows), rank)


def epoch(step: int, samples: int) -> Epoch:
    return Epoch(
        epoch=1,
        step=step,
        samples=samples,
        train_loss=0.0,
        train_accuracy=0.0,
        validation_loss=None,
        validation_accuracy=None,
        epoch_s=1.0,
        evaluate_s=0.0,
        whole=True,
    )


def steps(rank: int, *, forward_s: float, comm_s: float, offset: float = 0.0) -> RankTrace:
    """Two steps: the first is warm-up and ten times as slow; an evaluation lies between them."""
    at, rows = offset, []
    for step, slow in ((0, 10.0), (1, 1.0)):
        for kind, length in (("input-wait", 0.1), ("forward", forward_s * slow), ("communicate", comm_s)):
            if kind == "communicate" and comm_s:
                rows.append(("collective", at, at, step))
            if length:
                rows.append((kind, at, at + length, step))
            at += length
        rows.append(("optimizer", at, at + 0.1, step))
        at += 0.1
        rows.append(("evaluate", at, at + 5.0, step + 1))
        at += 5.0
    return trace(rank, rows)


def costs(traces: list[RankTrace], epochs: list[tuple[int, Epoch]], *, servers: int = 0) -> dict[str, float | None]:
    windows = loop_windows(traces, epochs)
    assert windows is not None
    whole = (min(int(trace.start_ns.min()) for trace in traces), max(int(trace.end_ns.max()) for trace in traces))
    lines = time_lines(traces, whole, cuts=[instant for window in windows for instant in window])
    return loop_costs_s(lines, windows, sum(epoch.samples for _, epoch in epochs), servers=servers)


def test_costs_are_rank_seconds_per_sample_of_the_timed_epochs_alone():
    alone = costs([steps(0, forward_s=1.0, comm_s=0.0)], [(1, epoch(2, 10))])
    assert alone["forward"] == pytest.approx(0.1) and alone["optimizer"] == pytest.approx(0.01)
    assert alone["evaluate"] == 0.0 and alone["startup"] == 0.0
    both = costs([steps(r, forward_s=0.5, comm_s=0.2) for r in (0, 1)], [(1, epoch(2, 10))])
    assert both["forward"] == pytest.approx(2 * 0.5 / 10)
    assert both["comm-transfer"] == pytest.approx(2 * 0.2 / 10)


def test_the_parts_sum_to_what_the_loop_lost():
    one = costs([steps(0, forward_s=1.0, comm_s=0.0)], [(1, epoch(2, 10))])
    two = costs([steps(r, forward_s=0.5, comm_s=0.2) for r in (0, 1)], [(1, epoch(2, 10))])
    lost = lost_shares(one, two)
    efficiency = 1.2 / (2 * 0.9)
    assert sum(lost.values()) == pytest.approx(1 - efficiency)
    assert max(lost, key=lost.__getitem__) == "comm-transfer"
    assert lost["forward"] == pytest.approx(0.0)


def test_twice_the_samples_in_the_same_time_loses_nothing():
    """Weak scaling: every rank works as long as one alone did, on twice the samples in all."""
    one = costs([steps(0, forward_s=1.0, comm_s=0.0)], [(1, epoch(2, 10))])
    two = costs([steps(r, forward_s=1.0, comm_s=0.0) for r in (0, 1)], [(1, epoch(2, 20))])
    assert two["forward"] == pytest.approx(one["forward"])


def test_without_a_whole_measurement_nothing_is_claimed():
    whole = dict.fromkeys(LEDGER_KINDS, 1.0)
    assert lost_shares(None, whole) == lost_shares(whole, None) == {}
    assert lost_shares(whole, {**whole, "comm-wait": None}) == {}
    assert loop_windows([steps(0, forward_s=1.0, comm_s=0.0)], [(1, epoch(5, 10))]) is None
    assert loop_windows([steps(0, forward_s=1.0, comm_s=0.0)], []) is None


def test_the_time_of_servers_is_lost_and_named():
    """Two ranks and a server: three processes in the efficiency, of which one trains nothing."""
    one = costs([steps(0, forward_s=1.0, comm_s=0.0)], [(1, epoch(2, 10))])
    two = costs([steps(r, forward_s=0.5, comm_s=0.2) for r in (0, 1)], [(1, epoch(2, 10))], servers=1)
    assert two[SERVERS] == pytest.approx(0.9 / 10)
    lost = lost_shares(one, two)
    assert sum(lost.values()) == pytest.approx(1 - 1.2 / (3 * 0.9))
    assert lost[SERVERS] == pytest.approx(1 / 3)
    assert SERVERS not in lost_shares(one, one)
    assert lost_shares(two, two)[SERVERS] == 0.0


def test_exposed_communication_is_a_share_of_the_loop_of_the_ranks():
    two = costs([steps(r, forward_s=0.5, comm_s=0.2) for r in (0, 1)], [(1, epoch(2, 10))], servers=1)
    assert exposed_share(two) == pytest.approx(0.2 / 0.9)
    assert exposed_share({**two, "comm-wait": None}) is None
    assert exposed_share(dict.fromkeys(LEDGER_KINDS, 0.0)) is None
