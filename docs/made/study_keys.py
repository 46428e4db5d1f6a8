"""Every key of a study file on one page, from the records that a file is read into."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from docstrings import cell, fields

from paceline.records.study import Study
from paceline.studies.load.keys import FACTORS, FIXED, KEYS, NUMBERS, SECTIONS, TEXTS
from paceline.studies.load.toml_text import toml_value

_TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    NUMBERS: "list of whole numbers",
    TEXTS: "list of texts",
}


_PAGE = Path(__file__).parents[1] / "study-file.md"


def page() -> str:
    """A table for every section: key, type, default, whether a study may vary it, and what the code says about it."""
    return "\n\n".join(_section(name) for name in KEYS)


def _section(name: str) -> str:
    record = Study if name == "study" else SECTIONS[name]
    known = {field.name: field for field in fields(record)}
    defaults = {field.name: field for field in dataclasses.fields(record)}
    explained = _explained(name)
    rows = [
        f"| `{key}` | {_TYPES.get(kind, getattr(kind, '__name__', str(kind)))} | {_default(defaults[key])} "
        f"| {_varied(f'{name}.{key}')} | {cell(known[key].text) or explained.get(key, '')} |"
        for key, kind in KEYS[name].items()
    ]
    return "\n".join(
        [
            f"## [{name}]",
            "",
            f"In full: [study file](../study-file.md#{name}).",
            "",
            "| key | type | default | varied | meaning |",
            "|-----|------|---------|--------|---------|",
            *rows,
        ]
    )


def _default(field: dataclasses.Field[Any]) -> str:
    """As a study file would say it."""
    if field.default is dataclasses.MISSING:
        return "required"
    return "–" if field.default is None else f"`{toml_value(field.default)}`"


def _explained(section: str) -> dict[str, str]:
    """Key -> what the study file's own page says: for keys whose name is enough in the code."""
    text = re.split(rf"^## \[{section}\]$", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[-1]
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\|[^|]+\| (.+) \|$", text.split("\n## ")[0], re.MULTILINE)
    return {key: meaning.replace("](", "](../") for key, meaning in rows}


def _varied(path: str) -> str:
    if path == "run.ranks" or path in FACTORS:
        return "yes"
    return "no" if path in FIXED else "–"
