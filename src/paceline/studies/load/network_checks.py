"""Checks of the options of a pretrained network in `[model]`, without importing torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from paceline import catalog
from paceline.records.study import Study
from paceline.studies.load.files import weights_path
from paceline.studies.load.keys import Problem, mistake

MAX_IMAGE_SIZE = 2048


def problems(study: Study, base: Path) -> Iterator[Problem]:
    """Mistakes in the settings of a pretrained network; none for other models."""
    model, options = study.model, study.model.options
    entry = catalog.model(model.name)
    if not entry.pretrained:
        return
    yield from _weights(study, base)
    if not isinstance(options.get("freeze", True), bool):
        yield _wrong("freeze", options["freeze"], "must be true or false.")
    head = options.get("head", [])
    if not isinstance(head, list | tuple) or not all(_whole(size, 1) for size in head):
        yield _wrong("head", head, "must be a list of the sizes of dense layers before the last one, e.g. [20] or [].")
    kind = options.get("preprocessing", "own")
    if kind not in catalog.PREPROCESSING:
        near = catalog.nearest(str(kind), catalog.PREPROCESSING)
        hint = f" Did you mean {near!r}?" if near else ""
        yield _wrong("preprocessing", kind, f"must be one of {', '.join(catalog.PREPROCESSING)}.{hint}")
    size = options.get("image_size")
    if size is not None and not _whole(size, 1, MAX_IMAGE_SIZE):
        yield _wrong("image_size", size, f"must be a number of pixels from 1 to {MAX_IMAGE_SIZE}.")
    if study.train.precision not in entry.precisions:
        yield mistake(
            "train.precision",
            study.train.precision,
            f"the model {model.name} computes in {' or '.join(entry.precisions)} alone.",
            "model.name",
        )


def _weights(study: Study, base: Path) -> Iterator[Problem]:
    weights, path = study.model.options.get("weights", "imagenet"), weights_path(study.model, base)
    endings = catalog.model(study.model.name).weights_endings
    if not isinstance(weights, str):
        yield _wrong("weights", weights, f"must be {' or '.join(catalog.WEIGHTS)}, or the path of a file.")
    elif path is not None and not weights.endswith(endings):
        near = catalog.nearest(weights, catalog.WEIGHTS)
        hint = f" Did you mean {near!r}?" if near else ""
        known = f"{' or '.join(catalog.WEIGHTS)}, or a file that ends in {', '.join(endings)}"
        yield _wrong("weights", weights, f"must be {known}.{hint}")
    elif path is not None and not os.path.isfile(path):
        yield _wrong("weights", weights, f"there is no file {path}.")


def _wrong(key: str, value: object, text: str) -> Problem:
    return mistake(f"model.{key}", value, text)


def _whole(value: object, least: int, most: int | None = None) -> bool:
    """Whether a value is an integer within its limits, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return value >= least and (most is None or value <= most)
