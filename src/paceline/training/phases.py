"""The phases of a training: what `[train]` asks for, then what `[finetune]` does.

    train       the model as it was built; with a second phase to come, its base frozen
    finetune    the same model unfrozen, with an optimizer, a learning rate and an exchange made anew

Steps and epochs are counted through. A phase begins with a new epoch, the one before it may end within one.

A model that has two phases has `freeze()` and `unfreeze()`. Batch-norm that a frozen model keeps in evaluation mode
stays in it while the model is tuned, unless `finetune.batchnorm` is "train": its statistics are of the many images
that the weights were learned on, and those of a few small batches would undo them.
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
    """A part of the training with an optimizer of its own."""

    name: str
    settings: TrainSettings
    """Those of `[train]`, with what `[finetune]` changes."""
    first_step: int
    """Steps before it."""
    last_step: int
    """Steps when it is over."""
    first_epoch: int
    """Epochs before it, begun ones included."""

    @property
    def steps(self) -> int:
        """Optimizer steps in it."""
        return self.last_step - self.first_step

    def epoch(self, step: int, steps_per_epoch: int) -> int:
        """The epoch of a step in it, both counted from 0 through all phases."""
        return self.first_epoch + (step - self.first_step) // steps_per_epoch


def planned_phases(point: Point, steps_per_epoch: int) -> tuple[Phase, ...]:
    """The phases of a point, one or two."""
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
    """What the second phase trains with: `[train]`, but for what `[finetune]` says."""
    train, tune = point.train, point.finetune
    optimizer, schedule = tune.optimizer or train.optimizer, tune.schedule or train.schedule
    same = optimizer == train.optimizer
    # A warm-up longer than the phase would never end, and one-cycle has one of its own.
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
    """Freeze a model that a later phase unfreezes; what of it the first phase trains: all of it, or its head."""
    check_model(model, point)
    if point.finetune.epochs or point.train.cached_features:
        model.freeze()  # pyright: ignore[reportCallIssue]  checked above
    return model.head if point.train.cached_features else model  # pyright: ignore[reportReturnType]  a module


def unfreeze(model: nn.Module, batchnorm: str) -> None:
    """Let everything learn. A model that can keep its batch-norm's statistics itself is told whether to."""
    let_learn: Callable[..., None] = model.unfreeze  # pyright: ignore[reportAssignmentType]  checked when it was built
    takes = inspect.signature(let_learn).parameters
    let_learn(**({"batchnorm": batchnorm} if "batchnorm" in takes else {}))


def check_model(model: nn.Module, point: Point) -> None:
    """ModelError where a model lacks what its settings need of it."""
    name = point.model.name
    missing = [each for each in ("freeze", "unfreeze") if not callable(getattr(model, each, None))]
    if point.finetune.epochs and missing:
        raise ModelError(
            f"The model {name!r} has no {missing[0]}(), so that [finetune] has nothing to unfreeze.",
            right="In the first phase a base is frozen, in the second everything learns: "
            "a pretrained network has both, and a model of your own may have them.",
            next="Leave [finetune] out, or give the model freeze() and unfreeze().",
        )
    if point.train.cached_features:
        parts = [each for each in ("freeze", "features", "head") if not callable(getattr(model, each, None))]
        if parts:
            raise ModelError(
                f"The model {name!r} has no {parts[0]}, so that train.cached_features cannot work.",
                right="It has to have freeze(), features(inputs) and a module `head` that makes scores of them.",
                next="Leave train.cached_features out, or choose a pretrained network (`paceline models`).",
            )
    if point.train.sync_batchnorm and not has_batchnorm(model):
        raise ModelError(
            f"The model {name!r} has no batch-norm layer of PyTorch for train.sync_batchnorm to synchronise.",
            right="torch.nn.BatchNorm1d, BatchNorm2d and BatchNorm3d are.",
            next="Leave train.sync_batchnorm out.",
        )


def frozen_batchnorm(model: nn.Module) -> tuple[nn.Module, ...]:
    """The batch-norm layers that stay in evaluation mode while the model trains."""
    training = model.training
    model.train()
    still = tuple(module for module in model.modules() if isinstance(module, _BatchNorm) and not module.training)
    model.train(training)
    return still
