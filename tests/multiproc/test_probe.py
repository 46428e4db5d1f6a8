"""The probe sees what the strategies imply, and changes nothing."""

from __future__ import annotations

import math

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


def gradient_bytes_of_steps(answer: dict) -> list[int]:
    """What a rank sent in all-reduces of each step; those after the last step are not gradients."""
    sent = [0] * answer["steps"]
    for name, bytes_, _, step in answer["rows"]:
        if name == "allreduce_" and 0 <= step < answer["steps"]:
            sent[step] += bytes_
    return sent


def test_fp16_sends_half_the_bytes(groups, digits_folder, tmp_path):
    for answer in groups[2].run(
        "seen_collectives", folder=str(tmp_path), data=digits_folder, settings={**SETTINGS, "strategy": "ddp-fp16"}
    ):
        assert gradient_bytes_of_steps(answer) == [answer["grad_bytes"] // 2] * 10


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_powersgd_sends_the_bytes_that_its_rank_implies(groups, digits_folder, tmp_path, rank):
    settings = {**SETTINGS, "strategy": "ddp-powersgd", "strategy_options": {"compression_rank": rank}}
    for answer in groups[2].run("seen_collectives", folder=str(tmp_path), data=digits_folder, settings=settings):
        numbers = 0
        for rows, *rest in answer["shapes"]:
            columns = math.prod(rest)
            thin = rank * (rows + columns)
            numbers += thin if 2 * thin < rows * columns else rows * columns
        assert gradient_bytes_of_steps(answer) == [4 * numbers] * 10
        assert 4 * numbers < answer["grad_bytes"] / 5, "little was compressed, so little was tested"


@pytest.mark.parametrize(("optimizer", "copies"), [("sgd", 1), ("adam", 3)])
def test_local_sgd_sends_parameters_and_optimizer_state_every_few_steps(
    groups, digits_folder, tmp_path, optimizer, copies
):
    """Ten steps, averaged after the fourth, the eighth, and when the epoch ends: then `step` counts eleven."""
    settings = {
        **SETTINGS,
        "strategy": "local-sgd",
        "strategy_options": {"average_every": 4},
        "train": {**SETTINGS["train"], "optimizer": optimizer},
    }
    for answer in groups[2].run("seen_collectives", folder=str(tmp_path), data=digits_folder, settings=settings):
        large = [(step, bytes_) for name, bytes_, _, step in answer["rows"] if name == "allreduce_" and bytes_ > 1000]
        assert large == [(step, copies * answer["grad_bytes"]) for step in (3, 7, 10)]


@pytest.mark.parametrize("strategy", ["ddp", "ddp-powersgd"])
def test_sequence_numbers_agree_between_ranks(groups, digits_folder, tmp_path, strategy):
    ranks = groups[3].run(
        "seen_collectives", folder=str(tmp_path), data=digits_folder, settings={**SETTINGS, "strategy": strategy}
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
        gathers_objects = ["allgather_", "gather_"]  # first how long each is
        expected += ["gather_", *gathers_objects, "scatter_", "monitored_barrier_", "allreduce_"]
        assert answer["seen"] == expected


def test_threads_that_end_messages_stay_known_to_the_interpreter(groups):
    """Made and torn down at every message, its states of them were a good part of what the probe cost."""
    for strange in groups[2].run("strange_threads"):
        assert 1 <= strange <= 3, "gloo has two, and there is the caller"
