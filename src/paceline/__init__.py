"""Paceline: how training on more than one process scales, where the time goes, and what it costs.

>>> import paceline
>>> results = paceline.study("my-study.toml")      # doctest: +SKIP
>>> print(results.table())                         # doctest: +SKIP

Importing it costs milliseconds: every name below is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.api import Results as Results
    from paceline.api import open_results as open_results
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
    "open_results",
    "study",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    import importlib

    home = "paceline.api" if name in ("Results", "open_results", "study") else "paceline.errors"
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
