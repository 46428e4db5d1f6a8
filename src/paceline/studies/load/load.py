"""TOML -> Study: reports all mistakes at once, with their paths and the nearest valid names.

    shipped name or file ─▶ tables ─ overrides, site ─▶ types (pydantic) ─▶ factors ─▶ checks ─▶ Study

This is the only module that uses pydantic; its messages are never shown to the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pydantic

from paceline.errors import StudyFileError
from paceline.records.settings import ModelSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.recipe import MAY_CHOOSE
from paceline.studies.load import checks, model_factors, scripts
from paceline.studies.load.keys import (
    FACTORS,
    FIXED,
    KEYS,
    NUMBERS,
    SECTIONS,
    TEXTS,
    Problem,
    home,
    mistake,
    open_section,
    shown,
    unknown_key,
    unknown_section,
    wrong_type,
)
from paceline.studies.load.overrides import Tables, parsed, replaced
from paceline.studies.load.sites import with_site
from paceline.studies.load.sizes import sized
from paceline.studies.load.source import shipped_files, study_path, study_tables
from paceline.studies.load.toml_text import settings_text
from paceline.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedStudy:
    """A valid study and its source."""

    study: Study
    base: Path
    """The folder of relative paths."""
    source: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedStudy:
    """A shipped study."""

    name: str
    title: str
    question: str
    path: Path


def load_study(
    source: str | Path,
    overrides: Sequence[str] = (),
    *,
    values: Mapping[str, object] = MappingProxyType({}),
    size: str | None = None,
) -> LoadedStudy:
    """The study of a file or shipped name, with `section.key=value` overrides; StudyFileError if it is wrong.

    `values` are overrides by path with Python values; they have priority. `size` is small or full, if the file has
    both; if None, the file's own size, else small.
    """
    path = study_path(source)
    command = f"paceline study {source}"
    return _loaded(study_tables(path), overrides, values, path, name=str(source), command=command, size=size)


def load_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    overrides: Sequence[str] = (),
    *,
    values: Mapping[str, object] = MappingProxyType({}),
) -> LoadedStudy:
    """The study of a script, named after it; RequestError if it is not a script, or if an override is wrong."""
    tables, path = scripts.script_tables(script, arguments), Path(script)
    return _loaded(tables, overrides, values, path, name=path.name, command=f"paceline study --script {path}")


def _loaded(
    tables: Tables,
    overrides: Sequence[str],
    given: Mapping[str, object],
    path: Path,
    *,
    name: str,
    command: str,
    size: str | None = None,
) -> LoadedStudy:
    """The study of these tables; `command` is shown in errors."""
    base = path.parent.absolute()
    values, wrong = parsed(overrides, given)
    at_size = sized(tables, size, values)
    tables = _with_site(replaced(at_size.tables, values))
    study, mistyped = _typed(tables, base)
    study = replace(study, given=_given(study, tables))
    wrong += [*at_size.problems, *mistyped, *scripts.unused_settings(tables)]
    wrong += _further(list(checks.problems(study, base)), wrong)
    if wrong:
        raise _mistakes(f"{name} with its overrides" if overrides or given else name, command, wrong)
    study = replace(_with_scaling(study), full=at_size.full)
    return LoadedStudy(study=study, base=base, source=path.absolute())


def shipped_studies() -> tuple[ShippedStudy, ...]:
    """The shipped studies, by name."""
    described = [(path, study_tables(path)["study"]) for path in shipped_files()]
    return tuple(
        ShippedStudy(name=path.stem, title=table["title"], question=table["question"], path=path)
        for path, table in described
    )


def overridden(study: Study) -> dict[str, tuple[str, str]]:
    """Path -> TOML value here and in the shipped study of this name and size, if they differ; {} for other studies."""
    if study.script or study.name not in {path.stem for path in shipped_files()}:
        return {}
    here, there = settings_text(study), settings_text(load_study(study.name, size=study.size or None).study)
    paths = dict.fromkeys((*here, *there))
    return {path: (here.get(path, ""), there.get(path, "")) for path in paths if here.get(path) != there.get(path)}


def _with_site(tables: Tables) -> Tables:
    """The tables with the defaults of their site profile, if they name one."""
    launch = tables.get("launch")
    name = launch.get("site") if isinstance(launch, dict) else None
    return with_site(tables, name) if isinstance(name, str) and name else tables


def _model_of(section: str) -> type[pydantic.BaseModel]:
    """A section's keys and types for pydantic: strict ("2" is not 2), without other keys."""
    config = pydantic.ConfigDict(extra="ignore" if open_section(section) else "forbid", strict=True)
    # The defaults are never used: a missing key has the record's default.
    fields: dict[str, Any] = {
        key: (kind | tuple[kind, ...] if f"{section}.{key}" in FACTORS else kind, None)
        for key, kind in KEYS[section].items()
    }
    return pydantic.create_model(section, __config__=config, **fields)


_MODELS = {section: _model_of(section) for section in KEYS}


def _typed(tables: Tables, base: Path = Path()) -> tuple[Study, list[Problem]]:
    """The study from the valid keys, and the mistakes of the others."""
    problems = [_misplaced(name, value) for name, value in tables.items() if not _is_section(name, value)]
    values: dict[str, dict[str, Any]] = {}
    vary: dict[str, tuple[Any, ...]] = {}
    for section in filter(KEYS.__contains__, tables):
        if isinstance(tables[section], dict):
            values[section], wrong = _section_values(section, tables[section])
            factors, repeated = _factors(section, values[section])
            vary |= factors
            problems += wrong + repeated
            if section == "model":
                factors, unclear = _option_factors(values[section], vary, base)
                vary |= factors
                problems += unclear
    run = values.setdefault("run", {})
    if "script" in values:
        values["run"] = run = {**scripts.DEFAULTS, **run}
    if "ranks_per_host" in run:
        run.setdefault("ranks", ())
    settings = {section: cls(**values.get(section, {})) for section, cls in SECTIONS.items()}
    if "script" not in values:
        del settings["script"]
    return Study(**{"name": "", **values.get("study", {})}, **settings, vary=vary), problems


