"""Two phases, cached features and synchronised batch-norm: the same training on any number of ranks, and resumed."""

from __future__ import annotations

import math
import random
import shutil
import statistics
from pathlib import Path
from typing import Any

import gate
import pytest

# A base with batch-norm, and a head: as with real weights, but small.
TRANSFER = """
from torch import nn
from paceline.training.models.transfer import Transfer
def build(classes, dropout=0.0, base_dropout=0.0):
    base = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3),
        nn.Dropout(base_dropout),
    )
    return Transfer(base, nn.Sequential(nn.Dropout(dropout), nn.Linear(64, classes)))
"""
# The same without anything of ours but the two methods.
OWN = """
from torch import nn
class Own(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.last = nn.Linear(32, classes)
        self.frozen = False
    def forward(self, inputs):
        return self.last(self.body(inputs))
    def freeze(self):
        self.frozen = True
        self.body.requires_grad_(False)
    def unfreeze(self):
        self.frozen = False
        self.body.requires_grad_(True)
    def train(self, mode=True):
        super().train(mode)
        self.body.train(mode and not self.frozen)
        return self
def build(classes):
    return Own(classes)
"""
NORMED = """
from torch import nn
def build(classes, momentum=0.1):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8, momentum=momentum), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16, affine=False), nn.ReLU(), nn.Flatten(), nn.Linear(64, classes),
    )
"""
PHASES = {
    "data": {"train_samples": 500, "validation": 100},
    "train": {"batch_global": 48, "epochs": 2, "lr": 0.01},
    "finetune": {"epochs": 2, "lr": 0.003, "optimizer": "sgd", "schedule": "cosine"},
}


def run(ranks, data: str, folder: Path, text: str, settings: dict[str, Any], *, stop_at: int = 0, **options: Any):
    folder.mkdir(exist_ok=True)
    settings = gate.with_model(folder, text, settings, **options)
    return ranks.run("train", folder=str(folder), data=data, settings=settings, stop_at=stop_at)


def changed(settings: dict[str, Any], **sections: Any) -> dict[str, Any]:
    merged = {name: {**settings.get(name, {}), **value} for name, value in sections.items() if isinstance(value, dict)}
    return {**settings, **sections, **merged}


@pytest.fixture(scope="module")
def alone(groups, digits_folder, tmp_path_factory) -> dict[str, Any]:
    """One process that trains both phases."""
    return run(groups[1], digits_folder, tmp_path_factory.mktemp("alone"), TRANSFER, PHASES)[0]


def test_a_second_phase_follows_the_first(alone):
    assert [(name, steps) for name, steps, _, _ in alone["phases"]] == [("train", 22), ("finetune", 22)]
    expected = [(1, 11, "train"), (2, 22, "train"), (3, 33, "finetune"), (4, 44, "finetune")]
    assert alone["epochs"] == expected
    assert len(alone["losses"]) == 44
    assert alone["phases"][1][2] < alone["phases"][0][2], "the test's loss fell, because the base learned, too"
    assert alone["tests_timed"] == [True, True]
    base, head = 1 * 8 * 9 + 8 + 2 * 8 + 8 * 16 * 9 + 16, 64 * 10 + 10
    assert alone["trainable"] == [head, base + head], "the head, then everything"
    assert alone["last_rate"] == pytest.approx(0.003 * (1 + math.cos(math.pi * 21 / 22)) / 2), "its own schedule"


@pytest.mark.parametrize("text", [TRANSFER, OWN], ids=["transfer", "own"])
def test_batchnorm_of_the_base_keeps_its_statistics_unless_told_otherwise(groups, digits_folder, tmp_path, text):
    """With validation, after which the model goes back into training mode."""
    statistics = []
    for batchnorm, epochs in (("frozen", 1), ("frozen", 2), ("train", 2)):
        settings = changed(PHASES, finetune={"epochs": epochs, "batchnorm": batchnorm})
        state = run(groups[1], digits_folder, tmp_path / f"{batchnorm}-{epochs}", text, settings)[0]["state"]
        statistics.append(next(value for name, value in state.items() if name.endswith("running_mean")))
    assert statistics[0] == statistics[1] != statistics[2]


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("strategy", gate.SYNCHRONOUS)
def test_any_number_of_ranks_follows_one_process_through_both_phases(
    groups, digits_folder, tmp_path, alone, size, strategy
):
    answers = run(groups[size], digits_folder, tmp_path, TRANSFER, {**PHASES, "strategy": strategy})
    assert len({answer["weights"] for answer in answers}) == 1
    assert answers[0]["losses"] == pytest.approx(alone["losses"], rel=1e-6)
    for own, expected in zip(answers[0]["phases"], alone["phases"], strict=True):
        assert own[:2] == expected[:2]
        assert own[2:] == pytest.approx(expected[2:], rel=1e-6)


