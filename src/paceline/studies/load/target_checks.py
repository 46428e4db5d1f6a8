"""What is wrong with the accuracy that a study asks times for."""

from __future__ import annotations

from collections.abc import Iterator

from paceline import catalog
from paceline.records.study import Study
from paceline.studies.load.keys import Problem


def problems(study: Study) -> Iterator[Problem]:
    """A target that is no accuracy, or one that nothing would be held against."""
    target, dataset = study.train.target_accuracy, study.data.dataset
    if target is None:
        return
    if not 0 < target < 1:
        text = f"train.target_accuracy = {target}: must be a fraction above 0 and below 1, e.g. 0.98."
        yield Problem(("train.target_accuracy",), text)
    elif study.data.validation == 0 and (_as_arrays(dataset) or dataset.endswith(".npz")):
        text = "it is looked for in the validation accuracy of every epoch, and nothing is held out for validation."
        yield Problem(
            ("train.target_accuracy", "data.validation"),
            f"train.target_accuracy = {target}: {text} Add data.validation = 0.1.",
        )


def _as_arrays(dataset: str) -> bool:
    """Whether a data set of the catalog comes as arrays, without a validation set; image folders may bring one."""
    return catalog.known("dataset", dataset) and not catalog.dataset(dataset).image_folder
