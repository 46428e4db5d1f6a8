"""Rates, optimizers, parts and averages on real ranks: any number of them learns the same, and resumes bit for bit."""

from __future__ import annotations

import functools
import math
import random
import statistics
from typing import Any

import gate
import numpy as np
import pytest

# Every one of them changes each step, so that a rank that did it differently would show.
RATES = {"lr_rule": "linear", "lr_batch": 8, "warmup_epochs": 2.0}
RECIPES: dict[str, dict[str, Any]] = {
    "lars": {"optimizer": "lars", "lr": 10.0, "momentum": 0.9, "schedule": "cosine"},
    "lamb": {"optimizer": "lamb", "lr": 0.03, "schedule": "one-cycle"},
    "sgd": {"optimizer": "sgd", "lr": 0.01, "momentum": 0.9, **RATES, "schedule": "cosine", "clip_norm": 0.5},
    "adam": {
        "optimizer": "adam",
        "lr": 0.002,
        "lr_rule": "sqrt",
        "lr_batch": 8,
        "warmup_epochs": 1.0,
        "schedule": "step",
        "step_epochs": 4.0,
        "step_factor": 0.3,
        "label_smoothing": 0.05,
        "accumulate": 3,
    },
}


def learning(name: str) -> dict[str, Any]:
    return {**gate.UNEVEN, "train": {**gate.UNEVEN["train"], **RECIPES[name]}}


@pytest.fixture(scope="module")
def alone(groups, digits_folder: str, tmp_path_factory: pytest.TempPathFactory):
    """The losses of one process with these settings; trained once."""

    @functools.cache
    def losses(name: str) -> list[float]:
        folder = tmp_path_factory.mktemp(name)
        settings = gate.with_model(folder, gate.SMALL, learning(name))
        return groups[1].run("train", folder=str(folder), data=digits_folder, settings=settings)[0]["losses"]

    return losses


@pytest.mark.parametrize(("size", "strategy"), [(2, "flat"), (4, "ddp")])
@pytest.mark.parametrize("name", RECIPES)
def test_any_number_of_ranks_follows_one_process(groups, digits_folder, tmp_path, alone, name, size, strategy):
    settings = {**learning(name), "strategy": strategy}
    gate.follows_one_process(groups[size], digits_folder, tmp_path, alone(name), settings)


