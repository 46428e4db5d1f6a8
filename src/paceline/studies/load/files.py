"""The user's files in a study: a model file, arrays, a script.

[model]  name = "my_file.py:build"     relative to the study file
[data]   dataset = "arrays/mine.npz"   or with the format: "npz:arrays/mine", "idx:folder", "images:folder"
[script] path = "train.py"             instead of both
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from paceline import catalog
from paceline.errors import ModelError
from paceline.records.settings import ModelSettings
from paceline.records.study import Study

Value = str | int | float | bool


def model_path(name: str, base: Path) -> Path | None:
    """The absolute path of the file in `my_file.py:build`; None for a model of the catalog."""
    if catalog.known("model", name):
        return None
    return absolute(name.rsplit(":", 1)[0], base)


def weights_path(model: ModelSettings, base: Path) -> Path | None:
    """The absolute path of the user's weights for a pretrained network; None if there are none."""
    weights = model.options.get("weights")
    if not catalog.model(model.name).pretrained or not isinstance(weights, str) or weights in catalog.WEIGHTS:
        return None
    return absolute(weights, base)


def data_path(dataset: str, base: Path) -> Path | None:
    """The absolute path of the user's arrays; None for a data set of the catalog."""
    return None if catalog.known("dataset", dataset) else absolute(_form_and_path(dataset)[1], base)


def _form_and_path(dataset: str) -> tuple[str, str]:
    form, colon, path = dataset.partition(":")
    return (form + colon, path) if colon and form in catalog.DATA_FORMS else ("", dataset)


def absolute(text: str, base: Path) -> Path:
    """A path of a study file, `~` included, as an absolute one."""
    # Not resolved: a symbolic link is followed when the file is read.
    return (base / expanded(text)).absolute()


def expanded(text: str | Path) -> Path:
    """A path with `~` replaced by the user's home; `~name` is unchanged."""
    path = Path(text)
    return Path.home().joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def absolute_model(name: str, base: Path) -> str:
    """A model's name with an absolute path."""
    path = model_path(name, base)
    _, colon, function = name.rpartition(":")
    return name if path is None else f"{path}{colon}{function if colon else ''}"


def absolute_weights(model: ModelSettings, base: Path) -> ModelSettings:
    """The model's settings with the absolute path of its weights."""
    path = weights_path(model, base)
    return model if path is None else replace(model, options={**model.options, "weights": str(path)})


def absolute_dataset(dataset: str, base: Path) -> str:
    """A data set's name with an absolute path."""
    path = data_path(dataset, base)
    return dataset if path is None else f"{_form_and_path(dataset)[0]}{path}"


def with_absolute_paths(study: Study, base: Path) -> Study:
    """The study with absolute paths, also in its factors."""
    return replace(
        study,
        model=replace(absolute_weights(study.model, base), name=absolute_model(study.model.name, base)),
        data=replace(study.data, dataset=absolute_dataset(study.data.dataset, base)),
        script=study.script and replace(study.script, path=str(absolute(study.script.path, base))),
        vary={
            path: tuple(_absolute_value(study, path, v, base) for v in values) for path, values in study.vary.items()
        },
    )


def _absolute_value(study: Study, path: str, value: Value, base: Path) -> Value:
    """One value of a factor, with an absolute path if it is a file."""
    if path == "data.dataset":
        return absolute_dataset(str(value), base)
    if path == "model.name":
        return absolute_model(str(value), base)
    if path == "model.weights":
        varied = replace(study.model, options={**study.model.options, "weights": value})
        return str(absolute_weights(varied, base).options["weights"])
    return value


def model_digest(path: Path | None) -> str:
    """SHA-256 of the user's model file, or of the weights of a pretrained network; empty if neither is the user's.

    Assumes: what the file imports does not change between two runs of a study.
    """
    if path is None:
        return ""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ModelError(
            f"The file {path} of the model cannot be read: {error.strerror}.",
            right="A model of your own, my_file.py:function, and weights of your own lie relative to the study file.",
        ) from error
