"""A study turned into a range test, and the changes that a range test leads to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.errors import RequestError
from paceline.records.lr_range import LrAdvice
from paceline.records.lr_rules import rule_factor
from paceline.records.settings import AugmentSettings, ScriptSettings
from paceline.studies.execute.lr_range_study import changes_to, range_study
from paceline.studies.expand.expand import expand
from paceline.studies.load.load import LoadedStudy, load_study

STUDY = """
[study]
name = "s"
[data]
dataset = "digits"
validation = 0.1
[augment]
flip = true
[model]
name = "mlp"
[train]
optimizer = "sgd"
momentum = 0.9
batch_global = 64
epochs = 12
[run]
ranks = [1, 2, 4, 8]
strategy = ["flat", "ddp"]
"""


def loaded(folder: Path, *overrides: str) -> LoadedStudy:
    (folder / "s.toml").write_text(STUDY)
    return load_study(folder / "s.toml", overrides)


def ranged(study: LoadedStudy, **given) -> LoadedStudy:
    return range_study(study, **{"cores": 4, "first": 1e-4, "last": 10.0, "steps": 50, "repeats": 3, **given})


def test_data_model_batch_and_optimizer_stay_and_the_rate_rises(tmp_path):
    before, after = loaded(tmp_path).study, ranged(loaded(tmp_path)).study
    assert (after.data, after.model, after.augment) == (before.data, before.model, AugmentSettings(flip=True))
    train = after.train
    assert (train.optimizer, train.momentum, train.batch_global) == ("sgd", 0.9, 64)
    assert (train.schedule, train.lr, train.steps, train.epochs) == ("range", 1e-4, 50, None)
    assert train.lr * train.step_factor == pytest.approx(10.0)
    assert (after.run.strategy, after.run.repeats, after.vary) == ("flat", 3, {})


@pytest.mark.parametrize(("cores", "threads", "ranks"), [(4, 1, 4), (5, 1, 4), (4, 2, 2), (64, 1, 8), (1, 2, 1)])
def test_it_takes_the_most_ranks_that_have_cores(tmp_path, cores, threads, ranks):
    study = loaded(tmp_path, f"run.threads={threads}")
    assert ranged(study, cores=cores).study.run.ranks == (ranks,)


def test_a_number_of_ranks_that_is_asked_for_is_taken_with_or_without_cores(tmp_path):
    assert ranged(loaded(tmp_path, "run.ranks=8"), cores=1).study.run.ranks == (8,)


def test_other_launchers_have_cores_elsewhere(tmp_path):
    assert ranged(loaded(tmp_path, "run.launcher=mpi"), cores=1).study.run.ranks == (8,)


def test_what_is_about_the_course_of_a_training_is_left_out(tmp_path):
    study = loaded(
        tmp_path, "train.lr_rule=linear", "train.lr_batch=32", "train.warmup_epochs=2", "train.checkpoint_every=5"
    )
    train = ranged(study).study.train
    assert (train.lr_rule, train.lr_batch, train.warmup_epochs, train.checkpoint_every) == ("none", None, 0.0, 0)


def test_a_recipe_leaves_what_it_makes_of_the_model_and_the_optimizer(tmp_path):
    train = ranged(loaded(tmp_path, "train.recipe=as-published")).study.train
    assert (train.recipe, train.initialiser, train.lr_rule) == ("", "keras", "none")
    adadelta = loaded(tmp_path, "train.recipe=as-published", "train.optimizer=adadelta", "train.momentum=0")
    assert (ranged(adadelta).study.train.epsilon, ranged(adadelta).study.train.rho) == (1e-7, 0.95)


@pytest.mark.parametrize(
    ("said", "tested"), [([], "lamb"), (["train.optimizer=adam"], "adam"), (["train.optimizer=adam,sgd"], "adam")]
)
def test_a_recipe_leaves_alone_what_a_study_says_or_varies(tmp_path, said, tested):
    (tmp_path / "s.toml").write_text(STUDY.replace('optimizer = "sgd"\nmomentum = 0.9\n', ""))
    scale = ["train.recipe=scale", "train.batch_global=16384", *said]
    assert ranged(load_study(tmp_path / "s.toml", scale)).study.train.optimizer == tested


def advice(lr: float | None) -> LrAdvice:
    return LrAdvice(curves=(), lr=lr, low=lr, high=lr, batch_global=64, ranks=4)


def test_the_changes_are_the_rate_and_with_a_rule_the_batch_it_is_for(tmp_path):
    study = loaded(tmp_path).study
    assert changes_to(study, advice(0.02)) == ["train.lr=0.02"]
    assert changes_to(study, advice(None)) == []
    ruled = loaded(tmp_path, "train.lr_rule=linear").study
    assert changes_to(ruled, advice(0.02)) == ["train.lr=0.02", "train.lr_batch=64"]
    by_recipe = loaded(tmp_path, "train.recipe=scale").study
    assert changes_to(by_recipe, advice(0.02)) == ["train.lr=0.02", "train.lr_batch=64"]
    without = loaded(tmp_path, "train.recipe=scale", "train.lr_rule=none").study
    assert changes_to(without, advice(0.02)) == ["train.lr=0.02"]


@pytest.mark.parametrize(
    "varied",
    [
        ["train.lr_rule=none,linear"],
        ["train.lr_rule=linear,none"],
        ["train.recipe=,scale"],
        ["train.recipe=scale", "train.lr_rule=none,linear"],
    ],
)
def test_where_some_points_have_a_rule_the_batch_is_said_and_the_study_takes_it(tmp_path, varied):
    changes = changes_to(loaded(tmp_path, *varied).study, advice(0.02))
    assert changes == ["train.lr=0.02", "train.lr_batch=64"]
    points = expand(loaded(tmp_path, *varied, *changes).study, data_digest="", model_digest="")
    rates = {p.train.lr * rule_factor(p.train, batch_global=p.batch_global, ranks=p.ranks) for p in points}
    assert rates == {0.02}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"first": 0.0}, "--from 0 and --to 10"),
        ({"first": 1.0, "last": 1.0}, "--from 1 and --to 1"),
        ({"last": float("inf")}, "--to inf"),
        ({"first": float("nan")}, "--from nan"),
        ({"steps": 9}, "--steps 9 is too few"),
        ({"repeats": 0}, "--repeats 0"),
    ],
)
def test_a_range_that_is_none_is_refused(tmp_path, given, said):
    with pytest.raises(RequestError, match=said):
        ranged(loaded(tmp_path), **given)


def test_a_script_has_a_rate_of_its_own(tmp_path):
    study = loaded(tmp_path)
    script = replace(study, study=replace(study.study, script=ScriptSettings(path="train.py")))
    with pytest.raises(RequestError, match=r"a study of a script, train\.py"):
        ranged(script)
