"""Study -> TOML: the standard library reads TOML but does not write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields

from paceline.records.settings import TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.recipe import MAY_CHOOSE

_SECTIONS = ("data", "augment", "model", "train", "finetune", "run", "launch")
_ALWAYS = ("name", "title", "question")
_STUDY = (*_ALWAYS, "design", "asks", "published", "fits", "size")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def study_toml(study: Study) -> str:
    """The study as TOML that `load_study` reads back to an equal study, with the same order of factors.

    At the small size the sections have the full values, and `[small]` the overrides. Settings that a recipe may
    choose are comments unless they are explicit.
    """
    usual = {field.name: field.default for field in fields(Study)}
    about = [key for key in _STUDY if key in _ALWAYS or getattr(study, key) != usual[key]]
    lines = ["[study]", *(_line(key, getattr(study, key)) for key in about)]
    varied = [path.split(".", 1) for path in study.vary]
    small: list[str] = []
    sections = ("script", "run", "launch") if study.script else _SECTIONS
    for section in _in_order(sections, [section for section, _ in varied]):
        order = [key for place, key in varied if place == section]
        given = {f"{section}.{key}": value for key, value in _values(study, section, order).items()}
        small += [_line(path, value) for path, value in given.items() if path in study.full and value is not None]
        written = {path.split(".", 1)[1]: study.full.get(path, _text(value)) for path, value in given.items()}
        lines += ["", f"[{section}]"]
        lines += [
            f"{'# ' * _open_to_recipes(study, f'{section}.{key}')}{_key(key)} = {text}"
            for key, text in written.items()
            if text
        ]
    return "\n".join([*lines, *(["", "[small]", *small] if small else [])]) + "\n"


def _open_to_recipes(study: Study, path: str) -> bool:
    """Whether a recipe may choose a setting, because it is not explicit."""
    if path not in MAY_CHOOSE or path in (*study.given, *study.vary, *study.full):
        return False
    key = path.split(".", 1)[1]
    return getattr(study.train, key) == getattr(TrainSettings(), key)


def settings_text(study: Study) -> dict[str, str]:
    """Path -> TOML value of all settings that affect the computation, at the current size; empty for None."""
    paths = ((section, key, value) for section in _SECTIONS[:-1] for key, value in _values(study, section, ()).items())
    return {f"{section}.{key}": _text(value) for section, key, value in paths}


def _values(study: Study, section: str, varied: Sequence[str]) -> dict[str, object]:
    """The values of a section, with its factors in the order of the study."""
    settings = getattr(study, section)
    options = getattr(settings, "options", {})
    keys = [*(field.name for field in fields(settings) if field.name != "options"), *options]
    return {
        key: study.vary.get(f"{section}.{key}", options[key] if key in options else getattr(settings, key))
        for key in _in_order(keys, varied)
    }


def _text(value: object) -> str:
    return "" if value is None else toml_value(value)


def _in_order(names: Sequence[str], some: Sequence[str]) -> list[str]:
    """The names, with `some` of them reordered within their positions."""
    turn = iter(dict.fromkeys(some))
    return [next(turn) if name in some else name for name in names]


def toml_value(value: object) -> str:
    """A value of a study file as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int) and value.bit_length() > 64:
        return hex(value)  # Python refuses to write very long decimals
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(_line(key, item) for key, item in value.items()) + " }"
    return str(value)  # dates and times are printed as TOML


def _line(key: str, value: object) -> str:
    return f"{_key(key)} = {toml_value(value)}"


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    # All control characters are escaped: a terminal would interpret some of them.
    if ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 or character in "\u2028\u2029":
        return f"\\u{ord(character):04X}"
    return character