@pytest.mark.parametrize("cached", [False, True], ids=["images", "features"])
def test_fewer_test_samples_are_the_same_ones_on_any_number_of_ranks(groups, digits_folder, tmp_path, alone, cached):
    """Five of them on one rank and on three: the training is that with all of them, and the test another."""
    settings = changed(PHASES, data={"test_samples": 5}, train={"cached_features": cached})
    found = []
    for size in (1, 3):  # each with a cache of its own, so that ranks have no features but their own
        data = str(shutil.copytree(digits_folder, tmp_path / f"cache-{size}" / "digits"))
        found.append(run(groups[size], data, tmp_path / f"{size}-ranks", TRANSFER, settings)[0])
        assert found[-1]["losses"] == pytest.approx(alone["losses"], rel=1e-6)
    for own, other, of_all in zip(found[0]["phases"], found[1]["phases"], alone["phases"], strict=True):
        assert own[2:] == pytest.approx(other[2:], rel=1e-6)
        assert own[2] != pytest.approx(of_all[2], rel=1e-3) and own[3] * 5 == pytest.approx(round(own[3] * 5))


RESUMED = [
    *((TRANSFER, size, strategy) for size, strategy in ((1, "ddp"), (2, "flat"), (4, "ddp"), (3, "local-sgd"))),
    *((OWN, size, strategy) for size, strategy in ((2, "ddp"), (3, "ddp-powersgd"))),
]


@pytest.mark.parametrize(("text", "size", "strategy"), RESUMED, ids=lambda value: str(value).strip().split()[-1])
def test_a_stopped_run_resumes_bit_for_bit_in_either_phase_and_between_them(
    groups, digits_folder, tmp_path, text, size, strategy
):
    chance = random.Random(f"{size} {strategy}")
    train = {"precision": "float32", "checkpoint_every": chance.choice([3, 5, 7])}
    settings = changed(PHASES, train=train, strategy=strategy)
    text = text.replace("dropout=0.0", "dropout=0.2")
    whole = run(groups[size], digits_folder, tmp_path / "whole", text, settings)
    # The last step of a phase leaves a checkpoint: stopped one step later, a run goes on from between the two.
    for stop_at in (chance.randrange(8, 22), 23, chance.randrange(30, 44)):
        run(groups[size], digits_folder, tmp_path / "stopped", text, settings, stop_at=stop_at)
    resumed = run(groups[size], digits_folder, tmp_path / "stopped", text, settings)
    for before, after in zip(whole, resumed, strict=True):
        assert after["resumed_from"] > 22
        for what in ("weights", "state", "curves", "phases", "epochs"):
            assert after[what] == before[what], what


@pytest.fixture
def own_cache(digits_folder, tmp_path) -> str:
    """The data set in a cache that holds no features yet."""
    return str(shutil.copytree(digits_folder, tmp_path / "cache" / "digits"))


@pytest.mark.parametrize(("size", "strategy"), [(1, "ddp"), (3, "ddp"), (2, "flat")])
def test_training_on_cached_features_is_training_with_the_frozen_base(groups, own_cache, tmp_path, size, strategy):
    settings = changed(PHASES, train={"precision": "float32"}, strategy=strategy)
    text = TRANSFER.replace("dropout=0.0", "dropout=0.2")
    cached = changed(settings, train={"cached_features": True})
    whole = run(groups[size], own_cache, tmp_path / "images", text, settings)
    first = run(groups[size], own_cache, tmp_path / "first", text, cached)
    again = run(groups[size], own_cache, tmp_path / "again", text, cached)
    assert first[0]["losses"] == pytest.approx(whole[0]["losses"], rel=1e-5)
    for own, expected in zip(first[0]["phases"], whole[0]["phases"], strict=True):
        assert own == (*expected[:2], pytest.approx(expected[2], rel=1e-5), expected[3])
    assert [whole[0]["features_found"], first[0]["features_found"], again[0]["features_found"]] == [None, False, True]
    for one, other in zip(first, again, strict=True):
        assert one["weights"] == other["weights"] == first[0]["weights"]
    assert sorted(path.name[:9] for path in Path(own_cache).parent.iterdir()) == ["digits", "features-"]


def test_a_run_on_cached_features_resumes_bit_for_bit(groups, own_cache, tmp_path):
    settings = changed(PHASES, train={"precision": "float32", "checkpoint_every": 4, "cached_features": True})
    whole = run(groups[2], own_cache, tmp_path / "whole", TRANSFER, settings)
    for stop_at in (9, 22, 30):
        run(groups[2], own_cache, tmp_path / "stopped", TRANSFER, settings, stop_at=stop_at)
    resumed = run(groups[2], own_cache, tmp_path / "stopped", TRANSFER, settings)
    assert resumed[0]["resumed_from"] == 28
    assert resumed[0]["features_found"], "in the second phase it is no longer looked for, but was"
    for what in ("weights", "state", "curves", "phases", "epochs"):
        assert resumed[0][what] == whole[0][what], what


