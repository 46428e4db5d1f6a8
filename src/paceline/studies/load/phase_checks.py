"""Checks of the second phase, cached features and synchronised batch-norm.

Whether a model can be frozen and has batch-norm is checked with the model before the first run: see
`training/phases.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

from paceline import catalog
from paceline.records.settings import FinetuneSettings
from paceline.records.study import Study
from paceline.studies.expand.recipe import SCHEDULES
from paceline.studies.load.keys import Problem, mistake, shown
from paceline.studies.load.recipe_checks import optimizer_problems

_CHOICES = {
    "batchnorm": ("frozen", "train"),
    "schedule": ("", *SCHEDULES),
}


def problems(study: Study) -> Iterator[Problem]:
    """All mistakes in one combination of a study's factors."""
    yield from _values(study.finetune)
    yield from optimizer_problems("finetune", study.finetune, study.finetune.optimizer or study.train.optimizer)
    if study.finetune.schedule == "step" and study.train.step_epochs is None:
        text = 'finetune.schedule = "step": needs train.step_epochs, the epochs between two falls.'
        yield Problem(("finetune.schedule", "train.step_epochs"), text)
    if study.model.options.get("freeze") is False and (study.finetune.epochs > 0 or study.train.cached_features):
        key = "finetune.epochs" if study.finetune.epochs > 0 else "train.cached_features"
        text = f"model.freeze = false: {key} needs a base that is frozen first. Leave one of them out."
        yield Problem(("model.freeze", key), text)
    strategy, entry = study.run.strategy, catalog.strategy(study.run.strategy)
    if study.finetune.epochs > 0 and entry.has_servers:
        yield mistake(
            "finetune.epochs",
            study.finetune.epochs,
            f"under {strategy} servers hold what the first phase trains, "
            "and the second trains more. Use another strategy.",
            "run.strategy",
        )
    if study.train.sync_batchnorm and (entry.has_servers or entry.own_weights):
        why = "ranks send nothing to one another" if entry.has_servers else "ranks have weights of their own"
        yield Problem(
            ("train.sync_batchnorm", "run.strategy"),
            f"train.sync_batchnorm = true: under {strategy} {why}, so that they cannot normalise together. "
            "Use another strategy, or leave it out.",
        )
    if study.train.cached_features and study.data.read == "mpi-io":
        yield Problem(
            ("train.cached_features", "data.read"),
            'train.cached_features = true: features are mapped by all ranks, and data.read = "mpi-io" is about images '
            'that a rank has alone. Give data.read = "mapped".',
        )


def unused(study: Study) -> Iterator[Problem]:
    """Settings of [finetune] without a second phase."""
    if study.finetune.epochs or "finetune.epochs" in study.vary:
        return
    usual = asdict(FinetuneSettings())
    for key, value in asdict(study.finetune).items():
        path = f"finetune.{key}"
        if value != usual[key] or path in study.vary:
            text = "there is no second phase. Give finetune.epochs, 1 or more, or leave it out."
            yield Problem((path, "finetune.epochs"), f"{path} = {shown(value)}: {text}")


def _values(finetune: FinetuneSettings) -> Iterator[Problem]:
    if finetune.epochs < 0:
        yield mistake("finetune.epochs", finetune.epochs, "must be 0 or more.")
    if not (math.isfinite(finetune.lr) and finetune.lr > 0):
        yield mistake("finetune.lr", finetune.lr, "must be a finite number above 0.")
    if finetune.optimizer and not catalog.known("optimizer", finetune.optimizer):
        yield mistake("finetune.optimizer", finetune.optimizer, catalog.unknown("optimizer", finetune.optimizer))
    for key, allowed in _CHOICES.items():
        if getattr(finetune, key) not in allowed:
            yield mistake(f"finetune.{key}", getattr(finetune, key), f"must be {' or '.join(map(shown, allowed))}.")
