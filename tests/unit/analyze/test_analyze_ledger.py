from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np

from paceline.analyze.run.ledger import ledger_ns, ledgers, mean_ledger, time_lines
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS, RankTrace, Words


def charged(traces, window=(0, 100), ranks=None) -> list[dict[str, int | None]]:
    """Ledgers in nanoseconds without the kinds that are 0."""
    found = [ledger_ns(line) for line in time_lines(traces, window, ranks=ranks)]
    for ledger in found:
        assert tuple(ledger) == LEDGER_KINDS
        assert sum(ns for ns in ledger.values() if ns is not None) == window[1] - window[0]
    return [{kind: ns for kind, ns in ledger.items() if ns != 0} for ledger in found]


def test_a_step_is_divided_by_its_spans(trace) -> None:
    spans = [("startup", 10, 20), ("load", 20, 25), ("forward", 30, 50), ("backward", 50, 80), ("optimizer", 80, 90)]
    assert charged([trace(spans)]) == [
        {"startup": 20, "load": 5, "forward": 20, "backward": 30, "optimizer": 10, "other": 15}
    ]


def test_time_belongs_to_the_innermost_span(trace) -> None:
    spans = [("evaluate", 0, 100), ("input-wait", 10, 20), ("forward", 20, 60), ("checkpoint", 30, 40)]
    assert charged([trace(spans)]) == [{"evaluate": 50, "input-wait": 10, "forward": 30, "checkpoint": 10}]


def test_an_overlap_belongs_to_the_span_that_started_later(trace) -> None:
    assert charged([trace([("forward", 0, 60), ("backward", 40, 100)])]) == [{"forward": 40, "backward": 60}]


def test_of_spans_that_start_together_the_shorter_is_inside(trace) -> None:
    spans = [("evaluate", 0, 100), ("forward", 0, 40), ("load", 0, 70)]
    for order in (spans, spans[::-1]):
        assert charged([trace(order)]) == [{"forward": 40, "load": 30, "evaluate": 30}]


def test_spans_are_cut_at_the_window(trace) -> None:
    assert charged([trace([("load", 0, 50), ("forward", 50, 500), ("optimizer", 600, 700)])], (40, 90)) == [
        {"load": 10, "forward": 40}
    ]


def test_a_span_without_end_lasts_as_long_as_what_is_around_it(trace) -> None:
    assert charged([trace([("evaluate", 0, 70), ("forward", 20, -1)])]) == [
        {"evaluate": 20, "forward": 50, "other": 30}
    ]
    assert charged([trace([("load", 0, 10), ("forward", 20, -1)])]) == [{"load": 10, "forward": 80, "other": 10}]


def test_a_span_that_ends_before_it_starts_has_no_length(trace) -> None:
    assert charged([trace([("load", 0, 10), ("forward", 40, 20)])]) == [{"load": 10, "other": 90}]


def test_without_spans_nothing_is_known(trace) -> None:
    assert charged([trace([])]) == [{"other": 100}]
    assert charged([trace([]), trace([], 1)]) == [{"comm-wait": None, "comm-transfer": None, "other": 100}] * 2
    assert ledgers([], started_at_ns=0, ended_at_ns=1) == ()


def test_a_window_of_no_length_charges_nothing(trace) -> None:
    assert charged([trace([("forward", 0, 10)])], (5, 5)) == [{}]


def test_the_tail_of_backward_after_its_last_bucket_is_communication(trace) -> None:
    first = trace([("backward", 0, 100), ("collective", 20, 0), ("collective", 50, 1)])
    second = trace([("backward", 0, 100), ("collective", 30, 0), ("collective", 70, 1)], 1)
    assert charged([first, second]) == [
        {"backward": 50, "comm-wait": 20, "comm-transfer": 30},
        {"backward": 70, "comm-transfer": 30},
    ]


def test_a_rank_that_arrives_after_the_others_gave_up_is_waited_for_to_the_end(trace) -> None:
    first = trace([("backward", 0, 60), ("collective", 50, 0)])
    second = trace([("backward", 0, 100), ("collective", 90, 0)], 1)
    assert charged([first, second])[0] == {"backward": 50, "comm-wait": 10, "other": 40}


def test_a_blocked_stretch_is_divided_at_each_issue(trace) -> None:
    first = trace([("communicate", 0, 100), ("collective", 10, 0), ("collective", 40, 1), ("collective", 80, 2)])
    second = trace([("communicate", 0, 100), ("collective", 5, 0), ("collective", 60, 1), ("collective", 95, 2)], 1)
    # rank 0: 30 of transfer after the first, 20 of wait after the second, 15 after the third
    assert charged([first, second]) == [
        {"comm-wait": 20 + 15, "comm-transfer": 10 + 30 + 20 + 5},
        {"comm-wait": 5, "comm-transfer": 95},
    ]


