"""Checks of the settings for learning: rates, schedules, optimizers, averages, gradient noise, target.

A setting without effect is refused, too, unless the setting that it depends on
is varied.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

from paceline import catalog
from paceline.records.settings import FinetuneSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.recipe import RECIPES, RULES, SCHEDULES
from paceline.studies.load.keys import Problem, mistake, shown

_CHOICES = {
    "recipe": RECIPES,
    "lr_rule": RULES,
    "schedule": SCHEDULES,
    "epochs_rule": ("none", "divide-by-ranks"),
    "initialiser": ("", "keras"),
}
_USUAL = TrainSettings()


def problems(study: Study, ranks: tuple[int, ...], vary: Mapping[str, Collection[object]]) -> Iterator[Problem]:
    """All mistakes in one combination of a study's factors, which are those of `vary`."""
    train = study.train
    for key, allowed in _CHOICES.items():
        if getattr(train, key) not in allowed:
            yield _problem(train, key, f"must be {' or '.join(map(shown, allowed))}.")
    yield from _numbers(train)
    most = max((*ranks, 1))
    ruled = train.lr_rule != "none" or "train.lr_rule" in vary
    if not ruled and ("train.lr_rule" in study.given or not (train.recipe or "train.recipe" in vary)):
        yield from _unruled(train)
    yield from _rate(train, _epochs(train, most))
    schedules = {train.schedule, study.finetune.schedule}
    if "step" not in schedules.union(*(vary.get(path, ()) for path in ("train.schedule", "finetune.schedule"))):
        yield from _unstepped(train)
    yield from optimizer_problems("train", train, train.optimizer)
    yield from _servers(train, study.run.strategy)
    yield from _parts(train, most)
    if train.epochs_rule == "divide-by-ranks" and train.epochs is None and train.steps is not None:
        text = "divides epochs, and train.steps is given. Give train.epochs in its place."
        yield _problem(train, "epochs_rule", text, "epochs", "steps")


def varied_problems(train: TrainSettings, vary: Iterable[str]) -> Iterator[Problem]:
    """Mistakes in the factors of a study."""
    if train.epochs_rule == "divide-by-ranks" and "train.epochs" in vary:
        text = "the number of epochs follows from the ranks, so it cannot be varied. Give one train.epochs."
        yield _problem(train, "epochs_rule", text, "epochs")


def _numbers(train: TrainSettings) -> Iterator[Problem]:
    for key in ("warmup_epochs", "average_epochs", "clip_norm"):
        if not (math.isfinite(getattr(train, key)) and getattr(train, key) >= 0):
            yield _problem(train, key, "must be finite, 0 or more.")
    if train.step_epochs is not None and not 0 < train.step_epochs < math.inf:
        yield _problem(train, "step_epochs", "must be a finite number above 0.")
    for key in ("lr_batch", "accumulate"):
        value = getattr(train, key)
        if value is not None and value < 1:
            yield _problem(train, key, "must be 1 or more.")
    if not 0 < train.step_factor < 1:
        yield _problem(train, "step_factor", "must be above 0 and below 1.")
    if not 0 <= train.label_smoothing < 1:
        yield _problem(train, "label_smoothing", "must be from 0 to below 1.")


def _unruled(train: TrainSettings) -> Iterator[Problem]:
    """What does nothing if no point has a rule for its rate."""
    rule = 'Give train.lr_rule = "linear" or "sqrt".'
    if train.lr_batch is not None:
        yield _problem(train, "lr_batch", f"says what train.lr is for, and no rule asks for it. {rule}", "lr_rule")
    if train.warmup_epochs > 0:
        text = f"leads from train.lr to what a rule makes of it, and there is no rule. {rule}"
        yield _problem(train, "warmup_epochs", text, "lr_rule")


def _unstepped(train: TrainSettings) -> Iterator[Problem]:
    """What does nothing if no phase of any point has the schedule for it."""
    for key in ("step_epochs", "step_factor"):
        if getattr(train, key) != getattr(_USUAL, key):
            yield _problem(train, key, 'only schedule = "step" takes it.', "schedule")


