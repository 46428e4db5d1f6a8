"""Hooks on Keras with the torch backend: its models override `__call__`, and its optimizers are not torch's."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from paceline.probe.hooks.calls import Calls
from paceline.probe.hooks.model_hooks import Models
from paceline.probe.hooks.observer import Observer
from paceline.probe.hooks.patches import Patches


def attach_keras(patches: Patches, observer: Observer, models: Models, calls: Calls) -> None:
    """Install hooks on Keras when the script imports it; nothing if a version has other classes."""

    def watch_models(module: ModuleType) -> None:
        model = getattr(module, "Model", None)
        if model is not None:
            observer.recognise("Keras")
            patches.replace(model, "__call__", lambda original: _calling(models, original))

    def watch_optimizers(module: ModuleType) -> None:
        optimizer = getattr(module, "BaseOptimizer", None)
        if optimizer is not None:
            patches.replace(optimizer, "apply", lambda original: _applying(calls, original))

    patches.when_imported("keras.src.models.model", watch_models)
    patches.when_imported("keras.src.optimizers.base_optimizer", watch_optimizers)


def _calling(models: Models, original: Any) -> Any:
    @functools.wraps(original)
    def __call__(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(model, torch.nn.Module):  # another backend than torch
            return original(model, *args, **kwargs)
        return models.call(model, functools.partial(original, model), args, kwargs)

    return __call__


def _applying(calls: Calls, original: Any) -> Any:
    @functools.wraps(original)
    def apply(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
        calls.about_to_update(optimizer)
        result = original(optimizer, *args, **kwargs)
        calls.updated(optimizer)
        return result

    return apply