def test_a_stretch_that_issues_nothing_waits_for_what_was_issued_before_it(trace) -> None:
    first = trace([("forward", 0, 20), ("collective", 10, 0), ("communicate", 20, 60)])
    second = trace([("forward", 0, 40), ("collective", 30, 0), ("communicate", 40, 60)], 1)
    assert charged([first, second], (0, 60)) == [
        {"forward": 20, "comm-wait": 10, "comm-transfer": 30},
        {"forward": 40, "comm-transfer": 20},
    ]


def test_packing_before_the_own_issue_is_not_waiting(trace) -> None:
    ranks = [trace([("communicate", 0, 100), ("collective", 30, 0)], rank) for rank in (0, 1)]
    assert charged(ranks) == [{"comm-transfer": 100}] * 2


def test_groups_number_their_collectives_apart(trace) -> None:
    def with_group(spans: RankTrace, *names: str) -> RankTrace:
        return replace(spans, group=Words.of((None, *names)))

    spans = [("communicate", 0, 100), ("collective", 0, 7), ("collective", 50, 7)]
    late = [("communicate", 0, 100), ("collective", 20, 7), ("collective", 50, 7)]
    found = charged([with_group(trace(spans), "a", "b"), with_group(trace(late, 1), "a", "b")])
    assert found[0] == {"comm-wait": 20, "comm-transfer": 80}
    assert charged([with_group(trace(spans), "a", "b"), with_group(trace(late, 1), "a", "c")])[0] == {
        "comm-wait": None,
        "comm-transfer": None,
        "other": 100,
    }


def test_what_another_rank_does_not_show_is_not_guessed(trace) -> None:
    whole = [("forward", 0, 30), ("communicate", 30, 90), ("collective", 30, 0), ("collective", 60, 1)]
    broken = trace([("forward", 0, 30), ("communicate", 30, 60), ("collective", 40, 0)], 1, truncated=True)
    assert charged([trace(whole), broken]) == [
        {"forward": 30, "comm-wait": None, "comm-transfer": None, "other": 70},
        {"forward": 30, "comm-transfer": 30, "other": 40},
    ]


def test_a_collective_without_a_number_cannot_be_found_on_other_ranks(trace) -> None:
    ranks = [trace([("communicate", 0, 100), ("collective", 10, -1)], rank) for rank in (0, 1)]
    assert charged(ranks) == [{"comm-wait": None, "comm-transfer": None, "other": 100}] * 2


def test_a_number_seen_twice_on_one_rank_does_not_stand_for_another_rank(trace) -> None:
    twice = trace([("communicate", 0, 100), ("collective", 10, 0), ("collective", 20, 0)])
    other = trace([("forward", 0, 100), ("collective", 5, 1)], 1)
    assert charged([twice, other])[0] == {"comm-wait": None, "comm-transfer": None, "other": 100}


def test_of_collectives_issued_together_the_one_gathered_last_is_waited_for(trace) -> None:
    together = [("collective", 10, 0), ("collective", 10, 1)]
    other = trace([("communicate", 0, 100), ("collective", 60, 0), ("collective", 90, 1)], 1)
    for order in (together, together[::-1]):
        first = trace([("communicate", 0, 100), *order])
        assert charged([first, other])[0] == {"comm-wait": 80, "comm-transfer": 20}


def test_a_missing_rank_leaves_the_wait_unknown(trace) -> None:
    spans = trace([("forward", 0, 50), ("communicate", 50, 100), ("collective", 60, 0)])
    assert charged([spans], ranks=2) == [{"forward": 50, "comm-wait": None, "comm-transfer": None, "other": 50}]


def test_a_rank_of_several_without_a_collective_was_not_watched(trace) -> None:
    ranks = [trace([("backward", 0, 100)], rank) for rank in (0, 1)]
    assert charged(ranks) == [{"backward": 100, "comm-wait": None, "comm-transfer": None}] * 2


def test_a_single_rank_communicates_with_nobody(trace) -> None:
    spans = [("backward", 0, 60), ("collective", 30, 0), ("communicate", 60, 100), ("collective", 70, 1)]
    found = ledgers([trace(spans)], started_at_ns=0, ended_at_ns=100)[0]
    assert (found["comm-wait"], found["comm-transfer"]) == (0.0, 0.0)
    assert charged([trace(spans)]) == [{"backward": 60, "other": 40}]


