"""The files of published studies -> their tables, rows and questions.

    published/NAME.toml     what was used and stated, how columns and rows find our results, and the open questions
    published/*.csv         the published figures

A key says which row it is; what else is in it says how the row finds its point:

    setting = "run.ranks"                 its value is the setting's
    values = { cnn = { ... } }            each value stands for settings, and perhaps a study
    factors = { cores = "run.threads" }   it names a setting, and the key with `value_of` has its value
    hardware, machine                     what it ran on: a kind of GPU, or a machine
    first_epoch, phases                   it names an epoch
    baseline = "epochs"                   rows are in per cent of one of them, for each value of that key
    shown = { ... }                       how a long value is shown

`repeated_by` are our studies that have rows of the tables, `asked_alone` those that answer questions and have none.

    differs = ["64 ranks"]                how studies that repeat rows differ from the publication
    [differs] mnist-mpi = [...]           the same of one study
    [chosen] repeats = "5"                a setting that is not published, and what was chosen for it
    repeats = { mnist-mpi = "5" }         or by study
    [stand_ins] fruits = "..."            what is stated about accuracies on a data set that is not the published one

`[leads]` says which answers a study's report opens with, in order: those to its own question. `time` stands for what
its times say.
"""

from __future__ import annotations

import csv
import functools
import importlib.resources
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Any

from paceline.published.records import (
    PublishedCell,
    PublishedColumn,
    PublishedRow,
    PublishedStudy,
    PublishedTable,
    Question,
    Scalar,
)

Line = Mapping[str, str]


def published_names() -> tuple[str, ...]:
    """The published studies whose figures come with Paceline."""
    return tuple(sorted(path.name[: -len(".toml")] for path in _files().iterdir() if path.name.endswith(".toml")))


@functools.cache
def published_study(name: str) -> PublishedStudy:
    """What one of them measured."""
    spec = tomllib.loads((_files() / f"{name}.toml").read_text(encoding="utf-8"))
    studies, asked_alone = tuple(spec.pop("repeated_by")), tuple(spec.pop("asked_alone", ()))
    choices = {item: _by_study(choice, studies) for item, choice in spec.pop("chosen").items()}
    differs = _by_study(spec.pop("differs"), studies, asked_alone)
    return PublishedStudy(
        not_given=tuple(choices),
        chosen={study: {item: own[study] for item, own in choices.items() if study in own} for study in studies},
        differs={study: tuple(phrases) for study, phrases in differs.items()},
        tables=tuple(_table(table) for table in spec.pop("tables")),
        questions=tuple(_question(question) for question in spec.pop("questions")),
        leads={study: tuple(names) for study, names in spec.pop("leads", {}).items()},
        asked_alone=asked_alone,
        **spec,  # what is a field as it stands; anything else is refused
    )


def _by_study(spec: Any, studies: Sequence[str], others: Sequence[str] = ()) -> Mapping[str, Any]:
    """Study -> its value, by the name of the study or of all `studies` at once."""
    own: Mapping[str, Any] = spec if isinstance(spec, Mapping) else dict.fromkeys(studies, spec)
    assert own.keys() <= {*studies, *others}, f"studies that it does not have: {own.keys() - {*studies, *others}}"
    return own


def _files() -> Traversable:
    return importlib.resources.files("paceline.published") / "tables"


def _question(spec: Mapping[str, Any]) -> Question:
    return Question(
        name=spec["name"],
        text=spec["text"],
        studies=tuple(spec["studies"]),
        how=spec["how"],
        missing=spec.get("missing", ""),
    )


def _table(spec: Mapping[str, Any]) -> PublishedTable:
    lines = list(csv.DictReader((_files() / spec["file"]).read_text(encoding="utf-8").splitlines()))
    keys, columns = spec["keys"], spec["columns"]
    shown = {name: how for name, how in keys.items() if "baseline" not in how or "machine" in how}
    return PublishedTable(
        name=spec["file"].removesuffix(".csv"),
        caption=spec["caption"],
        keys=tuple(how["heading"] for how in shown.values()),
        columns=tuple(PublishedColumn(name=name, **how) for name, how in columns.items()),
        rows=tuple(_row(lines, index, keys, tuple(shown), tuple(columns)) for index in range(len(lines))),
        constants=spec.get("constants", {}),
    )


def _row(
    lines: Sequence[Line], index: int, keys: Mapping[str, Any], shown: Sequence[str], columns: Sequence[str]
) -> PublishedRow:
    line = lines[index]
    settings: dict[str, tuple[Scalar, ...]] = {}
    hardware, stand_in, study, epoch = "", False, "", None
    for name, how in keys.items():
        if "setting" in how:
            settings[how["setting"]] = (_settled(line[name]),)
        if "values" in how:
            meant = dict(how["values"][line[name]])
            hardware, study = meant.pop("hardware", hardware), meant.pop("study", study)
            settings |= {path: tuple(values) for path, values in meant.items()}
        if "factors" in how:
            settings |= _factor_settings(lines, line, name, how["factors"], keys)
        if "hardware" in how or "machine" in how:
            hardware, stand_in = line[name], True
        if "first_epoch" in how:
            epoch = int(line[name]) - how["first_epoch"] + 1
        if "phases" in how:
            word, _, number = line[name].partition(" ")
            epoch = int(number) if word == "epoch" else 0
    return PublishedRow(
        names=tuple(keys[name].get("shown", {}).get(line[name], line[name].replace("_", " ")) for name in shown),
        settings=settings,
        cells=tuple(PublishedCell(column=name, value=_value(line[name]), text=line[name]) for name in columns),
        hardware=hardware,
        stand_in=stand_in,
        epoch=epoch,
        baseline=_baseline(lines, line, keys),
        study=study,
    )


def _factor_settings(
    lines: Sequence[Line], line: Line, name: str, paths: Mapping[str, str], keys: Mapping[str, Any]
) -> dict[str, tuple[Scalar, ...]]:
    """All factors at their baseline, but for the one that the row is about."""
    value = next(key for key, how in keys.items() if how.get("value_of") == name)
    base = next(key for key, how in keys.items() if "baseline" in how)
    usual = {paths[other[name]]: (_settled(other[value]),) for other in lines if other[base] == "true"}
    return usual | {paths[line[name]]: (_settled(line[value]),)}


def _baseline(lines: Sequence[Line], line: Line, keys: Mapping[str, Any]) -> int | None:
    """The row that this one is in per cent of; None where the table is not."""
    for name, how in keys.items():
        if "baseline" in how:
            per, wanted = how["baseline"], how.get("baseline_value", "true")
            return next(i for i, other in enumerate(lines) if other[name] == wanted and other[per] == line[per])
    return None


def _settled(text: str) -> Scalar:
    value = _value(text)
    assert value is not None, "a key has a value in every row"
    return value


def _value(text: str) -> int | float | str | None:
    """A cell as a number where it is one; None where it is empty."""
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
