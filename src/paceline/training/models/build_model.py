"""A model from its settings: of the catalog, or the user's own function.

    [model]
    name = "my_file.py:build"
    width = 64

calls `build(shape=(28, 28, 1), classes=10, width=64)` with those of `shape` and `classes` that
the function takes. The model gets N×C×H×W floats and returns N×classes scores.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

from paceline import catalog
from paceline.errors import ModelError
from paceline.training.models.transfer import Transfer


def build_model(
    name: str,
    options: Mapping[str, Any],
    *,
    shape: tuple[int, int, int],
    classes: int,
    model_file: Path | None = None,
    model_digest: str = "",
) -> nn.Module:
    """The configured module; every failure is a ModelError.

    A file that differs from `model_digest` is refused: its runs would be of another point.
    """
    if model_file and model_digest and hashlib.sha256(_source(model_file)).hexdigest() != model_digest:
        raise ModelError(
            f"{model_file} was changed while its study ran.",
            right="All runs of a study must train the same model.",
            next="Run the study again: the changed file is another point, and finished runs stay valid.",
        )
    builder = _builder(name, model_file)
    arguments = _arguments(name, builder, options, {"shape": shape, "classes": classes})
    try:
        model = builder(**arguments)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"The model {name!r} could not be built: {type(error).__name__}: {error}{_where(error, model_file)}.",
            right=f"It was called with {_call_text(arguments)}.",
            next="Correct the function, or the options in [model].",
        ) from error
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"The model function {name!r} returned {type(model).__name__}.",
            right="It must return a torch.nn.Module.",
        )
    return model


def init_as_keras(model: nn.Module) -> None:
    """Draw the weights anew as Keras does; of a network with a pretrained base, those of its head alone.

    Kernels of dense layers and convolutions are uniform in ± √(6 / (inputs + outputs)) (Glorot and Bengio 2010), their
    biases 0. PyTorch draws both uniform in ± 1 / √inputs: for a dense layer of 128 on 9,216 inputs that is ± 0.0104
    where Keras has ± 0.0253. Batch normalisation starts with 1 and 0 in both.
    """
    for module in (model.head if isinstance(model, Transfer) else model).modules():
        if isinstance(module, nn.Linear | _ConvNd):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def _source(model_file: Path) -> bytes:
    try:
        return model_file.read_bytes()
    except OSError as error:
        raise ModelError(f"{model_file} cannot be read: {error.strerror}.") from error


def _builder(name: str, model_file: Path | None) -> Callable[..., Any]:
    if model_file is None:
        return catalog.load("model", name)
    function = name.rsplit(":", 1)[1]
    module_name = f"paceline_user_model_{model_file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, model_file)
    if spec is None or spec.loader is None:
        raise ModelError(f"{model_file} is not a Python file.", right="A model is named as `my_file.py:function`.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(model_file.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"{model_file} could not be imported: {type(error).__name__}: {error}{_where(error, model_file)}.",
            next=f"Try it alone: python {model_file}",
        ) from error
    finally:
        sys.path.remove(str(model_file.parent))
    found = getattr(module, function, None)
    if not callable(found):
        own = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        near = catalog.nearest(function, own)
        raise ModelError(
            f"{model_file} has no function called {function!r}." + (f" Did you mean {near!r}?" if near else ""),
            right=f"It has: {', '.join(own) or 'no function at all'}.",
        )
    return found


def _arguments(
    name: str, builder: Callable[..., Any], options: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    parameters = inspect.signature(builder).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return {**context, **options}
    unknown = [key for key in options if key not in parameters]
    if unknown:
        known = [key for key in parameters if key not in context]
        near = catalog.nearest(unknown[0], known)
        raise ModelError(
            f"The model {name!r} has no option called {unknown[0]!r}." + (f" Did you mean {near!r}?" if near else ""),
            right=f"Its options are: {', '.join(known) or 'none'}.",
        )
    return {key: value for key, value in context.items() if key in parameters} | dict(options)


def _where(error: BaseException, model_file: Path | None) -> str:
    """Line of the user's file at which an error occurred."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if model_file and Path(f.filename) == model_file]
    return f" (line {frames[-1].lineno} of {model_file})" if frames else ""


def _call_text(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in arguments.items()) or "no arguments"
