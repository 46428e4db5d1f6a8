"""What is made of the traces of a run: two ranks by hand, whose every figure can be checked in the head.

rank 0   forward 10 ●······· wait 20 ·······~~~ 10 ~~~
rank 1   ════════ forward 30 ═══════════════●~~~ 10 ~~~       one step of 40; all instants in microseconds
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.run.efficiencies import Work, efficiencies, explained
from paceline.analyze.run.run_summary import trace_summary
from paceline.records.rank_trace import RankTrace
from paceline.records.trace_summary import RunTrace
from samples.trace_samples import Row, trace_of

US = 1000


def step(at: int, number: int, forward: int, arrival: int, transfer: int = 10) -> list[Row]:
    """A step that begins at `at`: forward, then an all-reduce that the last rank issues at `arrival`."""
    issued, over = at + forward, arrival + transfer
    return [
        Row("step", at * US, over * US, number),
        Row("forward", at * US, issued * US, number),
        Row("communicate", issued * US, over * US, number),
        Row("collective", issued * US, over * US, number, "allreduce_", 4000, number, "0", dtype="float32"),
    ]


def run_of(*traces: RankTrace, ended_at: int, clock_error: int = 0) -> RunTrace:
    return RunTrace(
        name="by hand",
        ranks=len(traces),
        started_at_ns=0,
        ended_at_ns=ended_at * US,
        traces=traces,
        clock_error_ns=clock_error * US,
    )


def group(ranks: int) -> Row:
    return Row("group", 0, 0, -1, " ".join(map(str, range(ranks))), group="0")


@pytest.fixture
def slow_rank() -> RunTrace:
    """Rank 1 takes three times as long over its forward pass, in five steps."""
    forwards = (10, 30)
    traces = [
        trace_of([group(2), *(row for n in range(5) for row in step(40 * n, n, forward, 40 * n + 30))], rank)
        for rank, forward in enumerate(forwards)
    ]
    return run_of(*traces, ended_at=200)


def test_the_tree_of_a_slow_rank_is_load_balance_and_transfer(slow_rank) -> None:
    tree = trace_summary(slow_rank).efficiencies
    assert tree is not None
    assert (tree.load_balance, tree.serialisation, tree.transfer) == pytest.approx((20 / 30, 1.0, 30 / 40))
    assert tree.global_ == pytest.approx(20 / 40)
    assert tree.computation_scaling is None


def test_ranks_that_wait_in_turn_are_serialised() -> None:
    """Each works while the other waits: both are busy half of the time, equally, on a network that costs nothing."""

    def rows(rank: int) -> list[Row]:
        found = [group(2)]
        for n in range(3):
            for half in range(2):
                at = 20 * n + 10 * half
                busy = 10 if half == rank else 0
                found += [
                    Row("communicate", (at + busy) * US, (at + 10) * US, n),
                    Row("collective", (at + busy) * US, (at + 10) * US, n, "allreduce_", 8, 2 * n + half, "0"),
                ]
                found += [Row("forward", at * US, (at + busy) * US, n)] if busy else []
            found.append(Row("step", 20 * n * US, 20 * (n + 1) * US, n))
        return found

    tree = trace_summary(run_of(trace_of(rows(0), 0), trace_of(rows(1), 1), ended_at=60)).efficiencies
    assert tree is not None
    assert (tree.load_balance, tree.serialisation, tree.transfer) == pytest.approx((1.0, 0.5, 1.0))


def test_the_last_to_arrive_is_named_with_what_it_did(slow_rank) -> None:
    quick, slow = trace_summary(slow_rank).arrivals
    assert (quick.last, quick.late_s, quick.caused_wait_s, quick.doing) == (0, None, 0.0, {})
    assert (slow.last, slow.of) == (4, 4)  # the first step warms up
    assert slow.late_s == pytest.approx(20e-6)
    assert slow.caused_wait_s == pytest.approx(80e-6)
    assert slow.doing == {"forward": 1.0}


def test_what_is_within_the_error_of_the_clocks_is_not_called_late(slow_rank) -> None:
    assert [each.last for each in trace_summary(replace(slow_rank, clock_error_ns=20 * US)).arrivals] == [0, 0]
    assert [each.last for each in trace_summary(replace(slow_rank, clock_error_ns=19 * US)).arrivals] == [0, 4]


def test_the_critical_path_is_the_slow_ranks_work_and_the_network(slow_rank) -> None:
    path = {(part.rank, part.kind): part.share for part in trace_summary(slow_rank).path}
    assert path[1, "forward"] == pytest.approx(0.75)
    assert sum(share for (_, kind), share in path.items() if kind == "comm-transfer") == pytest.approx(0.25)
    assert (0, "forward") not in path
    assert sum(path.values()) == pytest.approx(1.0)


def test_the_message_table_tells_wait_from_transfer(slow_rank) -> None:
    (kind,) = trace_summary(slow_rank).messages
    assert (kind.operation, kind.group, kind.dtype, kind.payload_bytes, kind.count) == (
        "allreduce_",
        "0",
        "float32",
        4000,
        5,
    )
    assert (kind.wait_s, kind.transfer_s) == pytest.approx((10e-6, 10e-6))  # median of 20 and 0
    assert kind.hidden_share == 0.0
    assert kind.algorithm_bytes_per_s == pytest.approx(4000 / 10e-6)
    assert kind.bus_bytes_per_s == pytest.approx(4000 / 10e-6)  # 2 (n - 1) / n is 1 for two ranks


def test_hidden_transfer_is_told() -> None:
    """All but the last 5 of a transfer of 20 pass behind backward."""

    def rows(rank: int) -> list[Row]:
        found = [group(2)]
        for n in range(3):
            at = 100 * n
            message = Row("collective", (at + 10) * US, (at + 30) * US, n, "allreduce_", 4000, 2 * n, "0")
            last = Row("collective", (at + 25) * US, (at + 30) * US, n, "allreduce_", 400, 2 * n + 1, "0")
            found += [Row("backward", at * US, (at + 30) * US, n), message, last]
            found.append(Row("step", at * US, (at + 100) * US, n))
        return found

    table = trace_summary(run_of(trace_of(rows(0), 0), trace_of(rows(1), 1), ended_at=300)).messages
    assert {kind.payload_bytes: kind.hidden_share for kind in table} == {4000: pytest.approx(0.75), 400: 0.0}


def test_the_matrix_knows_senders_and_estimates_rings() -> None:
    sender = [
        group(3),
        Row("collective", 10, 30, 0, "send", 100, -1, "0", 2),
        Row("collective", 50, 60, 0, "allreduce_", 300, 0, "0"),
    ]
    silent = [group(3), Row("collective", 50, 60, 0, "allreduce_", 300, 0, "0")]
    taker = [
        group(3),
        Row("collective", 20, 30, 0, "recv_", 100, -1, "0", 0),
        Row("collective", 50, 60, 0, "allreduce_", 300, 0, "0"),
    ]
    cells = trace_summary(
        run_of(*(trace_of(rows, rank) for rank, rows in enumerate((sender, silent, taker))), ended_at=1)
    ).matrix
    found = {(cell.source, cell.target): (cell.payload_bytes, cell.estimated) for cell in cells}
    assert found == {(0, 2): (100, False), (0, 1): (400, True), (1, 2): (400, True), (2, 0): (400, True)}
    assert next(cell.seconds for cell in cells if not cell.estimated) == pytest.approx(10e-9)


def test_a_rank_whose_trace_is_missing_leaves_out_what_hangs_on_it(slow_rank) -> None:
    found = trace_summary(replace(slow_rank, traces=slow_rank.traces[:1]))
    assert (found.efficiencies, found.path, found.lateness) == (None, (), None)
    assert [kind.wait_s for kind in found.messages] == [None]
    assert [each.last for each in found.arrivals] == [0]


def test_completions_are_the_earliest_and_the_rest_is_late(slow_rank) -> None:
    quick, slow = slow_rank.traces
    later = replace(slow, end_ns=slow.end_ns + 3 * US * (slow.kind == slow.kind[-1]))
    found = trace_summary(replace(slow_rank, traces=(quick, later)))
    assert found.lateness is not None
    assert found.lateness.p99_s == pytest.approx(3e-6)
    assert found.messages[0].transfer_s == pytest.approx(10e-6)


def test_a_run_without_steps_has_what_needs_none(slow_rank) -> None:
    traces = tuple(replace(trace, kind=trace.kind.clip(max=9)) for trace in slow_rank.traces)
    found = trace_summary(replace(slow_rank, traces=traces))
    assert (found.steps, found.efficiencies, found.arrivals) == (0, None, ())
    assert len(found.ledgers_s) == 2 and found.messages


shares = st.integers(1, 10**9)


@given(st.lists(shares, min_size=1, max_size=4), shares, shares, st.integers(1, 100), st.integers(1, 100))
def test_the_factors_multiply_to_the_whole_and_explain_all_of_it(useful, more, even_more, samples, fewer) -> None:
    own = Work(useful_ns=tuple(useful), replayed_ns=max(useful) + more, wall_ns=max(useful) + more + even_more)
    baseline = Work(useful_ns=(sum(useful),), replayed_ns=sum(useful), wall_ns=sum(useful))
    tree = efficiencies(own, samples, (baseline, fewer))
    assert tree is not None and tree.computation_scaling is not None
    whole = (sum(useful) / fewer) * samples / (len(useful) * own.wall_ns)
    assert tree.global_ == pytest.approx(whole)
    found = explained(tree)
    assert not found or math.isclose(sum(found.values()), 1.0, rel_tol=1e-6)