def _given(study: Study, tables: Tables) -> tuple[str, ...]:
    """Settings that a recipe may choose and that these tables set to their default."""
    table, usual = tables.get("train"), TrainSettings()
    named = {f"train.{key}" for key in table} if isinstance(table, dict) else set()
    return tuple(
        path
        for path in MAY_CHOOSE
        if path in named and path not in study.vary and _setting(study.train, path) == _setting(usual, path)
    )


def _setting(train: TrainSettings, path: str) -> object:
    return getattr(train, path.split(".", 1)[1])


def _is_section(name: str, value: object) -> bool:
    return name in KEYS and isinstance(value, dict)


def _misplaced(name: str, value: object) -> Problem:
    """The mistake of a top-level name that is not a section."""
    if isinstance(value, dict):
        return unknown_section(name, value)
    if name in KEYS:
        keys = tuple(f"{name}.{key}" for key in KEYS[name])
        return Problem(keys, f"{name} = {shown(value)}: must be a section, [{name}] on a line of its own.")
    meant = home(name)
    hint = f"Did you mean {meant}?" if meant else "Sections look like [train]."
    return Problem((name, meant or name), f"{name} = {shown(value)}: stands outside of every section. {hint}")


def _section_values(section: str, table: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The valid values of a section for its record, and the mistakes of the others."""
    table = {key: _as_tuple(section, key, value) for key, value in table.items()}
    problems = {key: _too_large(section, key, value) for key, value in table.items() if not _fits(value)}
    lists = {key: value for key, value in table.items() if isinstance(value, list)}
    problems |= {key: _not_varied(section, key, value) for key, value in lists.items() if f"{section}.{key}" in FIXED}
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
    values = {key: values[key] for key in table if key in values}  # in the order of the file
    if SECTIONS.get(section) is ModelSettings:
        values["options"] = {key: value for key, value in checked.items() if key not in KEYS[section]}
    return values, list(problems.values())


def _as_tuple(section: str, key: str, value: object) -> object:
    """A list as a tuple; a single value of a list setting as a tuple of one."""
    kind = KEYS[section].get(key)
    if isinstance(value, list) and (kind in (NUMBERS, TEXTS) or f"{section}.{key}" in FACTORS):
        return tuple(value)
    single = type(value) is int if kind == NUMBERS else kind == TEXTS and isinstance(value, str)
    return (value,) if single else value


def _factors(section: str, values: dict[str, Any]) -> tuple[dict[str, tuple[Any, ...]], list[Problem]]:
    """The factors of a section, of which `values` gets the first values; and their mistakes."""
    several = {key: value for key, value in values.items() if f"{section}.{key}" in FACTORS and type(value) is tuple}
    problems = []
    for key, items in several.items():
        path = f"{section}.{key}"
        if not items:
            problems.append(Problem((path,), f"{path} = []: must name at least one value."))
            del values[key]
            continue
        values[key] = items[0]
        if len(set(items)) < len(items):
            problems.append(mistake(path, items, "each value may stand there once."))
    return {f"{section}.{key}": items for key, items in several.items() if len(items) > 1}, problems


def _option_factors(
    values: dict[str, Any], vary: dict[str, tuple[Any, ...]], base: Path
) -> tuple[dict[str, tuple[Any, ...]], list[Problem]]:
    """The factors among the options of a model, of which `values` gets the first values; and their mistakes."""
    names = vary.get("model.name", (values.get("name", ModelSettings().name),))
    options, several, problems = model_factors.split_factors(values["options"], names, base)
    values["options"] = options
    return {f"model.{key}": items for key, items in several.items()}, problems


def _not_varied(section: str, key: str, value: object) -> Problem:
    path = f"{section}.{key}"
    return mistake(path, value, f"cannot be varied, because {FIXED[path]}")


def _fits(value: object) -> bool:
    items: Iterable[object] = value if isinstance(value, list | tuple) else (value,)
    return all(-(2**63) <= item < 2**63 for item in items if isinstance(item, int))


def _too_large(section: str, key: str, value: object) -> Problem:
    return Problem((f"{section}.{key}",), f"{section}.{key} = {shown(value)}: does not fit into 64 bits.")


def _further(found: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """The problems that do not follow from a known one."""
    wrong = {problem.about[0] for problem in known}
    single = [problem for problem in found if len(problem.about) == 1 and problem.about[0] not in wrong]
    # The correct spelling of a misspelt key is not reported as missing.
    broken = {key for problem in (*known, *single) for key in problem.about}
    return single + [problem for problem in found if len(problem.about) > 1 and not broken.intersection(problem.about)]


def _with_scaling(study: Study) -> Study:
    """The study with its scaling, which follows from the batch; a script has none."""
    if study.run.scaling is not None or study.script is not None:
        return study
    scaling = "strong" if study.train.batch_global is not None else "weak"
    return replace(study, run=replace(study.run, scaling=scaling))


def _mistakes(what: str, command: str, problems: Sequence[Problem]) -> StudyFileError:
    texts = dict.fromkeys(f"  {problem.text}" for problem in problems)  # two keys in one wrong section are one mistake
    return StudyFileError(
        "\n".join([f"{what} has {counted(len(texts), 'mistake')}:", *texts]),
        next=f"{command} --dry-run checks a study without running it.",
    )
