"""The phases of a training: first `[train]`, then `[finetune]`.

    train       the model as built; its base is frozen if a second phase follows
    finetune    the same model unfrozen, with a new optimizer, learning rate and strategy

Steps and epochs are counted through both. A phase begins with a new epoch; the phase before may end within one.

A model with two phases has `freeze()` and `unfreeze()`. Frozen batch-norm stays in evaluation mode while the model is
tuned, unless `finetune.batchnorm` is "train": its statistics are of the many images of the pretraining, which those of
a few small batches would overwrite.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from paceline.errors import ModelError
from paceline.records.settings import TrainSettings
from paceline.records.study import Point
from paceline.training.optim.lr_schedule import planned_steps
from paceline.training.parallel.batchnorm import has_batchnorm

TRAIN, FINETUNE = "train", "finetune"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of the training with its own optimizer."""

    name: str
    settings: TrainSettings
    """Of `[train]`, overridden by `[finetune]`."""
    first_step: int
    """Steps before it."""
    last_step: int
    """Steps when it is over."""
    first_epoch: int
    """Epochs before it, including incomplete ones."""

    @property
    def steps(self) -> int:
        """Optimizer steps of the phase."""
        return self.last_step - self.first_step

    def epoch(self, step: int, steps_per_epoch: int) -> int:
        """Epoch of a step, both counted from 0 through all phases."""
        return self.first_epoch + (step - self.first_step) // steps_per_epoch


def planned_phases(point: Point, steps_per_epoch: int) -> tuple[Phase, ...]:
    """One or two phases of a point."""
    train, tune = point.train, point.finetune
    steps = planned_steps(train, steps_per_epoch)
    first = Phase(name=TRAIN, settings=train, first_step=0, last_step=steps, first_epoch=0)
    if not tune.epochs:
        return (first,)
    second = Phase(
        name=FINETUNE,
        settings=finetune_settings(point),
        first_step=steps,
        last_step=steps + tune.epochs * steps_per_epoch,
        first_epoch=-(-steps // steps_per_epoch),
    )
    return first, second


def finetune_settings(point: Point) -> TrainSettings:
    """Settings of the second phase: `[train]`, overridden by `[finetune]`."""
    train, tune = point.train, point.finetune
    optimizer, schedule = tune.optimizer or train.optimizer, tune.schedule or train.schedule
    same = optimizer == train.optimizer
    # A warm-up longer than the phase would never end; one-cycle contains its own.
    warmup_epochs = 0.0 if schedule == "one-cycle" else min(train.warmup_epochs, float(tune.epochs))
    return replace(
        train,
        optimizer=optimizer,
        lr=tune.lr,
        epochs=tune.epochs,
        steps=None,
        momentum=train.momentum if same else 0.0,
        epsilon=train.epsilon if same and tune.epsilon is None else tune.epsilon,
        rho=train.rho if same and tune.rho is None else tune.rho,
        schedule=schedule,
        warmup_epochs=warmup_epochs,
    )


def freeze_for_first_phase(model: nn.Module, point: Point) -> nn.Module:
    """Module that the first phase trains: the model or its head. Freezes a model that a later phase unfreezes."""
    check_model(model, point)
    if point.finetune.epochs or point.train.cached_features:
        model.freeze()  # pyright: ignore[reportCallIssue]  checked above
    return model.head if point.train.cached_features else model  # pyright: ignore[reportReturnType]  a module


def unfreeze(model: nn.Module, batchnorm: str) -> None:
    """Let all parameters learn; `batchnorm` is passed to models that take it."""
    let_learn: Callable[..., None] = model.unfreeze  # pyright: ignore[reportAssignmentType]  checked when it was built
    takes = inspect.signature(let_learn).parameters
    let_learn(**({"batchnorm": batchnorm} if "batchnorm" in takes else {}))


def check_model(model: nn.Module, point: Point) -> None:
    """Raise ModelError if a model lacks methods that its settings need."""
    name = point.model.name
    missing = [each for each in ("freeze", "unfreeze") if not callable(getattr(model, each, None))]
    if point.finetune.epochs and missing:
        raise ModelError(
            f"The model {name!r} has no {missing[0]}(), which [finetune] needs.",
            right="In the first phase the base is frozen, in the second everything learns. "
            "Pretrained networks have both methods, and your own model may define them.",
            next="Leave [finetune] out, or give the model freeze() and unfreeze().",
        )
    if point.train.cached_features:
        parts = [each for each in ("freeze", "features", "head") if not callable(getattr(model, each, None))]
        if parts:
            raise ModelError(
                f"The model {name!r} has no {parts[0]}, which train.cached_features needs.",
                right="It needs freeze(), features(inputs) and a module `head` that maps features to scores.",
                next="Leave train.cached_features out, or choose a pretrained network (`paceline models`).",
            )
    if point.train.sync_batchnorm and not has_batchnorm(model):
        raise ModelError(
            f"The model {name!r} has no batch-norm layer of PyTorch for train.sync_batchnorm to synchronise.",
            right="torch.nn.BatchNorm1d, BatchNorm2d and BatchNorm3d are.",
            next="Leave train.sync_batchnorm out.",
        )


def frozen_batchnorm(model: nn.Module) -> tuple[nn.Module, ...]:
    """Batch-norm layers that stay in evaluation mode during training."""
    training = model.training
    model.train()
    still = tuple(module for module in model.modules() if isinstance(module, _BatchNorm) and not module.training)
    model.train(training)
    return still
