"""What is wrong with the accuracy that a study asks times for."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.records.study import Study
from paceline.studies.keys import Problem

_WITHOUT_VALIDATION = ("mnist", "digits", "cifar10", "synthetic")
"""Data sets that bring no validation set of their own; an image folder may."""


def problems(study: Study) -> Iterator[Problem]:
    """A target that is no accuracy, or one that nothing would be held against."""
    target, dataset = study.train.target_accuracy, study.data.dataset
    if target is None:
        return
    if not 0 < target < 1:
        text = f"train.target_accuracy = {target}: must be a fraction above 0 and below 1, e.g. 0.98."
        yield Problem(("train.target_accuracy",), text)
    elif study.data.validation == 0 and (dataset in _WITHOUT_VALIDATION or dataset.endswith(".npz")):
        text = "it is looked for in the validation accuracy of every epoch, and nothing is held out for validation."
        yield Problem(
            ("train.target_accuracy", "data.validation"),
            f"train.target_accuracy = {target}: {text} Add data.validation = 0.1.",
        )
