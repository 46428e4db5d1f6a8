"""`train.recipe`: settings that are chosen from a point's optimizer, batch and ranks, each with its reason.

    scale           preserves accuracy as the batch grows:
                        optimizer   adam becomes lamb above a batch of 8,192
                        lr_rule     linear for sgd and lars; sqrt for adam, adamw, adadelta and lamb
                        lr_batch    128 with a global batch; with a batch per rank, that of one rank
                        warm-up     a tenth of the epochs, 5 at most, if the rule raises the rate
                        schedule    cosine
    as-published    as in the reports: lr × ranks, Keras's initialisers and optimizer defaults

A recipe never changes an explicit setting: one that is varied, in the study file or overridden, even at its
default. Pure: the resulting point has the settings that are run, and a `Choice` for
each that the recipe chose.

Sources: Goyal et al. 2017 kept accuracy up to 8,192 with the linear rule, five of ninety epochs of warm-up and SGD;
You et al. 2020 no longer reached their target with tuned AdamW at 16,384 and did with LAMB up to 32,768; Malladi et
al. 2022 derive the square root for adaptive optimizers; He et al. 2019 gain accuracy by a cosine after the warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from paceline import catalog
from paceline.records.lr_rules import rule_factor
from paceline.records.recipe_choice import HIGHEST_LR, Choice
from paceline.records.settings import FinetuneSettings, TrainSettings
from paceline.records.study import Point, Study

RECIPES = ("", "scale", "as-published")
RULES = ("none", "linear", "sqrt", "adascale")
SCHEDULES = ("constant", "step", "cosine", "one-cycle")

USUAL_BATCH = 128
"""Assumed batch of a learning rate: most published ones are for 32 to 256."""
LARGEST_BATCH = 8192
"""Largest batch for which learning-rate rules alone were shown to work."""
LAMB_WEIGHT_DECAY = 0.01
"""LAMB's default weight decay, as in training/optim/lamb.py."""
_WARM_UP_SHARE, _WARM_UP_MOST = 0.1, 5.0

MAY_CHOOSE = tuple(f"train.{key}" for key in ("optimizer", "lr_rule", "warmup_epochs", "schedule", "initialiser"))
"""Settings that a recipe chooses and whose default may be explicit or not."""


def explicit_settings(study: Study) -> frozenset[str]:
    """Explicit settings of a study, varied or set to their default: no recipe changes them."""
    return frozenset((*study.vary, *study.given))


def with_recipe(point: Point, explicit: Collection[str] = ()) -> Point:
    """The point with the choices of its recipe and of its rule for epochs; settings in `explicit` are unchanged."""
    if point.script is not None:
        return point
    train, choices = resolved(
        point.train,
        batch_global=point.batch_global,
        ranks=point.data_size,
        servers=point.servers > 0,
        explicit=explicit,
    )
    finetune, others = _second_phase(point.finetune, train)
    return replace(point, train=train, finetune=finetune, chosen=(*choices, *others))


def resolved(
    train: TrainSettings, *, batch_global: int, ranks: int, servers: bool = False, explicit: Collection[str] = ()
) -> tuple[TrainSettings, tuple[Choice, ...]]:
    """The settings that are run, and the choices among them; settings in `explicit` are unchanged."""
    chosen = _Choices(train, explicit)
    if train.epochs_rule == "divide-by-ranks" and train.epochs is not None:
        epochs = math.ceil(train.epochs / ranks)
        chosen.take("epochs", epochs, "epochs-divided-by-ranks", epochs=train.epochs, ranks=ranks)
    if train.recipe == "scale":
        _scale(chosen, batch_global, ranks, servers=servers)
    elif train.recipe == "as-published":
        _as_published(chosen, batch_global, ranks)
    if train.recipe and chosen.choices:
        chosen.choices.append(_highest_lr(chosen.train, batch_global, ranks))
    return chosen.train, tuple(chosen.choices)


