"""The graph of a run: computation and messages in order, each after what it had to wait for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.run.ledger import ledger_ns, time_lines
from paceline.analyze.views.graph import graphs
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.trace_summary import RunTrace
from paceline.records.track import RankGraph
from samples.export_samples import US, any_rows, sample_run
from samples.trace_samples import Row, trace_of


def named(graph: RankGraph) -> list[str]:
    """What each node is."""
    return [
        LEDGER_KINDS[kind] if kind >= 0 else graph.operation[node] or ""
        for node, kind in enumerate(graph.kind.tolist())
    ]


def test_hidden_messages_hold_nothing_up_and_exposed_ones_do() -> None:
    graph = graphs(sample_run(steps=1))[0]
    names = named(graph)
    assert (
        names[names.index("forward") :]
        == [
            "forward",
            "backward",
            "allreduce_",
            "backward",
            "allreduce_",
            "other",  # of the step: between backward and the message
            "send",
            "optimizer",
            "other",
        ]
        or names
    )
    first, second = (node for node, name in enumerate(names) if name == "allreduce_")
    send, optimizer = names.index("send"), names.index("optimizer")
    backward = [node for node, name in enumerate(names) if name == "backward"]
    edges = dict(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True))
    # The rank goes on computing after it issued the first; both are over when it goes on after backward.
    assert (graph.after[first], graph.after[second]) == (backward[0], backward[1])
    after_backward = edges[first]
    assert edges[second] == after_backward and second < after_backward < send
    assert graph.kind[after_backward] == LEDGER_KINDS.index("other")
    assert edges[send] == optimizer
    assert graph.start_ns[second] == 50 * US and graph.length_ns[second] == 20 * US
    assert graph.wait_ns[[first, second, send]].tolist() == [5 * US, 5 * US, 5 * US]


def test_a_message_that_is_issued_after_a_wait_comes_after_what_was_waited_for() -> None:
    """Four all-reduces, each waited for before the next is sent; but for the last two, which are sent at once."""

    def rows() -> list[Row]:
        found = [Row("communicate", 10, 100)]
        spans = ((10, 20), (20, 40), (41, 60), (41, 70))
        return found + [
            Row("collective", start, end, 0, "allreduce_", 8, number, "0") for number, (start, end) in enumerate(spans)
        ]

    run = RunTrace(
        name="", ranks=2, started_at_ns=0, ended_at_ns=110, traces=tuple(trace_of(rows(), r) for r in (0, 1))
    )
    graph = graphs(run)[0]
    nodes = [node for node, name in enumerate(named(graph)) if name == "allreduce_"]
    edges = dict(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True))
    assert edges[nodes[0]] == nodes[1] and edges[nodes[1]] == nodes[2]
    assert edges[nodes[2]] == edges[nodes[3]] == len(graph.kind) - 1


def two_ranks(rows: list[Row], ended_at: int) -> RankGraph:
    """The graph of the first of two ranks that do the same."""
    traces = tuple(trace_of(rows, rank) for rank in range(2))
    return graphs(RunTrace(name="", ranks=2, started_at_ns=0, ended_at_ns=ended_at, traces=traces))[0]


def test_a_message_that_is_over_in_the_middle_of_computation_is_waited_for_by_nothing_there() -> None:
    spans = ((10, 30), (50, 90), (80, 100))
    rows = [Row("backward", 0, 100), Row("optimizer", 100, 120)]
    rows += [Row("collective", start, end, 0, "allreduce_", 8, n, "0") for n, (start, end) in enumerate(spans)]
    graph = two_ranks(rows, 120)
    assert named(graph) == ["backward", "allreduce_", "backward", "allreduce_", "backward", "allreduce_", "optimizer"]
    assert (graph.edge_from.tolist(), graph.edge_to.tolist()) == ([1, 3, 5], [6, 6, 6])


def test_a_message_of_no_length_does_not_wait_for_itself() -> None:
    graph = two_ranks([Row("communicate", 10, 30), Row("collective", 20, 20, 0, "allreduce_", 8, 0, "0")], 40)
    assert is_ordered(graph)
    assert graph.kind[graph.edge_to].tolist() == [LEDGER_KINDS.index("other")]


def is_ordered(graph: RankGraph) -> bool:
    """Whether nodes stand in the order of their starts, and none depends on itself or on a later one."""
    nodes = np.arange(len(graph.kind))
    return bool(
        np.all(np.diff(graph.start_ns) >= 0)
        and np.all(graph.after < nodes)
        and np.all(graph.edge_from < graph.edge_to)
        and np.all(np.diff(graph.edge_to) >= 0)
        and np.all(graph.kind[graph.edge_from] < 0)
        and np.all(graph.kind[graph.after[graph.after >= 0]] >= 0)
    )


@given(st.lists(any_rows(), min_size=1, max_size=3))
def test_a_graph_is_in_order_and_computation_adds_up_to_the_ledger(ranks: list[list[Row]]) -> None:
    traces = tuple(trace_of(rows, rank) for rank, rows in enumerate(ranks))
    run = RunTrace(name="", ranks=len(ranks), started_at_ns=0, ended_at_ns=40, traces=traces)
    ledgers = [ledger_ns(line) for line in time_lines(traces, (0, 40))]
    for graph, ledger, trace in zip(graphs(run), ledgers, traces, strict=True):
        assert is_ordered(graph)
        assert (graph.kind < 0).sum() == (trace.kind == 9).sum()
        if ledger["comm-wait"] is None:
            continue
        for number, kind in enumerate(LEDGER_KINDS):
            if kind not in ("comm-wait", "comm-transfer"):
                assert graph.length_ns[graph.kind == number].sum() == ledger[kind]
