"""Paceline: how training on more than one process scales, where the time goes, and what it costs.

>>> import paceline
>>> results = paceline.study("my-study.toml")      # doctest: +SKIP
>>> print(results.table())                         # doctest: +SKIP

Importing it costs milliseconds: a function is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paceline import errors as errors
from paceline.errors import PacelineError as PacelineError

if TYPE_CHECKING:
    from paceline.app import Results as Results
    from paceline.app import compare as compare
    from paceline.app import doctor as doctor
    from paceline.app import export as export
    from paceline.app import open_results as open_results
    from paceline.app import report as report
    from paceline.app import run as run
    from paceline.app import study as study
    from paceline.app import trace as trace
    from paceline.app import train as train
    from paceline.app import tune as tune
    from paceline.app import watch as watch

__version__ = "0.1.0"

__all__ = [
    "PacelineError",
    "Results",
    "__version__",
    "compare",
    "doctor",
    "errors",
    "export",
    "open_results",
    "report",
    "run",
    "study",
    "trace",
    "train",
    "tune",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    from paceline import app

    return getattr(app, name)


def __dir__() -> list[str]:
    return sorted(__all__)
