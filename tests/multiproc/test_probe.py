"""The probe sees what the strategies imply, and changes nothing."""

from __future__ import annotations

import pytest

SETTINGS = {"data": {"train_samples": 400}, "train": {"batch_global": 40, "epochs": 1, "precision": "float32"}}


@pytest.mark.parametrize("size", [2, 3])
def test_flat_sends_every_gradient_byte_once_a_step(groups, digits_folder, tmp_path, size):
    for answer in groups[size].run(
        "seen_collectives", folder=str(tmp_path), data=digits_folder, settings={**SETTINGS, "strategy": "flat"}
    ):
        in_steps = [bytes_ for name, bytes_, _, step in answer["rows"] if name == "allreduce_" and 0 <= step < 10]
        assert in_steps == [answer["grad_bytes"]] * answer["steps"]


@pytest.mark.parametrize("size", [2, 3])
def test_ddp_sends_every_gradient_byte_once_a_step_in_buckets(groups, digits_folder, tmp_path, size):
    for answer in groups[size].run(
        "seen_collectives", folder=str(tmp_path), data=digits_folder, settings={**SETTINGS, "strategy": "ddp"}
    ):
        for step in range(answer["steps"]):
            sent = [bytes_ for name, bytes_, _, at in answer["rows"] if name == "allreduce_" and at == step]
            assert sum(sent) == answer["grad_bytes"], step


def test_sequence_numbers_agree_between_ranks(groups, digits_folder, tmp_path):
    ranks = groups[3].run(
        "seen_collectives", folder=str(tmp_path), data=digits_folder, settings={**SETTINGS, "strategy": "ddp"}
    )
    rows = [answer["rows"] for answer in ranks]
    assert rows[0] == rows[1] == rows[2]
    assert [row[2] for row in rows[0]] == list(range(len(rows[0])))


@pytest.mark.parametrize("size", [2, 3])
def test_results_are_the_same_with_and_without(groups, tmp_path, size):
    for rank, answer in enumerate(groups[size].run("every_operation", folder=str(tmp_path))):
        assert answer["equal"]
        expected = ["allreduce_"] * 3 + ["broadcast_", "reduce_", "allgather_", "_allgather_base_", "allreduce_"]
        expected += {0: ["send"], 1: ["recv_"]}.get(rank, []) + ["barrier"]
        assert answer["seen"] == expected
