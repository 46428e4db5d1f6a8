"""The models of the catalog, and the layers of one of them or of the user's own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline import catalog
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.training.models.summary import ModelSummary


def model_descriptions() -> dict[str, str]:
    """Every model and model family of the catalog, with its description."""
    models = {name: catalog.description("model", name) for name in catalog.names("model")}
    return models | {f"{family}:NAME": entry.text for family, entry in catalog.FAMILIES.items()}


def model_summary(
    name: str,
    *,
    shape: Sequence[int] = (28, 28, 1),
    classes: int = 10,
    options: Mapping[str, Any] | Sequence[str] = (),
) -> ModelSummary:
    """The layers, output shapes and parameters of a model.

    `name` is a model of the catalog or your own, such as my_file.py:build. `shape` is height, width and channels of
    an image; `options` are {"layers": 3} or ["layers=3"].
    """
    if len(shape) != 3 or min(shape) < 1:
        raise RequestError(
            f"The shape {','.join(map(str, shape))} is not the shape of an image.",
            right="Height, width and channels, each at least 1: 28,28,1",
            next="See: paceline models --help",
        )
    if classes < 1:
        raise RequestError(
            f"A model cannot have {classes} classes.", right="At least 1.", next="See: paceline models --help"
        )
    values = dict(options) if isinstance(options, Mapping) else dict(map(_option, options))
    file = _model_file(name)
    from paceline.training.models.summary import summary  # imports torch, after all cheap checks

    with contextlib.redirect_stdout(sys.stderr):  # the user's model may print
        return summary(name, (shape[0], shape[1], shape[2]), classes, values, model_file=file)


def _model_file(name: str) -> Path | None:
    """The file of the user's own model, relative to the current folder; None for a model of the catalog."""
    from paceline.studies.load.checks import model_fault
    from paceline.studies.load.files import model_path

    fault = model_fault(name, Path.cwd())
    if fault:
        raise RequestError(f"{name}: {fault}", next="See: paceline models")
    return model_path(name, Path.cwd())


def _option(text: str) -> tuple[str, Any]:
    """The name and value of `layers=3`."""
    from paceline.studies.load.overrides import toml_or_text

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise RequestError(
            f"The model option {text!r} is not KEY=VALUE.",
            right="For example: layers=3",
            next="See: paceline models --help",
        )
    return key.strip(), toml_or_text(value)
