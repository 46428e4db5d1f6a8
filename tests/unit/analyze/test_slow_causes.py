"""Causes by hand: ranks whose every millisecond is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.run.slow_causes import _others_median, slow_causes, slow_link
from paceline.records.counters import COUNTERS, RankCounters
from paceline.records.trace_summary import Exchange, RunTrace
from samples.trace_samples import Row, run_of, trace_of

MS = 1_000_000
STEPS = 12
USUAL = {"input-wait": 1, "forward": 10, "backward": 20, "optimizer": 2}


def run(*ranks: dict[str, object], transfer: int = 1, steps: int = STEPS) -> RunTrace:
    """Ranks that do the usual and what is given for each: milliseconds by kind, or a function of the step."""
    rows: list[list[Row]] = [[Row("group", 0, 0, -1, " ".join(map(str, range(len(ranks)))), group="0")] for _ in ranks]
    begins = [0.0] * len(ranks)
    for step in range(steps):
        lengths = [
            {
                kind: given(step) if callable(given := rank.get(kind, ms)) else given
                for kind, ms in (USUAL | rank).items()
            }
            for rank in ranks
        ]
        issues = []
        for own, begin, length in zip(rows, begins, lengths, strict=True):
            at = begin
            for kind in ("input-wait", "forward", "backward"):
                own.append(Row(kind, int(at * MS), int((at + length[kind]) * MS), step))
                at += length[kind]
            issues.append(at)
        over = max(issues) + transfer
        for number, (own, issue, length) in enumerate(zip(rows, issues, lengths, strict=True)):
            own.append(Row("collective", int(issue * MS), int(over * MS), step, "allreduce_", 1000, step, "0"))
            own.append(Row("communicate", int(issue * MS), int(over * MS), step))
            ends = over + length["optimizer"]
            own.append(Row("optimizer", int(over * MS), int(ends * MS), step))
            own.append(Row("step", int(begins[number] * MS), int(ends * MS), step))
            stalled = length.get("checkpoint", 0)
            if stalled:
                own.append(Row("checkpoint", int(ends * MS), int((ends + stalled) * MS), step))
            begins[number] = ends + stalled
    traces = [trace_of(own, rank) for rank, own in enumerate(rows)]
    return run_of(traces, len(ranks), (0, int(max(begins) * MS)))


def first(found: RunTrace) -> tuple[int | None, str]:
    cause = slow_causes(found)[0]
    return cause.rank, cause.kind


@pytest.mark.parametrize("kind", ["forward", "backward", "optimizer", "input-wait"])
@pytest.mark.parametrize(("ranks", "slow"), [(2, 0), (2, 1), (3, 1), (4, 3)])
def test_a_slow_rank_is_named_with_what_it_is_slow_in(kind, ranks, slow) -> None:
    found = slow_causes(run(*({kind: USUAL[kind] + 30} if rank == slow else {} for rank in range(ranks))))
    assert (found[0].rank, found[0].kind) == (slow, kind)
    assert found[0].lost_s == pytest.approx(0.030 * (STEPS - 1))
    assert f"Rank {slow}" in found[0].why and kind in found[0].why
    assert all(each.kind != "comm-wait" for each in found)
    assert [each.rank for each in found if each.rank is not None] == [slow], "a prompt rank was blamed"


def test_what_all_ranks_wait_for_is_not_blamed_on_one() -> None:
    starved = {"input-wait": 40}
    assert first(run(starved, starved, starved)) == (None, "input-wait")
    assert first(run({}, {}, transfer=60)) == (None, "comm-transfer")


def test_a_checkpoint_that_stalls_one_rank_is_found_though_the_others_only_wait() -> None:
    found = slow_causes(run({"checkpoint": lambda step: 300 * (step % 5 == 4)}, {}))
    assert (found[0].rank, found[0].kind) == (0, "checkpoint")
    assert found[0].lost_s == pytest.approx(0.6)


def test_two_ranks_of_four_on_one_core_are_both_named() -> None:
    shared = {"forward": 40, "backward": 80}
    named = {(each.rank, each.kind) for each in slow_causes(run({}, shared, shared, {}))[:4]}
    assert named == {(1, "backward"), (2, "backward"), (1, "forward"), (2, "forward")}


def test_steps_that_are_slow_on_all_ranks_are_compared_with_the_others() -> None:
    later = {"backward": lambda step: 120 if step >= 5 else 20}
    found = slow_causes(run(later, later))
    assert (found[0].rank, found[0].kind) == (None, "backward")
    assert found[0].lost_s == pytest.approx(0.1 * 7)
    assert "7 of 11 steps" in found[0].why


def ready(rank: int, share: float, found: RunTrace) -> RankCounters:
    """Counters of a rank that was ready to run and had no core for a share of the time, sampled at both ends."""
    at = np.array([found.started_at_ns, found.ended_at_ns])
    values = {name: np.full(2, -1) for name in COUNTERS}
    values["main_run_queue_wait_ns"] = (share * (at - at[0])).astype(np.int64)
    return RankCounters(rank=rank, at_ns=at, values=values)


def test_ranks_that_share_their_cores_throughout_are_told_by_their_counters() -> None:
    crowded = run({}, {})
    window_s = 0.034 * (STEPS - 1)
    assert first(crowded) != (None, "backward")
    (cause, *_) = slow_causes(crowded, counters=[ready(0, 0.5, crowded), ready(1, 0.7, crowded)])
    assert (cause.rank, cause.kind) == (None, "backward")
    assert cause.lost_s == pytest.approx(0.5 * window_s, rel=0.01), "what even the rank lost that waited least"
    assert "no core" in cause.why
    assert slow_causes(crowded, counters=[ready(0, 0.5, crowded)]) == slow_causes(crowded), "of rank 1 nothing is known"


def test_a_rank_that_gains_elsewhere_what_it_lost_is_not_late() -> None:
    """It does the same work in another order: nobody waits for it."""
    assert not [each for each in slow_causes(run({"forward": 20, "backward": 10}, {})) if each.rank is not None]


def test_ranks_that_differ_by_chance_alone_are_not_named() -> None:
    jitter = [np.random.default_rng(rank).normal(20, 2, STEPS) for rank in range(4)]
    found = slow_causes(run(*({"backward": lambda step, own=own: float(own[step])} for own in jitter)))
    assert all(each.lost_s < 0.02 * 0.035 * STEPS for each in found if each.rank is not None)


def test_a_transfer_shorter_than_the_error_of_the_clocks_is_not_claimed() -> None:
    slow = run({}, {}, transfer=20)
    assert first(slow) == (None, "comm-transfer")
    assert not [each for each in slow_causes(replace(slow, clock_error_ns=21 * MS)) if each.kind == "comm-transfer"]


def test_a_single_rank_is_named_itself() -> None:
    alone = run({"input-wait": 50})
    assert (slow_causes(alone)[0].rank, slow_causes(alone)[0].kind) == (0, "input-wait")


def test_without_steps_to_compare_nobody_is_suspected() -> None:
    assert slow_causes(run({"forward": 90}, {}, steps=2)) == ()
    assert slow_causes(run_of([], 2, (0, 1000))) == ()


def test_ranks_that_are_missing_leave_the_others_compared() -> None:
    whole = run({}, {"forward": 50}, {})
    assert first(replace(whole, traces=whole.traces[:2])) == (1, "forward")


def exchange(source: int, target: int, rate: float, *, estimated: bool = False) -> Exchange:
    return Exchange(source=source, target=target, payload_bytes=int(rate), seconds=1.0, messages=1, estimated=estimated)


def test_a_slow_link_is_that_of_the_rank_all_of_whose_messages_are_slow() -> None:
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    assert slow_link([exchange(a, b, 1e6 if 2 in (a, b) else 1e8) for a, b in pairs]) == 2
    assert slow_link([exchange(a, b, 1e8) for a, b in pairs]) is None
    assert slow_link([exchange(a, b, 1e6 if 2 in (a, b) else 1e8, estimated=True) for a, b in pairs]) is None
    assert slow_link([exchange(0, 1, 1e6), exchange(1, 0, 1e6)]) is None, "nothing to compare it with"


@given(st.integers(2, 7), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_median_of_the_others_leaves_oneself_out(ranks, columns, random) -> None:
    values = np.array([[random.choice((0.0, 1.0, 2.0, 5.0)) for _ in range(columns)] for _ in range(ranks)])
    expected = [np.median(np.delete(values, rank, axis=0), axis=0) for rank in range(ranks)]
    assert _others_median(values) == pytest.approx(np.array(expected))
