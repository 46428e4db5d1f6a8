"""Which steps and epochs belong to which phase, what it trains with, and what a model has to have for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch import nn

from paceline.errors import ModelError
from paceline.records.settings import DataSettings, FinetuneSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.training.models.transfer import Transfer
from paceline.training.phases import (
    check_model,
    finetune_settings,
    freeze_for_first_phase,
    frozen_batchnorm,
    planned_phases,
    unfreeze,
)

POINT = Point(
    data=DataSettings(dataset="digits"),
    data_digest="",
    model=ModelSettings(name="mine"),
    model_digest="",
    train=TrainSettings(optimizer="sgd", momentum=0.9, batch_global=8, epochs=3, warmup_epochs=2.0, lr_rule="linear"),
    ranks=1,
    finetune=FinetuneSettings(epochs=1, lr=0.01),
)


def network() -> Transfer:
    return Transfer(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), nn.Linear(8, 3))


def test_one_phase_is_all_there_is_without_a_second():
    (only,) = planned_phases(replace(POINT, finetune=FinetuneSettings()), 10)
    assert (only.name, only.settings, only.first_step, only.last_step) == ("train", POINT.train, 0, 30)


def test_steps_and_epochs_are_counted_through():
    first, second = planned_phases(POINT, 10)
    assert (first.last_step, second.first_step, second.last_step, second.first_epoch) == (30, 30, 40, 3)
    assert [second.epoch(step, 10) for step in (30, 39)] == [3, 3]


def test_a_phase_begins_with_a_new_epoch_where_the_one_before_ended_within_one():
    _, second = planned_phases(replace(POINT, train=replace(POINT.train, epochs=None, steps=14)), 10)
    assert (second.first_step, second.last_step, second.first_epoch) == (14, 24, 2)
    assert [second.epoch(step, 10) for step in (14, 23)] == [2, 2]


def test_the_second_phase_has_what_it_says_and_the_rest_of_the_first():
    tuned = finetune_settings(POINT)
    assert (tuned.lr, tuned.epochs, tuned.optimizer, tuned.momentum, tuned.lr_rule) == (0.01, 1, "sgd", 0.9, "linear")
    assert tuned.warmup_epochs == 1.0, "as long as the phase at most"
    other = finetune_settings(replace(POINT, finetune=replace(POINT.finetune, optimizer="adam", schedule="one-cycle")))
    assert (other.optimizer, other.momentum, other.schedule, other.warmup_epochs) == ("adam", 0.0, "one-cycle", 0.0)


@pytest.mark.parametrize(
    ("optimizer", "given", "epsilon", "rho"),
    [
        ("", {}, 1e-3, 0.8),
        ("adadelta", {}, 1e-3, 0.8),
        ("adadelta", {"epsilon": 1e-4, "rho": 0.7}, 1e-4, 0.7),
        ("adam", {}, None, None),
        ("adam", {"epsilon": 1e-4}, 1e-4, None),
    ],
)
def test_numbers_of_an_optimizer_are_those_of_the_first_phase_where_it_is_the_same(optimizer, given, epsilon, rho):
    train = TrainSettings(optimizer="adadelta", epsilon=1e-3, rho=0.8, batch_global=8, epochs=3)
    point = replace(POINT, train=train, finetune=FinetuneSettings(epochs=1, optimizer=optimizer, **given))
    tuned = finetune_settings(point)
    assert (tuned.epsilon, tuned.rho) == (epsilon, rho)


def test_a_model_is_frozen_before_it_is_tuned_and_its_head_alone_is_trained_on_features():
    model = network()
    assert freeze_for_first_phase(model, POINT) is model and model.frozen
    model = network()
    cached = replace(POINT, finetune=FinetuneSettings(), train=replace(POINT.train, cached_features=True))
    assert freeze_for_first_phase(model, cached) is model.head and model.frozen
    model = network()
    assert freeze_for_first_phase(model, replace(POINT, finetune=FinetuneSettings())) is model and not model.frozen


@pytest.mark.parametrize(("batchnorm", "trains"), [("frozen", False), ("train", True)])
def test_batchnorm_of_a_base_is_tuned_where_that_is_asked_for(batchnorm, trains):
    model = network()
    model.freeze()
    (norm,) = frozen_batchnorm(model)
    unfreeze(model, batchnorm)
    model.train()
    assert norm.training is trains
    assert all(parameter.requires_grad for parameter in model.parameters())


CACHED = replace(POINT, finetune=FinetuneSettings(), train=TrainSettings(cached_features=True))
SYNCHRONISED = replace(POINT, finetune=FinetuneSettings(), train=TrainSettings(sync_batchnorm=True))


class Frozen(nn.Linear):
    def freeze(self) -> None: ...


@pytest.mark.parametrize(
    ("model", "point", "said"),
    [
        (nn.Linear(2, 2), POINT, "has no freeze(), which [finetune] needs"),
        (Frozen(2, 2), POINT, "has no unfreeze(), which [finetune] needs"),
        (Frozen(2, 2), CACHED, "has no features"),
        (nn.Linear(2, 2), CACHED, "has no freeze"),
        (nn.Linear(2, 2), SYNCHRONISED, "has no batch-norm"),
    ],
    ids=["no-freeze", "no-unfreeze", "no-features", "no-freeze-for-features", "no-batchnorm"],
)
def test_a_model_that_lacks_something_is_refused(model, point, said):
    with pytest.raises(ModelError) as caught:
        check_model(model, point)
    assert said in caught.value.what and caught.value.next


def test_a_model_that_has_it_all_is_taken():
    train = replace(POINT.train, cached_features=True, sync_batchnorm=True)
    check_model(network(), replace(POINT, train=train))
