"""What the code says about its own fields: the line under each of a dataclass, its type and its default."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field of a record, as a page shows it."""

    name: str
    type: str
    default: str
    """As Python writes it; empty where the field has to be given."""
    text: str
    """The line under it in the code; empty where its name says it all."""


def fields(record: type) -> list[Field]:
    """The fields of a dataclass in order, with what stands under each."""
    told, types = _told(record), _types(record)
    return [
        Field(found.name, types.get(found.name, ""), _default(found), told.get(found.name, ""))
        for found in dataclasses.fields(record)
    ]


def summary(thing: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def cell(text: str) -> str:
    """A text that can stand in a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def _class(record: type) -> ast.ClassDef:
    found = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(found, ast.ClassDef)
    return found


def _told(record: type) -> dict[str, str]:
    """Field -> the text right below it."""
    body = _class(record).body
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def _types(record: type) -> dict[str, str]:
    """Field -> its type as the code writes it."""
    return {
        field.target.id: ast.unparse(field.annotation)
        for field in _class(record).body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        shown = repr(field.default)
        return shown if len(shown) <= 60 else f"{type(field.default).__name__}()"
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    return ""
