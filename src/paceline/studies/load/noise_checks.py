"""What cannot be right where gradient noise is to be measured, for itself or for AdaScale's learning rate."""

from __future__ import annotations

from collections.abc import Iterator

from paceline import catalog
from paceline.records.study import Study
from paceline.studies.load.keys import Problem, shown


def problems(study: Study, ranks: tuple[int, ...]) -> Iterator[Problem]:
    """Everything that is wrong with one combination of a study's factors."""
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
    """Whether a rank sees its own gradient and the mean one."""
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
