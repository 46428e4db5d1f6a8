"""One suite for every strategy: the same training on any number of ranks."""

from __future__ import annotations

import json
import os
import random

import pytest

from paceline import catalog

STRATEGIES = catalog.names("strategy")
# 640 samples in batches of 64: even shares on 1, 2 and 4 ranks. 601 in batches of 40: the last
# step has a single sample, so all ranks but one have none; 40 over 3 ranks is uneven.
EVEN = {"data": {"train_samples": 640}, "train": {"batch_global": 64, "steps": 100, "epochs": None}}
UNEVEN = {"data": {"train_samples": 601}, "train": {"batch_global": 40, "steps": 100, "epochs": None}}


@pytest.fixture(scope="module")
def reference(groups, digits_folder, tmp_path_factory):
    known = {}

    def losses(name, settings):
        if name not in known:
            folder = str(tmp_path_factory.mktemp("reference"))
            known[name] = groups[1].run("train", folder=folder, data=digits_folder, settings=settings)[0]["losses"]
        return known[name]

    return losses


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("batches", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_any_number_of_ranks_follows_one_process(
    groups, digits_folder, tmp_path, reference, size, strategy, batches, optimizer
):
    settings = {
        **batches,
        "train": {**batches["train"], "optimizer": optimizer, "lr": 0.002 if optimizer == "adam" else 0.1},
    }
    expected = reference((optimizer, str(batches)), settings)
    ranks = groups[size].run(
        "train", folder=str(tmp_path), data=digits_folder, settings={**settings, "strategy": strategy}
    )
    assert len(expected) == 100
    assert ranks[0]["losses"] == pytest.approx(expected, rel=1e-5, abs=1e-12)
    assert expected[-1] < expected[0] / 2, "nothing was learned, so nothing was compared"
    assert len({answer["weights"] for answer in ranks}) == 1, "ranks ended with different bits"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_buffers_are_equal_on_all_ranks(groups, digits_folder, tmp_path, strategy):
    """Batch-norm statistics are the only state that gradients do not carry."""
    model = tmp_path / "normed.py"
    model.write_text(
        "from torch import nn\n"
        "def build(classes):\n"
        "    return nn.Sequential(\n"
        "        nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, classes)\n"
        "    )\n"
    )
    settings = {
        "model": "normed.py:build",
        "model_file": str(model),
        "options": {},
        "strategy": strategy,
        "data": {"validation": 200},
        "train": {"epochs": 2},
    }
    ranks = groups[3].run("train", folder=str(tmp_path), data=digits_folder, settings=settings)
    assert len({answer["weights"] for answer in ranks}) == 1
    assert len({answer["curves"] for answer in ranks}) == 1, "ranks evaluated with statistics of their own"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_seed_gives_the_same_bits(groups, digits_folder, tmp_path, size, strategy):
    settings = {
        "strategy": strategy,
        "options": {"dropout": 0.3, "dense_dropout": 0.3},
        "train": {"precision": "float32", "epochs": 2},
    }
    first, again, other = (
        groups[size].run("train", folder=str(tmp_path / name), data=digits_folder, settings={**settings, "seed": seed})
        for name, seed in (("a", 5), ("b", 5), ("c", 6))
    )
    assert first[0] == again[0]
    assert first[0]["weights"] != other[0]["weights"]


FAULTS = int(os.environ.get("FAULTS", "1"))
RESUMES = [(seed, size, strategy) for seed in range(3 * FAULTS) for size in (1, 2, 3, 4) for strategy in STRATEGIES]


@pytest.mark.parametrize(("seed", "size", "strategy"), RESUMES)
def test_a_stopped_run_resumes_bit_for_bit(groups, digits_folder, tmp_path, seed, size, strategy):
    """Weights, optimizer state and curves; stopped once or twice at steps drawn from the seed."""
    chance = random.Random(1000 * seed + 10 * size + len(strategy))
    optimizer = ("adam", "sgd", "adadelta", "adamw")[chance.randrange(4)]
    settings = {
        "strategy": strategy,
        "options": {"dropout": 0.2, "dense_dropout": 0.2},
        "data": {"train_samples": 500, "validation": 100},
        "train": {
            "precision": "float32",
            "epochs": 3,
            "batch_global": 48,
            "optimizer": optimizer,
            "momentum": 0.9 if optimizer == "sgd" else 0.0,
            "checkpoint_every": chance.choice([1, 2, 3, 5, 7]),
        },
    }
    whole = groups[size].run("train", folder=str(tmp_path / "whole"), data=digits_folder, settings=settings)
    for stop_at in sorted(chance.sample(range(8, 33), 2)):
        groups[size].run(
            "train", folder=str(tmp_path / "stopped"), data=digits_folder, settings=settings, stop_at=stop_at
        )
    resumed = groups[size].run("train", folder=str(tmp_path / "stopped"), data=digits_folder, settings=settings)
    for before, after in zip(whole, resumed, strict=True):
        assert after["resumed_from"] is not None
        for what in ("weights", "state", "curves"):
            assert after[what] == before[what], what


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