class _Choices:
    """Settings, and the choices so far."""

    def __init__(self, train: TrainSettings, explicit: Collection[str]) -> None:
        self.train = train
        self._explicit = explicit
        self.choices: list[Choice] = []

    def take(self, key: str, value: str | float | int, reason: str, **facts: str | float | int) -> None:
        if value != getattr(self.train, key):
            self.train = replace(self.train, **{key: value})
            self.choices.append(Choice(path=f"train.{key}", value=value, reason=reason, facts=facts))

    def is_open(self, key: str) -> bool:
        return f"train.{key}" not in self._explicit and getattr(self.train, key) == getattr(TrainSettings(), key)


def _scale(chosen: _Choices, batch_global: int, ranks: int, *, servers: bool) -> None:
    # Servers store parts of layers, and LAMB needs whole layers.
    if chosen.is_open("optimizer") and batch_global > LARGEST_BATCH and not servers:
        decay = {"weight_decay": LAMB_WEIGHT_DECAY} if chosen.train.weight_decay is None else {}
        chosen.take("optimizer", "lamb", "large-batch", largest_batch=LARGEST_BATCH, **decay)
    if chosen.is_open("lr_rule"):
        if catalog.optimizer(chosen.train.optimizer).adaptive:
            chosen.take("lr_rule", "sqrt", "noise-falls-with-root-of-batch")
        else:
            chosen.take("lr_rule", "linear", "steps-grow-with-samples")
    if chosen.is_open("lr_batch") and chosen.train.batch_per_rank is None and chosen.train.lr_rule != "none":
        chosen.take("lr_batch", USUAL_BATCH, "usual-batch", batch=USUAL_BATCH)
    if chosen.is_open("schedule"):
        chosen.take("schedule", "cosine", "rate-ends-near-zero")
    if chosen.is_open("warmup_epochs"):
        _warm_up(chosen, batch_global, ranks)


def _warm_up(chosen: _Choices, batch_global: int, ranks: int) -> None:
    train = chosen.train
    rises = rule_factor(train, batch_global=batch_global, ranks=ranks) > 1
    if not rises or train.schedule == "one-cycle" or train.epochs is None:
        return
    epochs = min(_WARM_UP_SHARE * train.epochs, _WARM_UP_MOST)
    chosen.take("warmup_epochs", round(epochs, 6), "warm-up-of-high-rate", most_epochs=_WARM_UP_MOST)


def _highest_lr(train: TrainSettings, batch_global: int, ranks: int) -> Choice:
    factor = rule_factor(train, batch_global=batch_global, ranks=ranks)
    facts: dict[str, str | int | float] = {"lr": train.lr, "factor": factor}
    return Choice(path=HIGHEST_LR, value=train.lr * factor, reason="rate-times-factor", facts=facts)


def _as_published(chosen: _Choices, batch_global: int, ranks: int) -> None:
    if chosen.is_open("lr_rule"):
        chosen.take("lr_rule", "linear", "rate-times-ranks", ranks=ranks)
        if chosen.is_open("lr_batch") and chosen.train.batch_per_rank is None:
            share = batch_global // ranks if batch_global % ranks == 0 else batch_global / ranks
            chosen.take("lr_batch", share, "batch-of-one-rank")
    if chosen.is_open("initialiser"):
        chosen.take("initialiser", "keras", "keras-initialiser")
    for key, value in catalog.optimizer(chosen.train.optimizer).keras_defaults.items():
        if chosen.is_open(key):
            chosen.take(key, value, "keras-default", optimizer=chosen.train.optimizer)


def _second_phase(finetune: FinetuneSettings, train: TrainSettings) -> tuple[FinetuneSettings, tuple[Choice, ...]]:
    """The second phase with Keras's defaults if its optimizer differs from that of the first."""
    optimizer = finetune.optimizer
    if train.recipe != "as-published" or not finetune.epochs or optimizer in ("", train.optimizer):
        return finetune, ()
    keras = catalog.optimizer(optimizer).keras_defaults
    taken = {key: value for key, value in keras.items() if getattr(finetune, key) is None}
    choices = (
        Choice(path=f"finetune.{key}", value=value, reason="keras-default", facts={"optimizer": optimizer})
        for key, value in taken.items()
    )
    return replace(finetune, **taken), tuple(choices)
