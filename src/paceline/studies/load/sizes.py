"""Two sizes of a study: full, as in its file, and small, with the overrides of `[small]`.

    [train]                     [small]
    epochs = 12                 train.epochs = 2         overrides the 12, like --set

The small size is the default, because a first run of a study should be short.
`--set` applies to both sizes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from paceline.studies.load.keys import Problem, shown
from paceline.studies.load.overrides import Tables, misnamed, replaced, rivals
from paceline.studies.load.toml_text import toml_value

SMALL, FULL = "small", "full"
SIZES = (SMALL, FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """The tables of a study file at one of its sizes."""

    tables: Tables
    """With the chosen size as `study.size`, and without `[small]`."""
    full: dict[str, str]
    """At the small size: path of a setting -> what the file has for the full one, as TOML; empty if it is open."""
    problems: tuple[Problem, ...] = ()


def sized(tables: Tables, size: str | None, overridden: Collection[str] = ()) -> Sized:
    """The tables at a size, or at the file's default size; `overridden` are the paths of --set."""
    rest = {name: table for name, table in tables.items() if name != SMALL}
    if size is not None and size not in SIZES:
        return Sized(tables=rest, full={}, problems=(_no_such_size(size),))
    if SMALL not in tables:
        wrong = size == SMALL and _study(rest).get("size") != SMALL
        return Sized(tables=rest, full={}, problems=(_one_size(),) if wrong else ())
    if not isinstance(tables[SMALL], dict):
        text = f"{SMALL} = {shown(tables[SMALL])}: must be a section, [{SMALL}] on a line of its own."
        return Sized(tables=rest, full={}, problems=(Problem((SMALL,), text),))
    values, problems = _settings(tables[SMALL])
    chosen = size or _study(rest).get("size") or SMALL
    rest = replaced(rest, {"study.size": chosen})
    if chosen != SMALL:
        return Sized(tables=rest, full={}, problems=problems)
    full = {path: _as_written(rest, path) for path in _touched(rest, values, overridden)}
    return Sized(tables=replaced(rest, values), full=full, problems=problems)


def _settings(table: dict[str, Any]) -> tuple[dict[str, object], tuple[Problem, ...]]:
    """path -> value of every setting in `[small]`, and the mistakes in it."""
    values: dict[str, object] = {}
    problems: list[Problem] = []
    for path, value in _flat(table).items():
        section, dot, key = path.partition(".")
        if not dot:
            text = f"small.{path} = {shown(value)}: must name a setting with its section, e.g. train.epochs = 2."
            problems.append(Problem((path,), text))
        elif section == "study":
            problems.append(Problem((path,), f"small.{path} = {shown(value)}: [study] is the same at every size."))
        elif (problem := misnamed(section, key)) is not None:
            problems.append(problem)
        else:
            values[path] = value
    return values, tuple(problems)


def _flat(table: dict[str, Any]) -> dict[str, object]:
    """`"train.epochs" = 2` and `train.epochs = 2`, which is a nested table in TOML, by path."""
    flat: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, dict) and "." not in name:
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def _touched(tables: Tables, values: dict[str, object], overridden: Collection[str]) -> list[str]:
    """The settings that differ from the full size, except those of --set."""
    touched = dict.fromkeys(values)
    for path in values:
        touched |= {rival: None for rival in rivals(path) if _as_written(tables, rival)}
    return [path for path in touched if path not in overridden and not set(rivals(path)) & set(overridden)]


def _as_written(tables: Tables, path: str) -> str:
    section, key = path.split(".", 1)
    table = tables.get(section)
    return toml_value(table[key]) if isinstance(table, dict) and key in table else ""


def _study(tables: Tables) -> dict[str, Any]:
    table = tables.get("study")
    return table if isinstance(table, dict) else {}


def _no_such_size(size: str) -> Problem:
    return Problem(("study.size",), f"--size {size}: must be small or full.")


def _one_size() -> Problem:
    return Problem((SMALL,), "--size small: the study has no [small], and so one size alone. Leave --size out.")
