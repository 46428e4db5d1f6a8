"""The sections and keys of a study file, from the records, and the messages for wrong ones."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass

from paceline.catalog import nearest
from paceline.records.settings import (
    AugmentSettings,
    DataSettings,
    FinetuneSettings,
    LaunchSettings,
    ModelSettings,
    RunSettings,
    ScriptSettings,
    TrainSettings,
)
from paceline.records.study import Study
from paceline.studies.load.toml_text import toml_value

SECTIONS: dict[str, type] = {
    "data": DataSettings,
    "augment": AugmentSettings,
    "model": ModelSettings,
    "train": TrainSettings,
    "finetune": FinetuneSettings,
    "run": RunSettings,
    "launch": LaunchSettings,
    "script": ScriptSettings,
}

NUMBERS, TEXTS = tuple[int, ...], tuple[str, ...]
_WORDS = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NUMBERS: "a list of whole numbers",
    TEXTS: "text in quotes, or a list of those",
}

# Keys that cannot be varied, and why.
FIXED = {
    "data.test_samples": "points are compared by a test on the same samples.",
    "train.seed": "every repeat has a seed of its own already. Give the first one, and run.repeats for more.",
    "train.target_accuracy": "it is asked of every point, and changes none of them.",
    "run.repeats": "it says how often each point is run, which has to be the same for all of them.",
    "run.scaling": "points of one study are compared with one baseline. Write a study for each.",
    "run.heartbeat_s": "it says how long to wait for a rank, and changes no figure.",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a study file."""

    about: tuple[str, ...]
    """The wrong key, then the suggested ones; or all keys of a wrong combination."""
    text: str


def _plain_type(hint: typing.Any) -> typing.Any:
    """The type behind `X | None`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(argument for argument in typing.get_args(hint) if argument is not type(None))
    return hint


def _keys() -> dict[str, dict[str, typing.Any]]:
    texts = {key: hint for key, hint in typing.get_type_hints(Study).items() if hint is str}
    keys = {"study": texts} | {section: typing.get_type_hints(cls) for section, cls in SECTIONS.items()}
    keys["model"].pop("options")  # all other keys of [model] are options
    return {section: {key: _plain_type(hint) for key, hint in hints.items()} for section, hints in keys.items()}


KEYS: dict[str, dict[str, typing.Any]] = _keys()
"""section -> key -> str, int, float, bool, NUMBERS or TEXTS."""

LAUNCH_FACTORS = tuple(
    f"launch.{key}" for key in ("interface", "mpiexec", "start", "partition", "constraint", "gpus_per_host", "spread")
)
"""Settings of `[launch]` that affect speed."""
FACTORS = (
    *(
        f"{section}.{key}"
        for section in ("data", "augment", "model", "train", "finetune", "run")
        for key, kind in KEYS[section].items()
        if kind in (str, int, float, bool) and f"{section}.{key}" not in FIXED
    ),
    *LAUNCH_FACTORS,
)
"""Settings that a study may vary with a list, in addition to the ranks and the options of its model."""
COMMA_FREE = tuple(path for path in FACTORS if path not in ("data.dataset", "model.name", *LAUNCH_FACTORS))
"""Factors whose values have no commas: a list of them needs no brackets."""


def open_section(section: str) -> bool:
    """Whether a section takes unknown keys: `[model]`, for the options of the model."""
    return section == "model"


def unknown_section(name: str, keys: typing.Iterable[str]) -> Problem:
    """The mistake `[trian]`; the corresponding keys of `[train]` are then not reported as missing."""
    near = nearest(name, tuple(KEYS))
    if near:
        meant = tuple(f"{near}.{nearest(key, tuple(KEYS[near])) or key}" for key in keys)
        return Problem(about=(name, *meant), text=f"[{name}]: there is no such section. Did you mean [{near}]?")
    return Problem(about=(name,), text=f"[{name}]: there is no such section. There are {_listed(KEYS, '[{}]')}.")


def unknown_key(section: str, key: str) -> Problem:
    """The mistake of an unknown key such as `train.epoch`."""
    path, known = f"{section}.{key}", KEYS[section]
    near = nearest(key, tuple(known))
    if near:
        return Problem((path, f"{section}.{near}"), f"{path}: there is no such key. Did you mean {section}.{near}?")
    elsewhere = home(key)
    if elsewhere:
        return Problem((path, elsewhere), f"{path}: there is no such key here. Did you mean {elsewhere}?")
    return Problem((path,), f"{path}: there is no such key. [{section}] takes {_listed(known)}.")


def home(key: str) -> str | None:
    """The path of a key without its section, or in a wrong one; None if there is none."""
    paths = {f"{section}.{known}": known for section, keys in KEYS.items() for known in keys}
    near = nearest(key, tuple(paths.values()))
    # [finetune] has keys of [train]: without a section, [train] is meant.
    found = [path for path, known in paths.items() if known == near and not path.startswith("finetune.")]
    return found[0] if len(found) == 1 else None


def wrong_type(section: str, key: str, value: object) -> Problem:
    """The mistake of a wrong type such as `train.lr = "0.1"`."""
    path, words = f"{section}.{key}", _WORDS[KEYS[section][key]]
    each = "each " if path in FACTORS and isinstance(value, list | tuple) else ""
    return Problem((path,), f"{path} = {shown(value)}: {each}must be {words}.")


def mistake(path: str, value: object, text: str, *others: str) -> Problem:
    """The mistake `path = value: text`; `others` are further settings that it depends on."""
    return Problem((path, *others), f"{path} = {shown(value)}: {text}")


def shown(value: object) -> str:
    """A value as TOML, truncated to 80 characters."""
    text = toml_value(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _listed(names: typing.Iterable[str], form: str = "{}") -> str:
    return ", ".join(form.format(name) for name in names)
