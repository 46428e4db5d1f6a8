"""Site profiles: settings for all studies on a cluster.

    ~/.config/paceline/sites/NAME.toml      [run] launcher, ranks_per_host       [launch] as in a study file
                 │
                 └─▶ defaults: a study file and --set have priority

All mistakes of a profile are reported at once.
"""

from __future__ import annotations

import re
import tomllib
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paceline import catalog
from paceline.errors import StudyFileError
from paceline.identity import config_folder
from paceline.records.settings import LaunchSettings
from paceline.studies.load.keys import KEYS, Problem, shown
from paceline.units import counted

_TYPES: dict[str, dict[str, Any]] = {
    "run": {"launcher": str, "ranks_per_host": int},
    # A profile cannot name another one.
    "launch": {key: hint for key, hint in typing.get_type_hints(LaunchSettings).items() if key != "site"},
}
_WORDS = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}
_LIST_WORDS = 'a list of texts, e.g. ["one", "two"]'
_STARTS = ["srun", "mpiexec"]
_NAME = re.compile(r"\w[\w.+-]{0,99}", flags=re.ASCII)
_MAX_BYTES = 1_000_000

Tables = dict[str, dict[str, object]]


def site_tables(name: str) -> dict[str, dict[str, object]]:
    """The profile of a site: {"run": {...}, "launch": {...}}; StudyFileError if it is missing or wrong."""
    path = site_file(name)
    if not path.is_file():
        raise _no_such_site(name, path)
    tables = _read(path)
    problems = list(_problems(tables))
    if problems:
        raise StudyFileError(
            "\n".join([f"{path} has {counted(len(problems), 'mistake')}:", *(f"  {p.text}" for p in problems)]),
            next=f"Correct it, then try it out: paceline doctor --site {name}",
        )
    return {section: dict(tables.get(section, {})) for section in _TYPES}


def with_site(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The tables of a study file with the defaults of a site profile."""
    result = dict(tables)
    for section, values in site_tables(name).items():
        own = tables.get(section, {})
        if not isinstance(own, Mapping):
            continue  # reported later
        if section == "run" and "ranks" in own:
            values.pop("ranks_per_host", None)  # the study sets the number of ranks
        result[section] = {**values, **own}
    return result


def site_names() -> tuple[str, ...]:
    """The names of the site profiles of this user."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def site_file(name: str) -> Path:
    """The path of a site profile, which may not exist."""
    if not _NAME.fullmatch(name):
        raise StudyFileError(
            f"{name!r} cannot be the name of a site.",
            right="A file is named after it: letters, digits and . _ + -, at most 100, a letter or digit first.",
            next=_known(),
        )
    return _folder() / f"{name}.toml"


def _folder() -> Path:
    return config_folder() / "sites"


def _known() -> str:
    names = site_names()
    return f"Known sites: {', '.join(names)}." if names else f"There is none yet: a file in {_folder()} makes one."


def _no_such_site(name: str, path: Path) -> StudyFileError:
    near = catalog.nearest(name, site_names())
    return StudyFileError(
        f"There is no site called {name!r}." + (f" Did you mean {near!r}?" if near else ""),
        right=f"Its profile would be {path}.",
        next=_known(),
    )


def _read(path: Path) -> dict[str, Any]:
    """The file as TOML has it."""
    try:
        with path.open("rb") as file:
            return tomllib.loads(file.read(_MAX_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise StudyFileError(f"{path} cannot be read: {error.strerror}.", next="Check its permissions.") from error
    except UnicodeDecodeError as error:
        raise StudyFileError(f"{path} is not UTF-8 text.", right="A profile is TOML, which is always UTF-8.") from error
    except (ValueError, RecursionError) as error:
        reason = str(error)
        raise StudyFileError(
            f"{path} is not TOML: {reason[:1].lower()}{reason[1:]}.",
            right='Sections look like [launch], values like partition = "short".',
            next="See what a profile sets: paceline doctor --help",
        ) from error


def _problems(tables: Mapping[str, Any]) -> Iterator[Problem]:
    """All mistakes of a profile."""
    for name, table in tables.items():
        if name not in _TYPES or not isinstance(table, dict):
            yield _misplaced(name, table)
            continue
        for key, value in table.items():
            yield from _wrong(name, key, value)


def _wrong(section: str, key: str, value: object) -> Iterator[Problem]:
    path, known = f"{section}.{key}", _TYPES[section]
    if key not in known:
        yield Problem((path,), f"{path}: {_no_such_key(section, key)}")
    elif not _fits(known[key], value):
        words = _LIST_WORDS if typing.get_origin(known[key]) is tuple else _WORDS[known[key]]
        yield Problem((path,), f"{path} = {shown(value)}: must be {words}.")
    elif fault := _fault(path, value):
        yield Problem((path,), f"{path} = {shown(value)}: {fault}")


def _fits(hint: Any, value: object) -> bool:
    if typing.get_origin(hint) is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is hint


def _fault(path: str, value: Any) -> str:
    """What is wrong with a value of the right type; empty if it is valid."""
    if path == "run.launcher" and not catalog.known("launcher", value):
        near = catalog.nearest(value, catalog.names("launcher"))
        hint = f" Did you mean {shown(near)}?" if near else ""
        return f"there is no such launcher.{hint} Known: {', '.join(catalog.names('launcher'))}."
    if path == "run.ranks_per_host" and not 1 <= value <= 4096:
        return "must be from 1 to 4096."
    if path == "launch.start" and value not in _STARTS:
        return f"must be {' or '.join(map(shown, _STARTS))}."
    if path == "launch.gpus_per_host" and value < 0:
        return "must be 0 or more."
    if path == "launch.grace_s" and not 0 <= value < float("inf"):
        return "must be a finite number, 0 or more."
    if path == "launch.agent" and not value:
        return 'must name a command, e.g. ["ssh"].'
    return ""


def _no_such_key(section: str, key: str) -> str:
    takes = f"[{section}] takes {', '.join(_TYPES[section])}."
    other = next((name for name, keys in _TYPES.items() if key in keys), None)
    if other:
        return f"there is no such key here. Did you mean {other}.{key}?"
    if key in KEYS.get(section, {}):
        return f"a study file says that, not a site profile. {takes}"
    near = catalog.nearest(key, tuple(_TYPES[section]))
    if near:
        return f"there is no such key. Did you mean {section}.{near}?"
    return f"there is no such key. {takes}"


def _misplaced(name: str, value: object) -> Problem:
    """The mistake of a top-level name that is not a section."""
    if not isinstance(value, dict):
        if name in _TYPES:
            text = f"{name} = {shown(value)}: must be a section, [{name}] on a line of its own."
            return Problem((name,), text)
        meant = _home(name)
        hint = f"Did you mean {meant}?" if meant else "Sections look like [launch]."
        return Problem((name,), f"{name} = {shown(value)}: stands outside of every section. {hint}")
    near = catalog.nearest(name, tuple(_TYPES))
    hint = f"Did you mean [{near}]?" if near else "A site profile has [run] and [launch]."
    return Problem((name,), f"[{name}]: there is no such section. {hint}")


def _home(key: str) -> str | None:
    """The path of a key without its section, or in the wrong one."""
    paths = {known: f"{section}.{known}" for section, keys in _TYPES.items() for known in keys}
    near = catalog.nearest(key, tuple(paths))
    return paths[near] if near else None
