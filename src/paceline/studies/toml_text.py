"""Study -> TOML, by hand: the standard library reads TOML and does not write it."""

from __future__ import annotations

import re
from dataclasses import fields

from paceline.records.study import Study

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def study_toml(study: Study) -> str:
    """The study as a file that `load_study` reads back to an equal one."""
    lines = ["[study]", *(_line(key, getattr(study, key)) for key in ("name", "title", "question"))]
    for section in ("data", "model", "train", "run"):
        settings = getattr(study, section)
        values = {field.name: getattr(settings, field.name) for field in fields(settings)}
        options = values.pop("options", {})
        given = [_line(key, value) for key, value in {**values, **options}.items() if value is not None]
        lines += ["", f"[{section}]", *given]
    return "\n".join(lines) + "\n"


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
    return str(value)  # dates and times print as TOML writes them


def _line(key: str, value: object) -> str:
    return f"{key if _BARE_KEY.fullmatch(key) else _string(key)} = {toml_value(value)}"


def _string(text: str) -> str:
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    # Control characters are escaped whether TOML asks for it or not: a terminal obeys some of them.
    if ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 or character in "\u2028\u2029":
        return f"\\u{ord(character):04X}"
    return character
