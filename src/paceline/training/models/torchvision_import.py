"""Import of torchvision.models, also if its compiled operators do not load.

A torchvision built for another PyTorch (for example CUDA and CPU builds) cannot load its C++ operators, and then fails
on import although the classifiers need none: it registers shape functions for undeclared operators. Operators that are
declared here first are known by name, and fail only when called.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import torch

from paceline.errors import ModelError

# Operators that torchvision describes when it is imported, whether or not they were loaded: name and signature.
_OPERATORS = {
    "torchvision::nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


@functools.cache
def torchvision_models() -> ModuleType:
    """The module `torchvision.models`."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            "torchvision's networks need torchvision, which is not installed.",
            right="It comes with Paceline's extra `vision`.",
            next="Install it with `pip install 'paceline[vision]'`, or use `--set model.name=efficientnet-lite0`.",
        )
    if not _loads(Path(next(iter(spec.submodule_search_locations)))):
        for name, signature in _OPERATORS.items():
            torch.library.define(name, signature)
    try:
        return importlib.import_module("torchvision.models")
    except (ImportError, RuntimeError) as error:
        raise ModelError(
            f"The installed torchvision does not match this PyTorch: {error}",
            right=f"PyTorch is {torch.__version__}; each torchvision needs one version of it.",
            next="Install the matching one, or use `--set model.name=efficientnet-lite0`.",
        ) from error


def _loads(folder: Path) -> bool:
    """Whether torchvision's compiled operators can be loaded."""
    for library in (*folder.glob("_C*.so"), *folder.glob("_C*.pyd")):
        with contextlib.suppress(OSError):
            torch.ops.load_library(str(library))
            return True
    return False
