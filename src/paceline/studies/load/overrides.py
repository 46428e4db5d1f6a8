"""`--set train.lr=0.01`: values that override a study file.

The value is parsed as TOML. If that fails, or if the key takes text, the value is the text itself:
`run.strategy=flat` needs no quotes. A list needs no brackets if its values cannot
have commas: `run.ranks=1,2`, `run.strategy=ddp,flat`. Values from options and from Python
are not parsed.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import catalog
from paceline.studies.load.files import absolute, absolute_dataset, absolute_model, data_path, model_path
from paceline.studies.load.keys import (
    COMMA_FREE,
    FIXED,
    KEYS,
    NUMBERS,
    TEXTS,
    Problem,
    home,
    open_section,
    shown,
    unknown_key,
    unknown_section,
)

Tables = dict[str, Any]

# A study has one of each pair; overriding one removes the other.
_RIVALS = (
    ("train.batch_global", "train.batch_per_rank"),
    ("train.epochs", "train.steps"),
    ("run.ranks", "run.ranks_per_host"),
)
# Lists of text whose items never have commas, unlike options of a scheduler.
_PLAIN_LISTS = ("launch.machines", "launch.modules")


def replaced(tables: Tables, values: Mapping[str, object]) -> Tables:
    """The tables with other values for some keys; rivals of these keys are removed."""
    result = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for path, value in values.items():
        section, key = path.split(".", 1)
        table = result.setdefault(section, {})
        if isinstance(table, dict):  # anything else is reported later
            table[key] = value
            for rival in rivals(path):
                if rival not in values:
                    table.pop(rival.split(".", 1)[1], None)
    return result


def rivals(path: str) -> list[str]:
    """The keys that this one excludes."""
    return [other for pair in _RIVALS if path in pair for other in pair if other != path]


def parsed(overrides: Sequence[str], given: Mapping[str, object]) -> tuple[dict[str, object], list[Problem]]:
    """path -> value of every valid override, and a problem for every other.

    `overrides` are texts such as `train.lr=0.01`; `given` are Python values, which have priority.
    """
    values: dict[str, object] = {}
    problems: list[Problem] = []
    for override in overrides:
        path, equals, text = (part.strip() for part in override.partition("="))
        if not equals or not path:
            problems.append(Problem((override,), f"--set {override}: must be section.key=value, e.g. train.lr=0.01."))
        elif (problem := _wrong_path(path, text)) is not None:
            problems.append(problem)
        else:
            values[path] = _value(path, text)
    for path, value in given.items():
        if (problem := _wrong_path(path, shown(value))) is not None:
            problems.append(problem)
        else:
            values[path] = _located(path, _plain(value))
    return values, problems


def _plain(value: object) -> object:
    """A Python value as a study file would have it: sequences are lists, paths are text."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _wrong_path(path: str, text: str) -> Problem | None:
    """The mistake in the path of an override; None if it is valid."""
    section, dot, key = path.partition(".")
    if dot:
        return misnamed(section, key)
    meant = home(path)
    hint = f"Did you mean {meant}={text}?" if meant else "It has to begin with a section, e.g. train.lr=0.01."
    return Problem((path, meant or path), f"--set {path}={text}: no section is named. {hint}")


def misnamed(section: str, key: str) -> Problem | None:
    """The mistake in the name of a setting; None if it exists."""
    if section not in KEYS:
        return unknown_section(section, [key])
    return None if key in KEYS[section] or open_section(section) else unknown_key(section, key)


def _value(path: str, text: str) -> object:
    section, key = path.split(".", 1)
    kind = KEYS[section].get(key)
    if kind == NUMBERS and not text.startswith("["):
        return toml_or_text(f"[{text}]")
    value = _single(kind, text)
    if value == text and "," in text and _is_list(path, text):
        value = [_single(kind, item.strip()) for item in text.split(",")]
    return _located(path, value)


def _located(path: str, value: object) -> object:
    """A value, or a list of values, with paths relative to the current directory."""
    if isinstance(value, list):
        return [_located(path, item) for item in value]
    section, key = path.split(".", 1)
    return _from_here(section, key, value) if isinstance(value, str) else value


def _is_list(path: str, text: str) -> bool:
    """Whether commas separate values; for names and options of a model only if each value is known."""
    if path in COMMA_FREE or path in FIXED or path in _PLAIN_LISTS:
        return True
    items, (section, key) = [item.strip() for item in text.split(",")], path.split(".", 1)
    if (section, key) in (("data", "dataset"), ("model", "name")):
        return all(catalog.known(key if section == "data" else section, item) for item in items)
    return section == "model" and all(not isinstance(toml_or_text(item), str) for item in items)


def _single(kind: object, text: str) -> object:
    """One value; for a text setting, what TOML reads as a number is text."""
    value = toml_or_text(text)
    as_it_stands = kind in (str, TEXTS) and not isinstance(value, str | list)
    return text if as_it_stands else value


def toml_or_text(text: str) -> object:
    """A value parsed as TOML: 3 is a number, "3" is text; anything invalid is text."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if list(table) == ["value"] else text


def _from_here(section: str, key: str, value: str) -> str:
    """A path on the command line is relative to the current directory, not to the study file."""
    if (section, key) == ("data", "dataset"):
        path, whole = data_path(value, Path.cwd()), absolute_dataset(value, Path.cwd())
    elif (section, key) == ("model", "name"):
        path, whole = model_path(value, Path.cwd()), absolute_model(value, Path.cwd())
    elif (section, key) == ("script", "path") or (
        (section, key) == ("model", "weights") and value.endswith(catalog.WEIGHTS_ENDINGS)
    ):
        path, whole = absolute(value, Path.cwd()), str(absolute(value, Path.cwd()))
    else:
        return value
    return whole if path is not None and os.path.exists(path) else value