def step_of(ranks, data: str, folder, train: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    settings = {"data": {"train_samples": 80, "validation": 40}, "train": {"batch_global": 40, "epochs": None, **train}}
    settings = gate.with_model(folder, gate.SMALL, {**settings, **more})
    return ranks.run("first_step", folder=str(folder), data=data, settings=settings)


def cross_entropies(scores: np.ndarray) -> np.ndarray:
    """−log p of every class, a sample in each row."""
    return np.log(np.exp(scores).sum(1, keepdims=True)) - scores


def test_labels_are_smoothed_in_training_and_not_in_validation(groups, digits_folder, tmp_path):
    """Szegedy et al. 2016, section 7: (1 − ε) · −log p of the label + ε ÷ K · the sum of −log p over all K classes."""
    train = {"optimizer": "sgd", "lr": 0.1, "label_smoothing": 0.3}
    (found,) = step_of(groups[1], digits_folder, tmp_path, train)
    entropies = cross_entropies(found["scores"])
    plain = entropies[np.arange(40), found["labels"]].mean()
    assert found["loss"] == pytest.approx(0.7 * plain + 0.3 / 10 * entropies.sum(1).mean(), rel=1e-9)
    assert found["loss"] != pytest.approx(plain, rel=1e-6), "smoothed or not would be the same"
    validation = cross_entropies(found["validation_scores"])[np.arange(40), found["validation_labels"]].mean()
    assert found["validation_loss"] == pytest.approx(validation, rel=1e-9)


def test_the_gradient_of_the_whole_batch_is_clipped(groups, digits_folder, tmp_path):
    """Without momentum a step is as long as the rate times the gradient; a clipped half would make it shorter."""
    train = {"optimizer": "sgd", "lr": 0.5, "momentum": 0.0, "clip_norm": 0.01}
    for found in step_of(groups[2], digits_folder, tmp_path, train, strategy="flat"):
        moved = sum(((found["after"][name] - start) ** 2).sum() for name, start in found["before"].items())
        assert math.sqrt(moved) == pytest.approx(0.5 * 0.01, rel=1e-4)


def test_a_run_starts_as_keras_does_where_it_is_asked_for(groups, digits_folder, tmp_path):
    """The dense layer of 32 on 144: ± √(6 ÷ 176) in place of PyTorch's ± 1 ÷ 12."""
    (found,) = step_of(groups[1], digits_folder, tmp_path, {"initialiser": "keras"})
    bound = math.sqrt(6 / (144 + 32))
    assert 0.9 * bound < np.abs(found["before"]["6.weight"]).max() <= bound
    assert not any(start.any() for name, start in found["before"].items() if name.endswith("bias"))


@pytest.mark.parametrize(("size", "strategy"), [(1, "ddp"), (2, "ddp"), (2, "flat")])
def test_a_step_in_parts_is_the_step_itself(groups, digits_folder, tmp_path, size, strategy):
    """Shares of 20 and of 1, and the empty ones beside those, in up to seven parts."""
    losses = []
    for parts in (1, 7):
        settings = gate.learning("adam", gate.UNEVEN)
        settings = {**settings, "strategy": strategy, "train": {**settings["train"], "accumulate": parts}}
        settings = gate.with_model(tmp_path, gate.SMALL, settings)
        answers = groups[size].run("train", folder=str(tmp_path / str(parts)), data=digits_folder, settings=settings)
        losses.append(answers[0]["losses"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-6, abs=1e-12)
    assert losses[1] != losses[0], "the same to the last bit, so it was not split"


@pytest.mark.parametrize(("size", "strategy"), [(1, "ddp"), (2, "flat"), (4, "ddp")])
def test_mixed_precision_follows_float32(groups, digits_folder, tmp_path, size, strategy):
    losses = []
    for precision in ("float32", "bfloat16"):
        settings = gate.learning("adam", gate.EVEN)
        settings = {**settings, "strategy": strategy, "train": {**settings["train"], "precision": precision}}
        settings = gate.with_model(tmp_path, gate.SMALL, settings)
        answers = groups[size].run("train", folder=str(tmp_path / precision), data=digits_folder, settings=settings)
        losses.append(answers[0]["losses"])
        assert len({answer["weights"] for answer in answers}) == 1, "ranks ended with different bits"
    mixed, exact = (statistics.fmean(one[:30]) for one in reversed(losses))
    assert mixed == pytest.approx(exact, rel=0.05)
    assert losses[1] != losses[0], "the same to the last bit, so nothing was mixed"


def test_ddp_sends_once_for_all_parts_of_a_step(groups, digits_folder, tmp_path):
    settings = {"data": {"train_samples": 400}, "train": {"batch_global": 40, "precision": "float32", "accumulate": 4}}
    for answer in groups[2].run("seen_collectives", folder=str(tmp_path), data=digits_folder, settings=settings):
        for step in range(answer["steps"]):
            sent = [bytes_ for name, bytes_, _, at in answer["rows"] if name == "allreduce_" and at == step]
            assert sum(sent) == answer["grad_bytes"], step


@pytest.mark.parametrize(("size", "strategy"), [(1, "ddp"), (2, "flat"), (4, "ddp")])
@pytest.mark.parametrize("optimizer", ["sgd", "lamb"])
def test_an_average_and_a_schedule_resume_bit_for_bit(groups, digits_folder, tmp_path, size, strategy, optimizer):
    """The curves have the validation loss of the averaged weights."""
    chance = random.Random(f"{size} {optimizer}")
    train = {
        "precision": "float32",
        "epochs": 3,
        "batch_global": 48,
        "optimizer": optimizer,
        "lr": 0.02,
        "accumulate": 2,
        "lr_rule": "linear",
        "lr_batch": 16,
        "warmup_epochs": 1.0,
        "schedule": "cosine",
        "average_epochs": 0.7,
        "clip_norm": 1.0,
        "checkpoint_every": 3,
    }
    settings = {"strategy": strategy, "data": {"train_samples": 500, "validation": 100}, "train": train}
    settings = gate.with_model(tmp_path, gate.SMALL, settings, dropout=0.2)
    run = functools.partial(groups[size].run, "train", data=digits_folder)
    whole = run(folder=str(tmp_path / "whole"), settings=settings)
    run(folder=str(tmp_path / "stopped"), settings=settings, stop_at=chance.randrange(8, 29))
    resumed = run(folder=str(tmp_path / "stopped"), settings=settings)
    for before, after in zip(whole, resumed, strict=True):
        assert after["resumed_from"] is not None
        for what in ("weights", "state", "curves", "phases"):
            assert after[what] == before[what], what
    own = run(folder=str(tmp_path / "own"), settings={**settings, "train": {**train, "average_epochs": 0.0}})
    assert own[0]["weights"] == whole[0]["weights"], "an average changes nothing of what is learned"
    assert own[0]["curves"] != whole[0]["curves"], "it was not evaluated"
    assert own[0]["phases"] != whole[0]["phases"], "it was not tested"


PIXELS = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, wants_pixels):
        super().__init__()
        self.wants_pixels = wants_pixels
        self.layer = nn.Linear(64, 10)
    def forward(self, images):
        pixels = 0 <= images.min() and 1 < images.max() <= 255 and torch.equal(images, images.round())
        assert pixels == self.wants_pixels
        return self.layer(images.flatten(1) / 255)
def build(wants_pixels):
    return Model(wants_pixels)
"""


@pytest.mark.parametrize("wants_pixels", [True, False])
def test_a_model_with_its_own_preprocessing_is_given_pixels(groups, digits_folder, tmp_path, wants_pixels):
    """In training, validation and test."""
    settings = gate.with_model(tmp_path, PIXELS, {"data": {"validation": 50}}, wants_pixels=wants_pixels)
    answers = groups[2].run("train", folder=str(tmp_path), data=digits_folder, settings=settings)
    assert len(answers[0]["phases"]) == 1
