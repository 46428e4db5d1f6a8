"""What the traces of the median run show: of ranks that train, in the timed epochs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from paceline.analyze.points.median_run import median_run, traffic
from paceline.records.finding import Note
from paceline.records.rank_trace import RankTrace
from samples.trace_samples import Row, allreduce, trace_of, traces_of

SECOND = 1_000_000_000


def looped(rank: int, *, payload: int = 1000, idle: bool = False) -> RankTrace:
    """Two epochs of two steps of one second each; an evaluation that communicates too follows each."""
    rows: list[tuple[str, float, float, int, int]] = []
    at = 100.0
    for step in range(4):
        if not idle:
            rows += [
                ("input-wait", at, at + 0.1, step, -1),
                ("forward", at + 0.1, at + 0.6, step, -1),
                ("communicate", at + 0.6, at + 0.9, step, -1),
                ("collective", at + 0.6, 0, step, payload),
                ("optimizer", at + 0.9, at + 1.0, step, -1),
            ]
        at += 1.0
        if step % 2:
            rows += [("evaluate", at, at + 1.0, step + 1, -1), ("collective", at + 0.5, 0, step + 1, 7)]
            at += 1.0
    sequence = itertools.count()
    return trace_of(
        [
            allreduce(round(start * SECOND), next(sequence), bytes=size, step=step)
            if kind == "collective"
            else Row(kind, round(start * SECOND), round(end * SECOND), step)
            for kind, start, end, step, size in rows
        ],
        rank,
    )


@pytest.fixture
def looped_run(point, run, epoch):
    epochs = tuple(replace(epoch(n, 2.0, samples=100), step=2 * n) for n in (1, 2))
    return run(point(2), epochs=epochs, wall_s=8.0)


def test_payload_is_counted_per_step_in_the_timed_epochs_alone(looped_run) -> None:
    found = median_run([looped_run], traces_of([looped(0), looped(1, payload=3000)]))
    assert (found.messages, found.message_bytes) == (1.0, 2000.0)
    assert found.exposed_share == pytest.approx(0.3)
    assert found.gap is None


def test_servers_and_a_coordinator_are_not_ranks_that_train(looped_run) -> None:
    """Their traces have the next numbers; the ledger, the payload and the gaps are those of the ranks."""
    ranks = [looped(0), looped(1)]
    alone = median_run([looped_run], traces_of(ranks))
    served = median_run([looped_run], traces_of([*ranks, looped(2, idle=True), looped(3, idle=True)]))
    assert served == alone and len(served.ranks_s) == 2


def test_a_server_does_not_stand_in_for_a_lost_rank(looped_run) -> None:
    found = median_run([looped_run], traces_of([looped(0), looped(2)]))
    assert found.gap == Note(code="spans-of-some-ranks", values={"run": 1, "ranks": 2, "found": 1, "problems": ()})
    assert (found.message_bytes, found.exposed_share, found.costs_s) == (None, None, None)


def test_servers_cost_the_loop_their_time(looped_run) -> None:
    found = median_run([looped_run], traces_of([looped(0), looped(1)]), servers=2)
    assert found.costs_s and found.costs_s["servers"] == pytest.approx(2 * 2.0 / 100)
    assert found.exposed_share == pytest.approx(0.3)


def test_no_steps_no_payload() -> None:
    assert traffic([looped(0)], [(0, SECOND)], 0) == (None, None)
    assert traffic([], [(0, SECOND)], 2) == (None, None)
    assert traffic([looped(0)], [(0, SECOND)], 2) == (0.0, 0.0)