@pytest.mark.parametrize("batches", [gate.EVEN, gate.UNEVEN], ids=["even", "uneven"])
def test_synchronised_batchnorm_normalises_as_one_process_does(groups, digits_folder, tmp_path, batches):
    """Uneven: the last step of an epoch has one sample, so that all ranks but one have none."""
    settings = changed(batches, train={"steps": 48, "lr": 0.003, "sync_batchnorm": True})
    plain = run(groups[1], digits_folder, tmp_path, NORMED, settings)[0]
    assert plain["losses"][-1] < plain["losses"][0] / 2, "nothing was learned, so nothing was compared"
    for size, strategy in ((2, "ddp"), (3, "flat"), (4, "ddp")):
        answers = run(groups[size], digits_folder, tmp_path / f"{size}", NORMED, {**settings, "strategy": strategy})
        assert answers[0]["losses"] == pytest.approx(plain["losses"], rel=1e-6), (size, strategy)
        # Evaluation goes by the running statistics.
        assert answers[0]["phases"][0][2:] == pytest.approx(plain["phases"][0][2:], rel=1e-6)
        assert len({answer["weights"] for answer in answers}) == 1
    mixed = changed(settings, train={"precision": "bfloat16"})
    answers = run(groups[2], digits_folder, tmp_path / "mixed", NORMED, {**mixed, "strategy": "ddp"})
    assert len({answer["weights"] for answer in answers}) == 1
    assert statistics.fmean(answers[0]["losses"]) == pytest.approx(statistics.fmean(plain["losses"]), rel=0.05)
    alone = changed(settings, train={"sync_batchnorm": False})
    if batches is gate.EVEN:  # else ranks that have none normalise a sample that does not count
        apart = run(groups[2], digits_folder, tmp_path / "apart", NORMED, alone)[0]
        assert apart["losses"] != pytest.approx(plain["losses"], rel=1e-3), "it makes no difference here"


def test_a_run_with_synchronised_batchnorm_resumes_bit_for_bit(groups, digits_folder, tmp_path):
    train = {"precision": "float32", "steps": 40, "checkpoint_every": 6, "sync_batchnorm": True}
    settings = changed(gate.UNEVEN, train=train)
    whole = run(groups[4], digits_folder, tmp_path / "whole", NORMED, settings)
    run(groups[4], digits_folder, tmp_path / "stopped", NORMED, settings, stop_at=21)
    resumed = run(groups[4], digits_folder, tmp_path / "stopped", NORMED, settings)
    assert resumed[0]["resumed_from"] == 18
    for what in ("weights", "state", "curves"):
        assert resumed[0][what] == whole[0][what], what


def test_a_step_of_one_sample_that_cannot_be_normalised_is_refused_on_every_rank(groups, digits_folder, tmp_path):
    settings = {"data": {"train_samples": 65}, "train": {"sync_batchnorm": True}}
    with pytest.raises(AssertionError, match="a single value per channel over all ranks"):
        run(groups[2], digits_folder, tmp_path, gate.NORMED, settings)
    fine = run(groups[2], digits_folder, tmp_path, gate.NORMED, changed(settings, data={"train_samples": 64}))
    assert len(fine[0]["losses"]) == 1


@pytest.mark.parametrize("model", ["cnn-small", "mlp"])
def test_ranks_do_not_change_the_accuracy_at_the_same_global_batch(groups, digits_folder, tmp_path, model):
    """Averaging gradients over ranks loses nothing: 1, 2 and 4 of them answer alike, but for one of 300 at most."""
    options = {"dropout": 0.0, "dense_dropout": 0.0} if model == "cnn-small" else {"neurons": 32}
    train = {"precision": "float32", "epochs": 4, "batch_global": 128, "lr": 0.003}
    settings = {"model": model, "options": options, "data": {"train_samples": 1200}, "train": train}
    accuracies = {
        (size, strategy): groups[size].run(
            "train", folder=str(tmp_path / f"{size}-{strategy}"), data=digits_folder, settings=each
        )[0]["phases"][0][3]
        for size, strategy in ((1, "ddp"), (2, "ddp"), (2, "flat"), (4, "ddp"), (4, "flat"))
        for each in ({**settings, "strategy": strategy},)
    }
    one = accuracies[1, "ddp"]
    assert one > 0.85, "too little was learned for a difference to show"
    for configuration, accuracy in accuracies.items():
        assert abs(accuracy - one) <= 1.01 / 300, configuration
