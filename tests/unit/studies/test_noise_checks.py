"""What cannot work about gradient noise and AdaScale is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.records.settings import FinetuneSettings, RunSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.load.recipe_checks import noise_problems as problems


def said(*, ranks: tuple[int, ...] = (1, 2), strategy: str = "ddp", finetune: str = "", **train) -> list[str]:
    train = {"optimizer": "sgd", "batch_per_rank": 32, "epochs": 1, **train}
    tune = FinetuneSettings(epochs=1 if finetune else 0, optimizer=finetune)
    study = Study(name="s", train=TrainSettings(**train), run=RunSettings(ranks=ranks, strategy=strategy))
    return [problem.text for problem in problems(replace(study, finetune=tune), ranks)]


@pytest.mark.parametrize("strategy", ["ddp", "flat", "mpi-allreduce", "mpi-reduce-broadcast"])
def test_nothing_is_wrong_where_ranks_have_the_mean_gradient(strategy):
    assert not said(strategy=strategy, noise_every=10)
    assert not said(strategy=strategy, lr_rule="adascale")
    assert not said(strategy=strategy, lr_rule="adascale", noise_every=10, batch_per_rank=None, batch_global=64,
                    lr_batch=64)  # fmt: skip


def test_nothing_is_asked_of_a_study_that_measures_none():
    assert not said(strategy="local-sgd", optimizer="adam", sync_batchnorm=True)


def test_one_rank_measures_with_parts_alone():
    assert not said(ranks=(1,), noise_every=10, accumulate=2)
    assert not said(ranks=(1,), noise_every=10, accumulate=2, strategy="parameter-server")
    assert "one rank computes a step as a whole" in said(ranks=(1,), noise_every=10)[0]


@pytest.mark.parametrize(
    "strategy", ["local-sgd", "parameter-server", "parameter-server-async", "ddp-fp16", "ddp-powersgd"]
)
def test_a_strategy_that_hides_the_mean_gradient_is_refused(strategy):
    assert f"under {strategy} no rank has the mean gradient" in said(strategy=strategy, noise_every=10)[0]
    assert f"under {strategy} no rank has the mean gradient" in said(strategy=strategy, lr_rule="adascale")[0]


@pytest.mark.parametrize(
    ("train", "text"),
    [
        ({"noise_every": -1}, "train.noise_every = -1: must be 0 or more."),
        ({"noise_every": 1, "sync_batchnorm": True}, "with train.sync_batchnorm the gradient of one rank hangs on"),
        ({"lr_rule": "adascale", "optimizer": "adam"}, 'is a rule for SGD, not for "adam". Give train.optimizer'),
        ({"lr_rule": "adascale", "optimizer": "lars"}, 'is a rule for SGD, not for "lars"'),
        ({"lr_rule": "adascale", "finetune": "adam"}, 'is a rule for SGD, not for "adam". Give finetune.optimizer'),
        (
            {"lr_rule": "adascale", "batch_per_rank": None, "batch_global": 64},
            "does nothing as long as the batch is the one that train.lr is meant for",
        ),
        (
            {"lr_rule": "adascale", "lr_batch": 8},
            "one rank that computes its 32 samples as a whole cannot see how much they differ",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_what_would(train, text):
    (found,) = said(**train)
    assert text in found