def _rate(train: TrainSettings, epochs: int | None) -> Iterator[Problem]:
    """Mistakes in combinations of rule, warm-up and schedule."""
    if train.warmup_epochs > 0 and train.lr_rule == "adascale":
        text = (
            'train.lr_rule = "adascale" raises the rate by what it measures, without a warm-up. Leave one of them out.'
        )
        yield _problem(train, "warmup_epochs", text, "lr_rule")
    if train.warmup_epochs > 0 and train.schedule == "one-cycle":
        text = 'train.schedule = "one-cycle" has a rise of its own. Leave one of them out.'
        yield _problem(train, "warmup_epochs", text, "schedule")
    if epochs is not None and train.warmup_epochs > epochs:
        yield _problem(train, "warmup_epochs", f"is longer than the {epochs} epochs of the run.", "epochs")
    if train.schedule == "step" and train.step_epochs is None:
        text = "needs train.step_epochs, the epochs between two falls."
        yield _problem(train, "schedule", text, "step_epochs")


def optimizer_problems(section: str, settings: TrainSettings | FinetuneSettings, optimizer: str) -> Iterator[Problem]:
    """Mistakes in the settings of a section that only some optimizers take."""
    for key in ("epsilon", "rho"):
        path, value = f"{section}.{key}", getattr(settings, key)
        if value is None:
            continue
        if not 0 < value < (1 if key == "rho" else math.inf):
            limits = "above 0 and below 1" if key == "rho" else "a finite number above 0"
            yield mistake(path, value, f"must be {limits}.")
        if key not in catalog.optimizer(optimizer).takes:
            takers = [name for name, entry in catalog.entries("optimizer") if key in entry.takes]
            only = f"{', '.join(takers)} {'take' if len(takers) > 1 else 'takes'} it"
            about = dict.fromkeys((path, f"{section}.optimizer", "train.optimizer"))
            yield Problem(tuple(about), f"{path} = {shown(value)}: only {only}, not {shown(optimizer)}.")


def _servers(train: TrainSettings, strategy: str) -> Iterator[Problem]:
    """Settings that a strategy cannot support."""
    entry = catalog.strategy(strategy)
    if entry.has_servers:
        if catalog.optimizer(train.optimizer).by_layer:
            text = f"steps whole layers, and under {strategy} a server may hold a part of one. Use another strategy."
            yield _problem(train, "optimizer", text, "run.strategy")
        if train.clip_norm > 0:
            text = f"under {strategy} every server sees its own part of the gradient, and none its whole length."
            yield _problem(train, "clip_norm", text, "run.strategy")
    if train.average_epochs > 0 and entry.own_weights:
        text = f"under {strategy} every rank has weights of its own between two meetings: there is no one average."
        yield _problem(train, "average_epochs", text, "run.strategy")


def _parts(train: TrainSettings, ranks: int) -> Iterator[Problem]:
    if train.accumulate < 2:
        return
    if train.sync_batchnorm:
        text = "ranks with parts of different numbers would wait for one another in train.sync_batchnorm."
        yield _problem(train, "accumulate", f"{text} Leave one of them out.", "sync_batchnorm")
    batch = train.batch_per_rank or (train.batch_global or 0) // ranks
    if 0 < batch < train.accumulate:
        text = f"is more than the {batch} samples that a rank has in a step."
        yield _problem(train, "accumulate", text, "batch_global", "batch_per_rank", "run.ranks")


def _epochs(train: TrainSettings, ranks: int) -> int | None:
    if train.epochs is None or train.epochs_rule != "divide-by-ranks":
        return train.epochs
    return math.ceil(train.epochs / ranks)


def _problem(train: TrainSettings, key: str, text: str, *others: str) -> Problem:
    about = (key, *others)
    paths = tuple(path if "." in path else f"train.{path}" for path in about)
    return Problem(paths, f"train.{key} = {shown(getattr(train, key))}: {text}")


