"""Pictures of runs: lanes without gaps, messages in rows, and few enough parts that still add up to the ledger."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.analyze.run.ledger import ledger_ns, time_lines
from paceline.analyze.views.picture import MOST_RANKS, picture
from paceline.records.rank_trace import LEDGER_KINDS, RankTrace, Words
from paceline.records.run_picture import NOT_SEEN, PICTURE_KINDS, Lane, Picture
from paceline.records.trace_summary import RunTrace
from samples.picture_samples import SPANS_PER_STEP, busy_run
from samples.trace_samples import Row, allreduce, run_of, trace_of

Part = tuple[int, int, str]


def parts(drawn: Picture, rank: int = 0, row: int = -1) -> list[Part]:
    """(start, end, kind) of every part of a lane."""
    lane = lane_of(drawn, rank, row)
    starts = drawn.start[lane.first : lane.first + lane.count].tolist()
    kinds = [PICTURE_KINDS[code] for code in drawn.kind[lane.first : lane.first + lane.count]]
    return list(zip(starts, [*starts[1:], drawn.window], kinds, strict=True))


def lane_of(drawn: Picture, rank: int, row: int) -> Lane:
    return next(lane for lane in drawn.lanes if (lane.rank, lane.row) == (rank, row))


def refs(drawn: Picture, rank: int = 0, row: int = -1) -> list[int]:
    lane = lane_of(drawn, rank, row)
    return drawn.ref[lane.first : lane.first + lane.count].tolist()


def spent(drawn: Picture, rank: int) -> dict[str, int]:
    """Ticks of a rank's main thread by kind of the ledger."""
    sums = Counter({kind: 0 for kind in LEDGER_KINDS})
    for start, end, kind in parts(drawn, rank):
        sums[kind] += end - start
    return dict(sums)


@pytest.fixture
def two_ranks() -> RunTrace:
    """Rank 1 comes 20 later to an all-reduce that takes 10; all instants in nanoseconds."""
    traces = [
        trace_of(
            [
                Row("group", 100, 100, -1, "0 1", group="0"),
                Row("step", 100, 160, 7),
                Row("forward", 100, issued, 7),
                Row("communicate", issued, 150, 7),
                replace(allreduce(issued, 0, 150, step=7), dtype="float32"),
                Row("optimizer", 150, 160, 7),
            ],
            rank,
        )
        for rank, issued in enumerate((120, 140))
    ]
    return run_of(traces, 2, (90, 170))


def test_a_lane_shows_what_the_ledger_charges(two_ranks: RunTrace) -> None:
    drawn = picture(two_ranks)
    assert drawn.tick_ns == 1 and drawn.window == 80
    assert parts(drawn) == [
        (0, 10, "startup"),
        (10, 30, "forward"),
        (30, 50, "comm-wait"),
        (50, 60, "comm-transfer"),
        (60, 70, "optimizer"),
        (70, 80, "other"),
    ]
    assert [kind for _, _, kind in parts(drawn, 1)] == ["startup", "forward", "comm-transfer", "optimizer", "other"]
    lane = lane_of(drawn, 0, -1)
    assert drawn.step[lane.first : lane.first + lane.count].tolist() == [-1, 7, 7, 7, 7, 7]
    assert (drawn.steps_at.tolist(), drawn.steps.tolist(), drawn.loop) == ([10], [7], (10, 70))


def test_a_message_waits_and_then_moves(two_ranks: RunTrace) -> None:
    drawn = picture(two_ranks)
    assert parts(drawn, 0, 0) == [(0, 30, "none"), (30, 50, "comm-wait"), (50, 60, "comm-transfer"), (60, 80, "none")]
    assert parts(drawn, 1, 0) == [(0, 50, "none"), (50, 60, "comm-transfer"), (60, 80, "none")]
    number = refs(drawn, 0, 0)[1]
    assert refs(drawn, 0, 0) == [-1, number, number, -1]
    # The exposed parts of the main thread say which message they belong to.
    assert refs(drawn)[2:4] == [number, number] and refs(drawn)[1] == -1
    instants = (drawn.issued[number], drawn.gathered[number], drawn.completed[number])
    assert instants == (30, 50, 60)
    other = refs(drawn, 1, 0)[1]
    assert other != number and drawn.issued[other] == drawn.gathered[other] == 50
    label = drawn.labels[drawn.label[number]]
    assert (label.operation, label.payload_bytes, label.dtype, label.group, label.peer) == (
        "allreduce_",
        1000,
        "float32",
        "0",
        None,
    )
    assert len(drawn.labels) == 1


