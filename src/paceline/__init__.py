"""Paceline: how training on more than one process scales, where the time goes, and what it costs.

>>> import paceline
>>> results = paceline.study("my-study.toml")      # doctest: +SKIP
>>> print(results.table())                         # doctest: +SKIP

Importing it costs milliseconds: every name below is imported when it is first used.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.api import Results as Results
    from paceline.api import study as study
    from paceline.errors import (
        DataError,
        FolderError,
        ModelError,
        PacelineError,
        RankError,
        RequestError,
        RunError,
        StorageError,
        StudyFileError,
    )

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "FolderError",
    "ModelError",
    "PacelineError",
    "RankError",
    "RequestError",
    "Results",
    "RunError",
    "StorageError",
    "StudyFileError",
    "__version__",
    "study",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    import importlib

    if name == "study":
        return importlib.import_module("paceline.study")
    return getattr(importlib.import_module("paceline.api" if name == "Results" else "paceline.errors"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _CallablePackage(ModuleType):
    """`paceline.study` is a package, and calling it runs a study."""

    def __call__(self, *args: Any, **options: Any) -> Results:
        from paceline.api import study as run

        return run(*args, **options)

    @property
    def __signature__(self) -> Any:
        import inspect

        from paceline.api import study as run

        return inspect.signature(run)


class _Package(ModuleType):
    """Makes the package `paceline.study` callable at the moment Python binds it to its name here.

    Whoever imports one of its modules would otherwise put a plain module in the function's place.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name == "study" and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
