"""The functions behind the verbs, shared by Python and the command line. A name is imported at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.app.comparison import compare as compare
    from paceline.app.live_view import watch as watch
    from paceline.app.lr_tuning import tune as tune
    from paceline.app.readiness import doctor as doctor
    from paceline.app.report_files import report as report
    from paceline.app.results_view import Results as Results
    from paceline.app.results_view import open_results as open_results
    from paceline.app.single_run import run as run
    from paceline.app.single_run import train as train
    from paceline.app.study_execution import study as study
    from paceline.app.trace_export import export as export
    from paceline.app.trace_view import trace as trace

# name -> the module of this package that defines it
_MODULES = {
    "Results": "results_view",
    "compare": "comparison",
    "doctor": "readiness",
    "export": "trace_export",
    "open_results": "results_view",
    "report": "report_files",
    "run": "single_run",
    "study": "study_execution",
    "trace": "trace_view",
    "train": "single_run",
    "tune": "lr_tuning",
    "watch": "live_view",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'paceline.app' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"paceline.app.{_MODULES[name]}"), name)