def test_overlapping_messages_have_rows_of_their_own() -> None:
    """A burst of three with two under way at once, then one alone, which is back in the first row."""
    rows = [
        allreduce(start, number, end) for number, (start, end) in enumerate(((10, 30), (20, 40), (35, 50), (60, 70)))
    ]
    drawn = picture(run_of([trace_of([*rows, Row("backward", 5, 80)])], 1, (0, 100)))
    shown = {row: [(a, b) for a, b, kind in parts(drawn, 0, row) if kind != "none"] for row in (0, 1)}
    assert shown == {0: [(10, 30), (35, 50), (60, 70)], 1: [(20, 40)]}
    assert {lane.row for lane in drawn.lanes} == {-1, 0, 1}


def test_more_messages_than_rows_are_shown_from_where_there_is_room() -> None:
    rows = [allreduce(10 + number, number, 50 + number) for number in range(5)]
    drawn = picture(run_of([trace_of(rows)], 1, (0, 100)))
    shown = [(a, b) for row in range(3) for a, b, kind in parts(drawn, 0, row) if kind != "none"]
    assert sorted(shown) == [(10, 50), (11, 51), (12, 52), (50, 53), (51, 54)]


def test_what_was_not_seen_is_not_drawn_as_seen() -> None:
    """A message without an end, one that only one rank shows, and one that is over before the last rank comes."""
    broadcast = Row("collective", 40, 50, 0, "broadcast_", 8, 1, "0", peer=0)
    traces = [
        trace_of([allreduce(10, 0), broadcast, allreduce(80, 7, 90)], 0),
        trace_of([allreduce(20, 0), replace(broadcast, start=60, end=70)], 1),
    ]
    drawn = picture(run_of(traces, 2, (0, 100)))
    shown = [part for part in parts(drawn, 0, 0) if part[2] != "none"]
    assert shown == [(10, 20, "message"), (40, 50, "message"), (80, 90, "message")]
    first, second, third = (number for number in dict.fromkeys(refs(drawn, 0, 0)) if number >= 0)
    assert drawn.completed[first] == NOT_SEEN and drawn.gathered[first] == 20
    assert drawn.gathered[second] == 60 and drawn.completed[second] == 50
    assert drawn.gathered[third] == NOT_SEEN and drawn.completed[third] == 90


