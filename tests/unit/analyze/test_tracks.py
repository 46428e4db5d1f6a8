"""Tracks: what a viewer draws nests, whatever the trace looks like, and arrows lead from the first rank to the last."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.views.tracks import tracks
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.trace_summary import RunTrace
from paceline.records.track import FLOW_FIRST, FLOW_LAST, Track
from samples.export_samples import STARTED_AT, US, any_rows, sample_run
from samples.trace_samples import Row, trace_of

COLLECTIVE = SPAN_KINDS.index("collective")


def nests(track: Track) -> bool:
    """Whether the spans of every lane lie one in the other or one behind the other."""
    for lane in np.unique(track.lane):
        rows = np.flatnonzero(track.lane == lane)
        around: list[int] = []
        for start, end in zip(track.trace.start_ns[rows].tolist(), track.drawn_end_ns[rows].tolist(), strict=True):
            while around and around[-1] <= start:
                around.pop()
            if end < start or (around and end > around[-1]):
                return False
            around.append(end)
    return True


def test_messages_that_overlap_take_lanes_of_their_own() -> None:
    for track in tracks(sample_run()):
        messages = track.trace.kind == COLLECTIVE
        assert set(track.lane[~messages]) == {0}
        assert set(track.lane[messages]) == {1, 2}
        assert nests(track)
        assert track.trace.start_ns.min() == US  # since the start of the run


def test_arrows_follow_the_order_of_arrival() -> None:
    first, second = tracks(sample_run(steps=1))
    for left, right in zip(*(np.flatnonzero(track.message >= 0) for track in (first, second)), strict=True):
        assert first.message[left] == second.message[right]
        assert (first.flow[left], second.flow[right]) == (FLOW_FIRST, FLOW_LAST)
        assert first.flow_at_ns[left] <= second.flow_at_ns[right]
    waits = (first.gathered_ns - first.trace.start_ns)[first.message >= 0]
    assert waits.tolist() == [5 * US, 5 * US, 5 * US]


def test_a_receiver_that_came_first_is_still_the_end_of_the_arrow() -> None:
    send = Row("collective", 50, 60, 0, "send", 8, -1, "0", peer=1)
    receive = Row("collective", 10, 65, 0, "recv_", 8, -1, "0", peer=0)
    run = RunTrace(
        name="", ranks=2, started_at_ns=0, ended_at_ns=100, traces=(trace_of([send], 0), trace_of([receive], 1))
    )
    source, target = tracks(run)
    assert (source.flow.tolist(), target.flow.tolist()) == ([FLOW_FIRST], [FLOW_LAST])
    assert (source.flow_at_ns.tolist(), target.flow_at_ns.tolist()) == ([50], [50])


def test_a_message_that_one_rank_shows_alone_has_no_arrow() -> None:
    alone = Row("collective", STARTED_AT + 380 * US, -1, 3, "allreduce_", 8, 99, "0")
    track = tracks(sample_run(extra=[alone]))[1]
    row = np.flatnonzero(track.trace.sequence == 99)
    assert (track.flow[row], track.gathered_ns[row], track.completed_ns[row]) == (0, -1, -1)
    assert track.drawn_end_ns[row] == track.trace.start_ns[row]


def test_a_span_without_an_end_lasts_to_that_around_it() -> None:
    rows = [Row("step", 0, 50), Row("forward", 10), Row("evaluate", 60)]
    run = RunTrace(name="", ranks=1, started_at_ns=0, ended_at_ns=90, traces=(trace_of(rows),))
    (track,) = tracks(run)
    assert track.drawn_end_ns.tolist() == [50, 50, 90]
    assert track.trace.end_ns.tolist() == [50, -1, -1]  # what was recorded stays as it is


def test_no_traces_make_no_tracks() -> None:
    assert tracks(RunTrace(name="", ranks=2, started_at_ns=0, ended_at_ns=0, traces=())) == ()
    (empty,) = tracks(RunTrace(name="", ranks=1, started_at_ns=0, ended_at_ns=0, traces=(trace_of([]),)))
    assert len(empty.lane) == 0


@given(st.lists(any_rows(), min_size=1, max_size=3))
def test_whatever_the_traces_hold_can_be_drawn(ranks: list[list[Row]]) -> None:
    traces = tuple(trace_of(rows, rank) for rank, rows in enumerate(ranks))
    found = tracks(RunTrace(name="", ranks=len(ranks), started_at_ns=0, ended_at_ns=40, traces=traces))
    for track in found:
        assert nests(track)
        assert sorted(track.trace.start_ns.tolist()) == track.trace.start_ns.tolist()
    ends = [(message, flow) for track in found for message, flow in zip(track.message, track.flow, strict=True) if flow]
    for message in {number for number, _ in ends}:
        flows = [flow for number, flow in ends if number == message]
        assert (flows.count(FLOW_FIRST), flows.count(FLOW_LAST)) == (1, 1)
