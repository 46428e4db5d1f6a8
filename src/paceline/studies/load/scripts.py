"""A script of the user's own in a study: its file, and what else a study of it may say.

    [script] path, arguments ──▶ Point.script, script_digest ──▶ N × rank: the script as `__main__`

A script brings its own data, model, training and way of dividing the work. What is left to a study is how many ranks
run it, where, with how many threads, and how often.
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
"""In place of a strategy's name."""
DEFAULTS: dict[str, Any] = {
    "strategy": STRATEGY,
    # Workers that load a script's data would share the cores of their rank: torchrun pins nothing either.
    "pin": False,
    # Nothing is known of what a script does between its steps. torch itself gives a peer half an hour.
    "heartbeat_s": 1800.0,
}
"""What of `[run]` is otherwise where there is a script and the study leaves it open."""
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
    """A study file's tables for a script that is named on a command line; RequestError if there is none such."""
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
    """A name for a folder, from that of a file: `train` of `train.py`."""
    return re.sub(r"[^\w+-]+", "-", path.stem)[:100].strip("+-") or "script"


def script_fault(path: Path) -> str:
    """What is wrong with a script, as the end of a sentence that begins with its name; empty if nothing is."""
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
    except ValueError as error:  # bytes that are no text: a UnicodeDecodeError is one
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


def untaken(tables: Mapping[str, Any]) -> Iterator[Problem]:
    """What stands in the tables of a study with a script and would mean nothing there."""
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
    """What is wrong with `[script]` itself."""
    if not script.path:
        yield Problem(("script.path",), 'script.path is missing: name a Python file, e.g. path = "train.py".')
    elif fault := script_fault(absolute(script.path, base)):
        yield mistake("script.path", script.path, fault)
    if any("\0" in argument for argument in script.arguments):
        yield Problem(("script.arguments",), "script.arguments: no argument of a program can have a zero byte in it.")


def script_figures(ranks: Sequence[RankReport]) -> ScriptFigures:
    """What the ranks of a script report of their run, together: the time is that of the slowest."""
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
