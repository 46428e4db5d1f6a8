"""TOML -> Study: all mistakes at once, with their paths, in our words, the nearest valid name suggested.

    shipped name or file ─▶ tables ─ overrides ─▶ types (pydantic) ─▶ checks ─▶ Study

This is the only module that uses pydantic, and none of its sentences reaches the user.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pydantic

from paceline import catalog
from paceline.errors import StudyFileError
from paceline.records.study import ModelSettings, Study
from paceline.studies import checks
from paceline.studies.files import expanded
from paceline.studies.keys import (
    KEYS,
    SECTIONS,
    Problem,
    home,
    open_section,
    shown,
    unknown_key,
    unknown_section,
    wrong_type,
)
from paceline.studies.overrides import Tables, overridden
from paceline.units import counted

_SHIPPED = Path(__file__).parent / "shipped"
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedStudy:
    """A valid study and where it came from."""

    study: Study
    base: Path
    """The folder that relative paths of the study start from."""
    source: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedStudy:
    """A study that comes with Paceline."""

    name: str
    title: str
    question: str
    path: Path


def load_study(source: str | Path, overrides: Mapping[str, str] | Sequence[str] = ()) -> LoadedStudy:
    """The study of a file or shipped name, with `section.key=value` overrides; StudyFileError where it is wrong."""
    path = _study_path(source)
    base = path.parent.absolute()
    tables, wrong = overridden(_tables(path), overrides)
    study, mistyped = _typed(tables)
    wrong += mistyped
    wrong += _further(list(checks.problems(study, base)), wrong)
    if wrong:
        raise _mistakes(f"{source} with its overrides" if overrides else str(source), source, wrong)
    return LoadedStudy(study=_with_scaling(study), base=base, source=path.absolute())


def shipped_studies() -> tuple[ShippedStudy, ...]:
    """The studies that come with Paceline, by name."""
    described = [(path, _tables(path)["study"]) for path in sorted(_SHIPPED.glob("*.toml"))]
    return tuple(
        ShippedStudy(name=path.stem, title=table["title"], question=table["question"], path=path)
        for path, table in described
    )


def _study_path(source: str | Path) -> Path:
    names = [study.stem for study in _SHIPPED.glob("*.toml")]
    if str(source) in names:
        return _SHIPPED / f"{source}.toml"
    path = expanded(source)
    if os.path.isfile(path):  # unlike Path.is_file, says no to a name that is too long
        return path
    if os.path.isdir(path):
        resume = f"To go on with the study in it: paceline study {path / 'study.toml'} --out {path}"
        raise StudyFileError(
            f"{path} is a folder.",
            right="A study is a file that ends in .toml, or the name of a shipped study.",
            next=resume if (path / "study.toml").is_file() else "paceline studies lists the shipped ones.",
        )
    if path.suffix == ".toml" or len(path.parts) > 1:
        what = f"{path} is not a file." if os.path.exists(path) else f"There is no study file {path}."
    else:
        near = catalog.nearest(str(source), names)
        what = f"There is no study called {str(source)!r}." + (f" Did you mean {near!r}?" if near else "")
    raise StudyFileError(
        what,
        right="A study is a file that ends in .toml, or the name of a shipped study.",
        next="paceline studies lists the shipped ones.",
    )


def _tables(path: Path) -> Tables:
    """The file as TOML has it."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise StudyFileError(
                f"{path} has {path.stat().st_size:,} bytes: it is not a study file.",
                right="A study file is a page of TOML.",
                next="paceline studies lists examples.",
            )
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise StudyFileError(f"{path} cannot be read: {error.strerror}.", next="Check its permissions.") from error
    except UnicodeDecodeError as error:
        raise StudyFileError(
            f"{path} is not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x}).",
            right="A study file is TOML, which is always UTF-8.",
            next="Save it as UTF-8 in your editor.",
        ) from error
    except RecursionError as error:
        raise StudyFileError(f"{path} nests its lists too deeply.", right="A study file is flat.") from error
    except ValueError as error:
        raise _syntax_error(path, str(error)) from error


def _syntax_error(path: Path, message: str) -> StudyFileError:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, flags=re.DOTALL)
    reason = found[1] if found else message
    where = "" if not found else f", line {found[2]}, column {found[3]}" if found[2] else ", at its end"
    return StudyFileError(
        f"{path}{where}: this is not TOML ({reason[:1].lower()}{reason[1:]}).",
        right='Sections look like [train], values like lr = 0.001 or dataset = "mnist".',
        next="paceline studies lists examples.",
    )