def test_a_long_run_has_coarser_ticks() -> None:
    day_ns = 86_400 * 10**9
    drawn = picture(run_of([trace_of([Row("forward", day_ns // 2, day_ns)])], 1, (0, day_ns)))
    assert drawn.tick_ns * drawn.window <= day_ns < drawn.tick_ns * (drawn.window + 1) and drawn.window < NOT_SEEN
    assert drawn.start.dtype == np.dtype("<u4")
    (_, half, _), (_, end, _) = parts(drawn)
    assert half * drawn.tick_ns == pytest.approx(day_ns / 2, abs=drawn.tick_ns) and end == drawn.window


def test_nothing_to_draw_is_an_empty_picture() -> None:
    assert picture(run_of([], 2, (0, 100))).lanes == ()
    assert picture(run_of([trace_of([Row("forward", 5, 6)])], 1, (5, 5))).lanes == ()
    alone = picture(run_of([trace_of([])], 1, (0, 100)))
    assert parts(alone) == [(0, 100, "other")]


def test_servers_and_ranks_beyond_the_first_have_no_lane() -> None:
    rows = [Row("forward", 0, 10)]
    traces = [trace_of(rows, rank) for rank in range(MOST_RANKS + 6)]
    assert {lane.rank for lane in picture(run_of(traces, MOST_RANKS + 5, (0, 20))).lanes} == set(range(MOST_RANKS))
    assert {lane.rank for lane in picture(run_of(traces[:3], 2, (0, 20))).lanes} == {0, 1}


def test_few_parts_are_left_as_they_are() -> None:
    drawn = picture(busy_run(2, 50))
    assert drawn.merged_below_ns == 0 and drawn.in_full == () and drawn.shown == drawn.parts
    assert not len(drawn.bundles) and drawn.ref.min() >= -1


@pytest.mark.parametrize("limit", [2_000, 9_000])
def test_many_parts_become_bundles_and_stretches_in_full(limit: int) -> None:
    run = busy_run(3, 1000)
    whole, drawn = picture(run), picture(run, limit)
    assert whole.parts == drawn.parts > limit >= len(drawn.start)
    assert 0.3 * limit < drawn.shown < limit
    for rank in range(3):
        assert spent(drawn, rank) == spent(whole, rank)
    # In a stretch that is in full the parts are those of the whole picture.
    for begin, end in drawn.in_full[3:5]:
        inside = [part for part in parts(whole, 1) if begin <= part[0] and part[1] <= end]
        assert inside and set(inside) <= set(parts(drawn, 1))
    merged = drawn.ref < -1
    assert set((-2 - drawn.ref[merged]).tolist()) == set(range(len(drawn.bundles)))
    assert drawn.bundles.sum() + drawn.shown == drawn.parts


def test_long_parts_stay_as_they_are_among_bundles() -> None:
    run = busy_run(2, 1000)
    slow = trace_of([Row("checkpoint", run.ended_at_ns + 10, run.ended_at_ns + 60_000_000)], 0)
    joined = replace(
        run,
        ended_at_ns=run.ended_at_ns + 70_000_000,
        traces=(_appended(run.traces[0], slow), run.traces[1]),
    )
    drawn = picture(joined, 2_000)
    checkpoint = [(a, b) for a, b, kind in parts(drawn) if kind == "checkpoint"]
    assert drawn.merged_below_ns and checkpoint == [(run.ended_at_ns + 10, run.ended_at_ns + 60_000_000)]


def _appended(first: RankTrace, last: RankTrace) -> RankTrace:
    """A trace with another behind it that has no words."""
    columns: dict[str, Any] = {}
    for name in RankTrace.__dataclass_fields__:
        mine, other = getattr(first, name), getattr(last, name)
        if isinstance(mine, Words):
            columns[name] = Words(np.append(mine.codes, other.codes), mine.words)
        elif isinstance(mine, np.ndarray):
            columns[name] = np.append(mine, other)
    return replace(first, **columns)


spans = st.lists(
    st.tuples(
        st.sampled_from(["startup", "load", "forward", "backward", "communicate", "optimizer", "collective", "step"]),
        st.integers(-20, 120),
        st.none() | st.integers(-10, 40),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(ranks=st.lists(spans, min_size=1, max_size=3), limit=st.sampled_from([1, 12, 100_000]))
def test_a_picture_adds_up_to_the_ledger_whatever_the_trace(
    ranks: list[list[tuple[str, int, int | None]]], limit: int
) -> None:
    """Lanes begin at 0, go forward, and hold each kind of the ledger for exactly as long as it is charged.

    Spans without an end, with one before their start, and outside the run's window are among them.
    """
    traces = []
    for rank, rows in enumerate(ranks):
        numbers = iter(range(len(rows)))
        made = [
            allreduce(start, next(numbers), -1 if length is None else start + length)
            if kind == "collective"
            else Row(kind, start, -1 if length is None else start + length)
            for kind, start, length in rows
        ]
        traces.append(trace_of(made, rank))
    run = run_of(traces, len(traces), (0, 100))
    drawn = picture(run, limit)
    charged = [ledger_ns(line) for line in time_lines(traces, (0, 100))]
    for rank, ledger in enumerate(charged):
        assert spent(drawn, rank) == {kind: ns or 0 for kind, ns in ledger.items()}
    for lane in drawn.lanes:
        starts = drawn.start[lane.first : lane.first + lane.count].astype(np.int64)
        assert starts[0] == 0 and np.all(np.diff(starts) > 0) and starts[-1] < 100
    assert drawn.ref.max(initial=-1) < len(drawn.issued)
    assert set(drawn.label.tolist()) <= set(range(len(drawn.labels)))


def test_a_million_spans_are_drawn_in_seconds() -> None:
    """Of CPU time: 2 s on an idle core."""
    run = busy_run(4, 1_000_000 // (4 * SPANS_PER_STEP))
    before = time.process_time()
    drawn = picture(run)
    assert time.process_time() - before < 10
    assert len(drawn.start) <= 100_000 and drawn.parts > 1_000_000
