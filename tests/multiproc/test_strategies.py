"""One suite for every strategy that needs no MPI and no server: the same training on any number of ranks."""

from __future__ import annotations

import json
import os
import random

import gate
import pytest

FAULTS = int(os.environ.get("FAULTS", "1"))
SIZES = [1, 2, 3, 4]
# One rank exchanges nothing, whatever the strategy.
EVERY = [(1, gate.SPAWNED[0]), *((size, strategy) for size in SIZES[1:] for strategy in gate.SPAWNED)]


@pytest.fixture(scope="module")
def one_process(groups, digits_folder: str, tmp_path_factory: pytest.TempPathFactory) -> gate.Losses:
    return gate.one_process_losses(groups[1], digits_folder, tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strategy", gate.SYNCHRONOUS)
@pytest.mark.parametrize("batches", [gate.EVEN, gate.UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_any_number_of_ranks_follows_one_process(
    groups, digits_folder, tmp_path, one_process, size, strategy, batches, optimizer
):
    settings = {**gate.learning(optimizer, batches), "strategy": strategy}
    gate.follows_one_process(groups[size], digits_folder, tmp_path, one_process(optimizer, batches), settings)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("batches", [gate.EVEN, gate.UNEVEN], ids=["even", "uneven"])
def test_local_sgd_that_averages_every_step_follows_one_process(
    groups, digits_folder, tmp_path, one_process, size, batches
):
    """Plain SGD is linear in the gradient: a mean of steps is a step along the mean."""
    settings = {**gate.learning("sgd", batches), "strategy": "local-sgd", "strategy_options": {"average_every": 1}}
    gate.follows_one_process(groups[size], digits_folder, tmp_path, one_process("sgd", batches), settings)


@pytest.mark.parametrize("strategy", gate.SPAWNED)
def test_buffers_are_equal_on_all_ranks(groups, digits_folder, tmp_path, strategy):
    gate.shares_buffers(groups[3], digits_folder, tmp_path, strategy)


@pytest.mark.parametrize(("size", "strategy"), EVERY)
def test_the_same_seed_gives_the_same_bits(groups, digits_folder, tmp_path, size, strategy):
    gate.repeats_itself(groups[size], digits_folder, tmp_path, strategy)


@pytest.mark.parametrize("seed", range(2 * FAULTS))
@pytest.mark.parametrize(("size", "strategy"), EVERY)
def test_a_stopped_run_resumes_bit_for_bit(groups, digits_folder, tmp_path, seed, size, strategy):
    chance = random.Random(f"{seed} {size} {strategy}")
    precision = ("float32", "bfloat16")[seed % 2]
    gate.resumes(groups[size], digits_folder, tmp_path, strategy, chance, precision)


@pytest.mark.parametrize("size", [1, 3])
def test_a_checkpoint_at_the_end_of_an_epoch_keeps_the_epoch(groups, digits_folder, tmp_path, size):
    """Ten steps an epoch and a checkpoint every ten: what resumes there has the finished epoch's line."""
    settings = {
        "data": {"train_samples": 480, "validation": 100},
        "train": {"precision": "float32", "epochs": 3, "batch_global": 48, "checkpoint_every": 10},
    }
    whole = groups[size].run("train", folder=str(tmp_path / "whole"), data=digits_folder, settings=settings)
    groups[size].run("train", folder=str(tmp_path / "s"), data=digits_folder, settings=settings, stop_at=13)
    resumed = groups[size].run("train", folder=str(tmp_path / "s"), data=digits_folder, settings=settings)
    assert resumed[0]["resumed_from"] == 10
    assert len(json.loads(resumed[0]["curves"])) == 3
    assert {k: v for k, v in resumed[0].items() if k in ("weights", "state", "curves")} == {
        k: v for k, v in whole[0].items() if k in ("weights", "state", "curves")
    }
    again = groups[size].run("train", folder=str(tmp_path / "s"), data=digits_folder, settings=settings)
    assert again[0]["resumed_from"] == 30, "the last step leaves a checkpoint: the trained model"
    assert again[0]["weights"] == whole[0]["weights"]


def test_without_settled_buckets_ddp_does_not_resume_bit_for_bit(groups, digits_folder, tmp_path):
    """The safeguard in `Ddp.warm_up` is needed: taken away, four ranks differ."""
    settings = {
        "strategy": "ddp",
        "data": {"train_samples": 500},
        "train": {"precision": "float32", "epochs": 2, "batch_global": 50, "checkpoint_every": 5},
    }
    groups[4].run("set_ddp_warm_up", on=False)
    try:
        whole = groups[4].run("train", folder=str(tmp_path / "whole"), data=digits_folder, settings=settings)
        groups[4].run("train", folder=str(tmp_path / "s"), data=digits_folder, settings=settings, stop_at=7)
        resumed = groups[4].run("train", folder=str(tmp_path / "s"), data=digits_folder, settings=settings)
    finally:
        groups[4].run("set_ddp_warm_up", on=True)
    assert whole[0]["weights"] != resumed[0]["weights"]


def test_powersgd_hears_again_of_a_layer_that_had_no_gradient_in_the_first_step(groups, digits_folder, tmp_path):
    """With the last layer at zero, no gradient reaches the ones before it until that has moved."""
    zero = gate.SMALL.replace("return nn.Sequential(", "made = nn.Sequential(").rstrip()
    zero += "\n    nn.init.zeros_(made[-1].weight)\n    return made\n"
    weights = []
    for steps in (1, 4):
        train = {"precision": "float32", "steps": steps, "epochs": None}
        settings = gate.with_model(tmp_path, zero, {"strategy": "ddp-powersgd", "train": train})
        answers = groups[2].run("train", folder=str(tmp_path / str(steps)), data=digits_folder, settings=settings)
        weights.append(answers[0]["state"]["model.6.weight"])
    assert weights[0] != weights[1]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [1, 2, 3, 257, 300])
def test_evaluation_is_exact_for_any_size(groups, digits_folder, tmp_path, size, count):
    settings = {"options": {}}
    one = groups[1].run("evaluate", folder=str(tmp_path), data=digits_folder, settings=settings, count=count)[0]
    for loss, accuracy in groups[size].run(
        "evaluate", folder=str(tmp_path), data=digits_folder, settings=settings, count=count
    ):
        assert loss == pytest.approx(one[0], rel=1e-12)
        assert accuracy == one[1]