def _model_of(section: str) -> type[pydantic.BaseModel]:
    """A section's keys and types for pydantic: strict ("2" is not 2), and nothing besides them."""
    config = pydantic.ConfigDict(extra="ignore" if open_section(section) else "forbid", strict=True)
    # The defaults are never used: a key that is not given keeps the record's own.
    fields: dict[str, Any] = {
        key: (tuple[int, ...] if kind is tuple else kind, None) for key, kind in KEYS[section].items()
    }
    return pydantic.create_model(section, __config__=config, **fields)


_MODELS = {section: _model_of(section) for section in KEYS}


def _typed(tables: Tables) -> tuple[Study, list[Problem]]:
    """The study as far as its keys and types are right, and what is wrong with the others."""
    problems = [_misplaced(name, value) for name, value in tables.items() if not _is_section(name, value)]
    values: dict[str, dict[str, Any]] = {}
    for section in KEYS:
        table = tables.get(section, {})
        if isinstance(table, dict):
            values[section], wrong = _section_values(section, table)
            problems += wrong
    settings = {section: cls(**values.get(section, {})) for section, cls in SECTIONS.items()}
    return Study(**{"name": "", **values.get("study", {})}, **settings), problems


def _is_section(name: str, value: object) -> bool:
    return name in KEYS and isinstance(value, dict)


def _misplaced(name: str, value: object) -> Problem:
    """What is said about something at the top of the file that is not one of the sections."""
    if isinstance(value, dict):
        return unknown_section(name, value)
    if name in KEYS:
        keys = tuple(f"{name}.{key}" for key in KEYS[name])
        return Problem(keys, f"{name} = {shown(value)}: must be a section, [{name}] on a line of its own.")
    meant = home(name)
    hint = f"Did you mean {meant}?" if meant else "Sections look like [train]."
    return Problem((name, meant or name), f"{name} = {shown(value)}: stands outside of every section. {hint}")


def _section_values(section: str, table: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The values of a section that are right, ready for its record, and what is wrong with the others."""
    table = {key: _as_tuple(value) if KEYS[section].get(key) is tuple else value for key, value in table.items()}
    problems = {key: _too_large(section, key, value) for key, value in table.items() if not _fits(value)}
    checked = {key: value for key, value in table.items() if key not in problems}
    try:
        values = _MODELS[section].model_validate(checked).model_dump(exclude_unset=True)
    except pydantic.ValidationError as error:
        for mistake in error.errors(include_url=False, include_context=False):
            key = str(mistake["loc"][0])
            unknown = mistake["type"] == "extra_forbidden"
            problems[key] = unknown_key(section, key) if unknown else wrong_type(section, key, table[key])
        checked = {key: value for key, value in table.items() if key not in problems}
        values = _MODELS[section].model_validate(checked).model_dump(exclude_unset=True)
    if SECTIONS.get(section) is ModelSettings:
        values["options"] = {key: value for key, value in checked.items() if key not in KEYS[section]}
    return values, list(problems.values())


def _as_tuple(value: object) -> object:
    """A list of a study file as records hold it; a single whole number is a list of one."""
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


def _fits(value: object) -> bool:
    items: Iterable[object] = value if isinstance(value, list | tuple) else (value,)
    return all(-(2**63) <= item < 2**63 for item in items if isinstance(item, int))


def _too_large(section: str, key: str, value: object) -> Problem:
    return Problem((f"{section}.{key}",), f"{section}.{key} = {shown(value)}: does not fit into 64 bits.")


def _further(found: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """Those of the problems found that do not merely follow from a key that is wrong itself."""
    wrong = {problem.about[0] for problem in known}
    single = [problem for problem in found if len(problem.about) == 1 and problem.about[0] not in wrong]
    # What a misspelt key was meant to be is not missing, though it is not there.
    broken = {key for problem in (*known, *single) for key in problem.about}
    return single + [problem for problem in found if len(problem.about) > 1 and not broken.intersection(problem.about)]


def _with_scaling(study: Study) -> Study:
    """The study with its scaling said, where the batch has decided it."""
    if study.run.scaling is not None:
        return study
    scaling = "strong" if study.train.batch_global is not None else "weak"
    return replace(study, run=replace(study.run, scaling=scaling))


def _mistakes(what: str, source: str | Path, problems: Sequence[Problem]) -> StudyFileError:
    texts = dict.fromkeys(f"  {problem.text}" for problem in problems)  # two keys in one wrong section are one mistake
    return StudyFileError(
        "\n".join([f"{what} has {counted(len(texts), 'mistake')}:", *texts]),
        next=f"paceline study {source} --dry-run checks a study without running it.",
    )