def noise_problems(study: Study, ranks: tuple[int, ...]) -> Iterator[Problem]:
    """Mistakes in measuring gradient noise, for itself or for AdaScale, in one combination of a study's factors."""
    train, most = study.train, max(ranks, default=1)
    every = f"train.noise_every = {train.noise_every}"
    if train.noise_every < 0:
        yield Problem(("train.noise_every",), f"{every}: must be 0 or more.")
    if train.noise_every > 0:
        yield from _visible(study, "train.noise_every", every, most)
        if most * train.accumulate == 1:
            yield Problem(
                ("train.noise_every", "run.ranks", "train.accumulate"),
                f"{every}: noise is what parts of a step differ by, and one rank computes a step as a whole. "
                "Give 2 ranks or more, or train.accumulate = 2 or more.",
            )
    if train.lr_rule == "adascale":
        yield from _visible(study, "train.lr_rule", 'train.lr_rule = "adascale"', most)
        yield from _adascale(study, ranks)


def _visible(study: Study, key: str, given: str, most: int) -> Iterator[Problem]:
    """Mistakes if a rank does not have both its own gradient and the mean gradient."""
    strategy = study.run.strategy
    if most > 1 and catalog.known("strategy", strategy) and not catalog.strategy(strategy).shows_noise:
        showing = [name for name, entry in catalog.entries("strategy") if entry.shows_noise]
        yield Problem(
            (key, "run.strategy"),
            f"{given}: under {strategy} no rank has the mean gradient as it is, so that its noise cannot be measured. "
            f"Use one of {', '.join(showing)}.",
        )
    if study.train.sync_batchnorm:
        text = f"{given}: with train.sync_batchnorm the gradient of one rank hangs on the samples of all others"
        yield Problem((key, "train.sync_batchnorm"), f"{text}, which is no longer noise. Leave one of them out.")


def _adascale(study: Study, ranks: tuple[int, ...]) -> Iterator[Problem]:
    train, given = study.train, 'train.lr_rule = "adascale"'
    for key, optimizer in (("train.optimizer", train.optimizer), ("finetune.optimizer", study.finetune.optimizer)):
        other = bool(optimizer) and not catalog.optimizer(optimizer).plain_sgd
        if other and (key == "train.optimizer" or study.finetune.epochs > 0):
            text = f'{given}: is a rule for SGD, not for {shown(optimizer)}. Give {key} = "sgd", or another rule.'
            yield Problem(("train.lr_rule", key), text)
    if train.batch_global is not None and train.lr_batch is None:
        yield Problem(
            ("train.lr_rule", "train.lr_batch"),
            f"{given}: does nothing as long as the batch is the one that train.lr is meant for. Give train.lr_batch.",
        )
    batches = {count: train.batch_global or (train.batch_per_rank or 0) * count for count in ranks}
    alone = batches.get(1)
    if alone is not None and train.lr_batch not in (None, alone) and train.accumulate == 1:
        yield Problem(
            ("train.lr_rule", "train.lr_batch", "train.accumulate", "run.ranks"),
            f"{given}: one rank that computes its {alone} samples as a whole cannot see how much they differ. "
            f"Give train.accumulate = 2 or more, or train.lr_batch = {alone}.",
        )


def target_problems(study: Study) -> Iterator[Problem]:
    """A target that is not an accuracy, or one without a validation set."""
    target, dataset = study.train.target_accuracy, study.data.dataset
    if target is None:
        return
    if not 0 < target < 1:
        yield mistake("train.target_accuracy", target, "must be a fraction above 0 and below 1, e.g. 0.98.")
    elif study.data.validation == 0 and (_as_arrays(dataset) or dataset.endswith(".npz")):
        text = "it is looked for in the validation accuracy of every epoch, and nothing is held out for validation."
        yield mistake("train.target_accuracy", target, f"{text} Add data.validation = 0.1.", "data.validation")


def _as_arrays(dataset: str) -> bool:
    """Whether a data set of the catalog has no validation set: arrays have none, image folders may."""
    return catalog.known("dataset", dataset) and not catalog.dataset(dataset).image_folder
