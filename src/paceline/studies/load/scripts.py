"""A user's script in a study: its file, and the settings that a study of it may have.

    [script] path, arguments ──▶ Point.script, script_digest ──▶ N × rank: the script as `__main__`

A script has its own data, model, training and parallelism. Its study sets the number of ranks, hosts,
threads and repeats.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from paceline import catalog
from paceline.errors import RequestError
from paceline.records.run import RankReport, ScriptFigures
from paceline.records.settings import ScriptSettings
from paceline.studies.load.files import absolute
from paceline.studies.load.keys import Problem, mistake

_Value = TypeVar("_Value", int, float)
STRATEGY = "script"
"""Instead of a strategy's name."""
DEFAULTS: dict[str, Any] = {
    "strategy": STRATEGY,
    # Data-loading workers would share the cores of their rank. torchrun does not pin either.
    "pin": False,
    # Steps of a script may take long. The default timeout of torch.distributed is half an hour.
    "heartbeat_s": 1800.0,
}
"""Defaults of `[run]` for a script."""
_BROUGHT = {
    "data": "data",
    "augment": "images",
    "model": "model",
    "train": "optimizer, batch and length of training",
    "finetune": "phases",
}
_OPTIONS = catalog.RUN_OPTIONS
_LONG = 80


def script_tables(script: str | Path, arguments: Sequence[str]) -> dict[str, Any]:
    """The tables of a study file for a script on the command line; RequestError if it cannot be run."""
    path = absolute(str(script), Path.cwd())
    fault = script_fault(path)
    if fault:
        raise RequestError(
            f"{script} {fault}",
            right="A script is a Python file, as `python FILE` would run it.",
            next="For example: paceline run -n 2 -- train.py --epochs 3",
        )
    words = shlex.join([path.name, *arguments])
    title = words if len(words) <= _LONG else f"{words[: _LONG - 1]}…"
    return {
        "study": {"name": _folder_name(path), "title": title},
        "script": {"path": str(path), "arguments": list(arguments)},
    }


def _folder_name(path: Path) -> str:
    """The name of the study folder: `train` for `train.py`."""
    return re.sub(r"[^\w+-]+", "-", path.stem)[:100].strip("+-") or "script"


def script_fault(path: Path) -> str:
    """What is wrong with a script, to follow its name in a sentence; empty if it is valid."""
    if path.is_dir():
        return "is a folder."
    try:
        source = path.read_bytes()
    except FileNotFoundError:
        return "does not exist."
    except OSError as error:
        return f"cannot be read: {error.strerror}."
    try:
        compile(importlib.util.decode_source(source), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        return f"is not a Python script{where}: {error.msg}."
    except ValueError as error:  # not text: a UnicodeDecodeError is a ValueError
        return f"is not a Python script: {error}."
    return ""


def script_digest(path: Path) -> str:
    """SHA-256 of a script's file.

    Assumes: what it imports and reads does not change between two runs of a study.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RequestError(f"The script {path} cannot be read: {error.strerror}.") from error


def unused_settings(tables: Mapping[str, Any]) -> Iterator[Problem]:
    """Settings that have no meaning in a study of a script."""
    if not isinstance(tables.get("script"), Mapping):
        return
    for section, words in _BROUGHT.items():
        if section in tables:
            text = f"[{section}]: does not go with [script]: the script brings its own {words}. Leave it out."
            yield Problem((section,), text)
    run = tables.get("run")
    if not isinstance(run, Mapping):
        return
    if run.get("strategy", STRATEGY) != STRATEGY:
        yield mistake("run.strategy", run["strategy"], "the script itself divides its work over ranks. Leave it out.")
    for option in _OPTIONS:
        if option in run:
            yield mistake(f"run.{option}", run[option], "belongs to a strategy of Paceline's own, not to a script.")


def problems(script: ScriptSettings, base: Path) -> Iterator[Problem]:
    """Mistakes in `[script]`."""
    if not script.path:
        yield Problem(("script.path",), 'script.path is missing: name a Python file, e.g. path = "train.py".')
    elif fault := script_fault(absolute(script.path, base)):
        yield mistake("script.path", script.path, fault)
    if any("\0" in argument for argument in script.arguments):
        yield Problem(("script.arguments",), "script.arguments: no argument of a program can have a zero byte in it.")


def script_figures(ranks: Sequence[RankReport]) -> ScriptFigures:
    """Figures of a script over all ranks; the time is that of the slowest."""
    steps = [report.steps for report in ranks]
    samples, times_s = [report.script.samples for report in ranks], [report.script.timed_s for report in ranks]
    notes = list(dict.fromkeys(note for report in ranks for note in report.script.notes))
    if min(steps) < max(steps):
        notes.append(f"Ranks took different numbers of steps, {min(steps)} to {max(steps)}: the fewest are counted.")
    return ScriptFigures(
        samples=_all(samples, sum),
        timed_s=_all(times_s, max),
        found=tuple(dict.fromkeys(word for report in ranks for word in report.script.found)),
        notes=tuple(notes),
    )


def _all(values: Sequence[_Value | None], together: Callable[[list[_Value]], _Value]) -> _Value | None:
    """One value of all ranks; None if unknown of some rank."""
    known = [value for value in values if value is not None]
    return together(known) if len(known) == len(values) else None