def with_peers(spans: RankTrace, *peers: int) -> RankTrace:
    """Spans of which the messages, in order, are between this rank and another process."""
    sent = spans.bytes >= 0
    peer = np.full(len(spans), -1)
    peer[sent] = peers
    return replace(spans, peer=peer, sequence=np.where(sent, -1, spans.sequence))


def test_a_message_with_a_server_has_no_last_rank_to_wait_for(trace) -> None:
    spans = [("forward", 0, 20), ("communicate", 20, 90), ("collective", 30, 0), ("collective", 60, 0)]
    late = [("forward", 0, 70), ("communicate", 70, 100), ("collective", 70, 0), ("collective", 75, 0)]
    found = charged([with_peers(trace(spans), 2, 3), with_peers(trace(late, 1), 2, 3)], ranks=2)
    assert found == [{"forward": 20, "comm-transfer": 70, "other": 10}, {"forward": 70, "comm-transfer": 30}]


def test_a_message_with_another_rank_is_not_divided(trace) -> None:
    spans = [("communicate", 0, 100), ("collective", 30, 0)]
    found = charged([with_peers(trace(spans), 1), with_peers(trace(spans, 1), 0)], ranks=2)
    assert found == [{"comm-wait": None, "comm-transfer": None, "other": 100}] * 2


def test_a_single_rank_communicates_with_its_server(trace) -> None:
    spans = [("communicate", 0, 40), ("collective", 10, 0)]
    assert charged([with_peers(trace(spans), 1)]) == [{"comm-transfer": 40, "other": 60}]


def test_the_mean_moves_what_one_rank_does_not_know_to_other() -> None:
    base: dict[str, float | None] = dict.fromkeys(LEDGER_KINDS, 0.0)
    known = base | {"forward": 4.0, "comm-wait": 2.0, "comm-transfer": 4.0}
    unknown = base | {"forward": 6.0, "comm-wait": None, "comm-transfer": None, "other": 4.0}
    assert mean_ledger([known, unknown]) == base | {
        "forward": 5.0,
        "comm-wait": None,
        "comm-transfer": None,
        "other": 5.0,
    }
    assert mean_ledger([known, known]) == known


def test_a_million_spans_fit_and_sum() -> None:
    steps, ranks = 50_000, 2
    step_ns = 1_000_000
    rng = np.random.default_rng(0)
    begins = np.arange(steps, dtype=np.int64) * step_ns
    parts = [("input-wait", 0, 10), ("forward", 10, 300), ("backward", 300, 800), ("communicate", 800, 830)]
    parts += [("optimizer", 830, 900), ("evaluate", 900, 990)]

    def one_rank(rank: int) -> RankTrace:
        kinds, starts, ends, sequence = [], [], [], []
        for kind, start, end in parts:
            kinds.append(np.full(steps, SPAN_KINDS.index(kind), dtype=np.int8))
            starts.append(begins + start * 1000)
            ends.append(begins + end * 1000)
            sequence.append(np.full(steps, -1, dtype=np.int32))
        for bucket in range(4):
            kinds.append(np.full(steps, SPAN_KINDS.index("collective"), dtype=np.int8))
            starts.append(begins + (400 + 100 * bucket) * 1000 + rng.integers(0, 90_000, steps))
            ends.append(np.full(steps, -1, dtype=np.int64))
            sequence.append(np.arange(steps, dtype=np.int32) * 4 + bucket)
        n = 10 * steps
        names = Words(np.repeat(np.array([-1, 0], np.int32), (6 * steps, 4 * steps)), ("0",))
        nothing = np.full(n, -1, dtype=np.int64)
        return RankTrace(
            rank=rank,
            kind=np.concatenate(kinds),
            start_ns=np.concatenate(starts),
            end_ns=np.concatenate(ends),
            step=np.zeros(n, dtype=np.int32),
            operation=names,
            bytes=np.zeros(n, dtype=np.int64),
            sequence=np.concatenate(sequence),
            group=names,
            peer=nothing,
            begun_ns=nothing,
            dtype=Words(nothing, ()),
        )

    traces = [one_rank(rank) for rank in range(ranks)]
    tracemalloc.start()
    try:
        found = [ledger_ns(line) for line in time_lines(traces, (0, steps * step_ns))]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 500_000_000
    for ledger in found:
        assert sum(ns for ns in ledger.values() if ns is not None) == steps * step_ns
        assert ledger["forward"] == steps * 290_000
    last = [np.sort(spans.start_ns[spans.sequence % 4 == 3]) for spans in traces]
    tail_wait = int((np.maximum(*last) - last[0]).sum())
    assert found[0]["comm-wait"] == tail_wait
