"""Chakra execution traces: nodes, what they carry and what they wait for; every byte is read back by the schema."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from checks.export_checks import COLL, COMP, METADATA, RECV, SEND, Reader, decoded
from paceline.analyze.views.graph import graphs
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.trace_summary import RunTrace
from paceline.reporting.export.chakra import COLLECTIVES, text, varint, write_chakra
from samples.export_samples import STARTED_AT, US, sample_run
from samples.trace_samples import Row, trace_of


def exported(run: RunTrace) -> list[list[dict[str, Any]]]:
    found = []
    for graph in graphs(run):
        file = io.BytesIO()
        write_chakra(run, graph, file)
        metadata, nodes = decoded(file.getvalue())
        assert metadata["version"] == "0.0.4"
        found.append(nodes)
    return found


def test_computation_and_messages_become_nodes() -> None:
    for rank, nodes in enumerate(exported(sample_run(steps=3))):
        assert [node.get("id", 0) for node in nodes] == list(range(len(nodes)))
        of_type = {kind: [node for node in nodes if node["type"] == kind] for kind in (COMP, COLL, SEND, RECV)}
        assert sum(map(len, of_type.values())) == len(nodes)
        assert len(of_type[COLL]) == 6 and len(of_type[SEND if rank == 0 else RECV]) == 3
        forward = [node for node in of_type[COMP] if node["name"] == "forward"]
        assert [(node["start_time_micros"], node["duration_micros"]) for node in forward] == [
            (10 + 100 * n, 20) for n in range(3)
        ]
        assert {node["name"] for node in of_type[COMP]} <= set(LEDGER_KINDS)
        assert all(node["is_cpu_op"] == 1 for node in of_type[COMP])
        starts = [node.get("start_time_micros", 0) for node in nodes]
        assert starts == sorted(starts)


def test_a_collective_says_its_type_size_and_group() -> None:
    nodes = exported(sample_run(steps=1))[0]
    first, second = (node for node in nodes if node["type"] == COLL)
    assert (first["name"], first["comm_type"], first["comm_size"]) == ("allreduce_", 0, 4000)
    assert (first["pg_name"], first["pg_ranks"], first["dtype"]) == ("0", {"values": [0, 1]}, "float32")
    assert (first["sequence"], second["sequence"], first["wait_micros"]) == (0, 1, 5)
    assert first["is_cpu_op"] == 0  # else a simulator takes it for computation
    assert (first["start_time_micros"], first["duration_micros"]) == (45, 20)


def test_both_ends_of_a_message_agree() -> None:
    earlier = Row("load", STARTED_AT + 2 * US, STARTED_AT + 3 * US, -1)  # rank 1 has more nodes before
    ranks = exported(sample_run(steps=2, extra=[earlier]))
    sends = [node for node in ranks[0] if node["type"] == SEND]
    receives = [node for node in ranks[1] if node["type"] == RECV]
    for node in (*sends, *receives):
        assert (node["comm_src"], node["comm_dst"], node["comm_size"]) == (0, 1, 64)
    assert [node["comm_tag"] for node in sends] == [node["comm_tag"] for node in receives]
    assert len({node["comm_tag"] for node in sends}) == 2


def test_every_node_depends_on_earlier_ones_only_and_the_program_is_one_chain() -> None:
    for nodes in exported(sample_run(steps=3)):
        for number, node in enumerate(nodes):
            assert all(other < number for other in (*node.get("data_deps", ()), *node.get("ctrl_deps", ())))
            assert set(node.get("ctrl_deps", ())) <= set(node.get("data_deps", ()))
        computation = [number for number, node in enumerate(nodes) if node["type"] == COMP]
        assert [nodes[number].get("ctrl_deps", []) for number in computation] == [
            [],
            *([number] for number in computation[:-1]),
        ]
        waited_for = {other for node in nodes for other in node.get("data_deps", ()) if nodes[other]["type"] != COMP}
        assert waited_for == {number for number, node in enumerate(nodes) if node["type"] != COMP}


def test_an_operation_of_another_kind_is_metadata_and_a_root_is_named() -> None:
    extra = [
        Row("collective", STARTED_AT + 401 * US, STARTED_AT + 402 * US, 3, "never_heard_of", 7, 8, "0"),
        Row("collective", STARTED_AT + 403 * US, STARTED_AT + 404 * US, 3, "broadcast_", 7, 9, "0", peer=1),
    ]
    nodes = {node["name"]: node for node in exported(sample_run(extra=extra))[1]}
    assert (nodes["never_heard_of"]["type"], nodes["never_heard_of"]["comm_size"]) == (METADATA, 7)
    assert (nodes["broadcast_"]["comm_type"], nodes["broadcast_"]["root"]) == (5, 1)


def test_gpus_and_hosts_are_told() -> None:
    run = replace(sample_run(steps=1), device="cuda")
    file = io.BytesIO()
    write_chakra(run, graphs(run)[1], file)
    metadata, nodes = decoded(file.getvalue())
    about = {
        attribute["name"]: attribute.get("string_val", attribute.get("int64_val")) for attribute in metadata["attr"]
    }
    assert (about["rank"], about["ranks"], about["host"]) == (1, 2, "n2")
    assert all(node["is_cpu_op"] == 0 for node in nodes)


def test_a_rank_without_spans_is_a_file_with_metadata_alone() -> None:
    run = RunTrace(name="", ranks=1, started_at_ns=0, ended_at_ns=0, traces=(trace_of([]),))
    assert exported(run) == [[]]


def test_every_watched_collective_has_a_type() -> None:
    from paceline.analyze.run.messages import TOGETHER

    assert set(COLLECTIVES) >= set(TOGETHER)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (-1, "ffffffffffffffffff01"),
        (2**63, "80808080808080808001"),
    ],
)
def test_numbers_on_the_wire(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded
    assert Reader(varint(value)).varint() == value % 2**64


def test_text_with_half_a_character_is_still_text() -> None:
    assert text(2, "a\ud800é").decode() == "\x12\x04a?é"
