"""What a recipe chooses, that it says so, and that it leaves alone what the study says."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from study_help import FakeLauncher, loaded
from torch import nn

from paceline.records.lr_rules import rule_factor
from paceline.records.recipe_choice import HIGHEST_LR, Choice
from paceline.records.run import Manifest
from paceline.records.settings import DataSettings, FinetuneSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.codec import from_plain, plain, read_record, write_record
from paceline.studies.execute.compose import new_manifest
from paceline.studies.execute.preview import preview
from paceline.studies.expand.expand import expand, schedule
from paceline.studies.expand.recipe import MAY_CHOOSE, resolved, with_recipe
from paceline.studies.load.load import LoadedStudy, load_study
from paceline.studies.load.toml_text import study_toml, toml_value
from paceline.training.optim.lamb import Lamb

SCALE = TrainSettings(recipe="scale", batch_global=2048, epochs=12)
POINT = Point(
    data=DataSettings(), data_digest="", model=ModelSettings(), model_digest="", train=TrainSettings(), ranks=2
)


def points(study: LoadedStudy):
    return expand(study.study, data_digest="d", model_digest="")


@pytest.mark.parametrize(
    ("said", "batch", "chosen"),
    [
        ({}, 2048, {"lr_rule": "sqrt", "lr_batch": 128, "schedule": "cosine", "warmup_epochs": 1.2}),
        ({}, 64, {"lr_rule": "sqrt", "lr_batch": 128, "schedule": "cosine"}),
        (
            {},
            16384,
            {"optimizer": "lamb", "lr_rule": "sqrt", "lr_batch": 128, "schedule": "cosine", "warmup_epochs": 1.2},
        ),
        (
            {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9},
            16384,
            {"lr_rule": "linear", "lr_batch": 128, "schedule": "cosine", "warmup_epochs": 1.2},
        ),
        ({"epochs": 90}, 1024, {"lr_rule": "sqrt", "lr_batch": 128, "schedule": "cosine", "warmup_epochs": 5.0}),
        ({"schedule": "one-cycle"}, 2048, {"lr_rule": "sqrt", "lr_batch": 128}),
        (
            {"lr_batch": 64, "lr_rule": "linear", "schedule": "step", "step_epochs": 4.0, "warmup_epochs": 2.0},
            2048,
            {},
        ),
        ({"lr_rule": "adascale", "optimizer": "sgd"}, 2048, {"lr_batch": 128, "schedule": "cosine"}),
        ({"epochs": None, "steps": 100}, 2048, {"lr_rule": "sqrt", "lr_batch": 128, "schedule": "cosine"}),
    ],
)
def test_what_scale_chooses(said, batch, chosen):
    train = replace(SCALE, batch_global=batch, **said)
    found, choices = resolved(train, batch_global=batch, ranks=4)
    assert found == replace(train, **chosen)
    assert {choice.path: choice.value for choice in choices[:-1]} == {f"train.{k}": v for k, v in chosen.items()}


@pytest.mark.parametrize(
    ("recipe", "lr", "factor"),
    [("scale", 0.004, 4.0), ("as-published", 0.008, 8.0)],
)
def test_the_highest_rate_comes_last(recipe, lr, factor):
    """√(2048 ÷ 128), and eight ranks."""
    highest = resolved(replace(SCALE, recipe=recipe), batch_global=2048, ranks=8)[1][-1]
    assert (highest.path, highest.value) == (HIGHEST_LR, lr)
    assert highest.facts == {"lr": 0.001, "factor": factor}


def test_lamb_comes_with_a_weight_decay_of_its_own_and_that_is_said():
    (optimizer, *_) = resolved(SCALE, batch_global=16384, ranks=4)[1]
    assert optimizer.facts["weight_decay"] == Lamb([nn.Parameter(torch.ones(1))]).defaults["weight_decay"]
    (optimizer, *_) = resolved(replace(SCALE, weight_decay=0.0), batch_global=16384, ranks=4)[1]
    assert "weight_decay" not in optimizer.facts


def test_with_a_batch_per_rank_the_rate_is_meant_for_one_rank():
    train = TrainSettings(recipe="scale", batch_per_rank=128, epochs=5)
    assert resolved(train, batch_global=1024, ranks=8)[0].lr_batch is None
    assert resolved(train, batch_global=1024, ranks=8)[0].warmup_epochs == 0.5
    assert resolved(train, batch_global=128, ranks=1)[0].warmup_epochs == 0, "there is nothing to rise to"


@pytest.mark.parametrize(
    ("train", "chosen"),
    [
        ({"batch_per_rank": 128}, {"lr_rule": "linear", "initialiser": "keras", "epsilon": 1e-7}),
        ({"batch_global": 1024}, {"lr_rule": "linear", "lr_batch": 128, "initialiser": "keras", "epsilon": 1e-7}),
        ({"batch_per_rank": 32, "optimizer": "sgd"}, {"lr_rule": "linear", "initialiser": "keras"}),
        ({"batch_per_rank": 32, "epsilon": 1e-3, "lr_rule": "sqrt"}, {"initialiser": "keras"}),
        (
            {"batch_per_rank": 32, "optimizer": "adadelta"},
            {"lr_rule": "linear", "initialiser": "keras", "epsilon": 1e-7, "rho": 0.95},
        ),
        (
            {"batch_per_rank": 32, "optimizer": "adadelta", "rho": 0.8},
            {"lr_rule": "linear", "initialiser": "keras", "epsilon": 1e-7},
        ),
    ],
)
def test_as_published_is_keras_and_the_rate_times_the_ranks(train, chosen):
    given = TrainSettings(recipe="as-published", epochs=5, **train)
    assert resolved(given, batch_global=1024, ranks=8)[0] == replace(given, **chosen)


@pytest.mark.parametrize(("batch", "ranks"), [(10, 4), (1024, 3), (7, 7), (130, 128)])
def test_as_published_multiplies_with_the_ranks_where_the_batch_does_not_divide_too(batch, ranks):
    found, choices = resolved(replace(SCALE, recipe="as-published"), batch_global=batch, ranks=ranks)
    assert rule_factor(found, batch_global=batch, ranks=ranks) == pytest.approx(ranks)
    assert from_plain(TrainSettings, json.loads(json.dumps(plain(found)))) == found, "as a manifest keeps it"
    rule = Choice(path="train.lr_rule", value="linear", reason="rate-times-ranks", facts={"ranks": ranks})
    assert choices[0] == rule
    assert choices[-1].facts["factor"] == pytest.approx(ranks)


@pytest.mark.parametrize(
    ("finetune", "chosen"),
    [
        ({"optimizer": "adam"}, {"epsilon": 1e-7}),
        ({"optimizer": "adam", "epsilon": 1e-3}, {}),
        ({"optimizer": "sgd"}, {}),
        ({"optimizer": "adadelta"}, {}),
        ({"optimizer": ""}, {}),
        ({"optimizer": "adam", "epochs": 0}, {}),
    ],
)
def test_a_second_phase_with_an_optimizer_of_its_own_has_what_keras_has_for_that(finetune, chosen):
    given = FinetuneSettings(**{"epochs": 1, **finetune})
    train = TrainSettings(recipe="as-published", optimizer="adadelta", batch_global=8, epochs=1)
    followed_point = with_recipe(replace(POINT, train=train, finetune=given))
    assert followed_point.finetune == replace(given, **chosen)
    said = {choice.path: choice for choice in followed_point.chosen if choice.path.startswith("finetune.")}
    assert {path: choice.value for path, choice in said.items()} == {f"finetune.{k}": v for k, v in chosen.items()}
    assert all(choice.facts == {"optimizer": "adam"} for choice in said.values())
    assert with_recipe(replace(POINT, train=replace(train, recipe="scale"), finetune=given)).finetune == given


@pytest.mark.parametrize(("ranks", "epochs"), [(1, 12), (2, 6), (5, 3), (64, 1)])
def test_epochs_are_divided_by_the_ranks(ranks, epochs):
    train = TrainSettings(epochs=12, epochs_rule="divide-by-ranks", batch_per_rank=8)
    found, choices = resolved(train, batch_global=8 * ranks, ranks=ranks)
    assert found.epochs == epochs
    assert bool(choices) == (ranks > 1)


@given(
    st.sampled_from(["scale", "as-published"]),
    st.sampled_from(["sgd", "adam", "adamw", "adadelta", "lars", "lamb"]),
    st.sampled_from([64, 2048, 100_000]),
    st.integers(1, 64),
)
def test_a_recipe_that_was_followed_asks_for_nothing_more(recipe, optimizer, batch, ranks):
    train = TrainSettings(recipe=recipe, optimizer=optimizer, batch_global=batch, epochs=12)
    once, choices = resolved(train, batch_global=batch, ranks=ranks)
    assert resolved(once, batch_global=batch, ranks=ranks) == (once, ())
    assert choices


def test_without_a_recipe_nothing_is_chosen(tmp_path: Path) -> None:
    study = loaded(tmp_path)
    assert {point.train for point in points(study)} == {study.study.train}
    assert {point.chosen for point in points(study)} == {()}


def test_points_have_what_was_chosen_and_the_manifest_and_the_preview_say_it(tmp_path: Path) -> None:
    study = loaded(tmp_path, "train.recipe=scale", "train.batch_global=64,2048", "run.ranks=2")
    small, large = points(study)
    assert (small.train.warmup_epochs, large.train.warmup_epochs) == (0.0, 0.2)
    launcher = FakeLauncher()
    manifest = new_manifest(
        schedule([large], 1)[0],
        study=study.study,
        data_folder=tmp_path,
        model_file=None,
        placement=launcher.placement(large),
        attempt=1,
    )
    write_record(tmp_path / "manifest.json", manifest)
    kept = read_record(tmp_path / "manifest.json", Manifest).point
    assert kept == large and kept.train.schedule == "cosine" and len(kept.chosen) == 5
    shown = preview(study, launcher=launcher, cache=tmp_path / "cache")
    assert [point.chosen for point in shown.points] == [small.chosen, large.chosen]


def test_what_a_study_varies_is_said(tmp_path: Path) -> None:
    found = points(loaded(tmp_path, "train.recipe=scale", "train.lr_rule=none,linear", "run.ranks=1"))
    assert [point.train.lr_rule for point in found] == ["none", "linear"]


@pytest.mark.parametrize(
    ("key", "value", "otherwise"),
    [
        ("optimizer", "adam", "lamb"),
        ("lr_rule", "none", "sqrt"),
        ("schedule", "constant", "cosine"),
        ("warmup_epochs", 0.0, 0.2),
    ],
)
def test_what_a_study_gives_at_its_default_is_said(tmp_path: Path, key, value, otherwise) -> None:
    scale = ("train.recipe=scale", "train.batch_global=16384", "run.ranks=1")
    (without,) = points(loaded(tmp_path, *scale))
    assert getattr(without.train, key) == otherwise
    (point,) = points(loaded(tmp_path, *scale, f"train.{key}={value}"))
    assert getattr(point.train, key) == value
    assert f"train.{key}" not in {choice.path for choice in point.chosen}
    path = tmp_path / "tiny.toml"
    path.write_text(path.read_text().replace("[train]", f"[train]\n{key} = {toml_value(value)}"))
    assert points(load_study(path, scale)) == (point,)


def test_without_a_rule_no_batch_is_chosen_for_it(tmp_path: Path) -> None:
    (point,) = points(loaded(tmp_path, "train.recipe=scale", "train.lr_rule=none", "run.ranks=1"))
    assert (point.train.lr_batch, point.train.warmup_epochs) == (None, 0.0)


@pytest.mark.parametrize("given", [(), ("train.schedule=constant",), ("train.optimizer=adam", "train.lr_rule=none")])
def test_a_study_that_is_read_again_from_its_folder_has_the_same_points(tmp_path: Path, given) -> None:
    study = loaded(tmp_path, "train.recipe=scale", "train.batch_global=16384", *given)
    kept = tmp_path / "study.toml"
    kept.write_text(study_toml(study.study))
    again = load_study(kept)
    assert again.study == study.study
    assert points(again) == points(study)


@given(
    st.sampled_from(["scale", "as-published"]),
    st.sampled_from(["sgd", "adam", "adamw", "adadelta", "lars", "lamb"]),
    st.sampled_from([64, 2048, 100_000]),
)
def test_all_that_a_recipe_may_choose_can_be_told_from_what_was_given(recipe, optimizer, batch):
    train = TrainSettings(recipe=recipe, optimizer=optimizer, batch_global=batch, epochs=12)
    found, _ = resolved(train, batch_global=batch, ranks=4)
    before, after = asdict(train), asdict(found)
    changed = {f"train.{key}" for key in before if after[key] != before[key] and before[key] is not None}
    assert changed <= set(MAY_CHOOSE)
    said, _ = resolved(train, batch_global=batch, ranks=4, explicit=MAY_CHOOSE)
    assert all(getattr(said, path.split(".")[1]) == before[path.split(".")[1]] for path in MAY_CHOOSE)


def test_reasons_are_no_part_of_a_points_name(tmp_path: Path) -> None:
    (point,) = points(loaded(tmp_path, "train.recipe=scale", "run.ranks=1"))
    assert replace(point, chosen=()).point_id == point.point_id
    assert replace(point, train=replace(point.train, schedule="constant")).point_id != point.point_id
