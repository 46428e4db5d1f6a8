"""The names of `paceline`, from the package itself.

Made here and not by mkdocstrings: there are fifteen names, whose signatures and docstrings a screen of code can show in
the form of the other pages, and four packages less are installed for it.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docstrings import cell, fields

import paceline
from paceline import errors

NOTEBOOKS = Path(__file__).parents[1] / "notebooks.md"


def page() -> str:
    """Functions, then the classes of their results, then errors, each with what its docstring says."""
    public = {name: getattr(paceline, name) for name in paceline.__all__ if not name.startswith("__")}
    functions = {name: thing for name, thing in public.items() if inspect.isfunction(thing)}
    returned = {found.__name__: found for function in functions.values() for found in _returned(function)}
    parts = [_function(name, thing) for name, thing in functions.items()]
    parts += [_class(f"paceline.{name}" if name in public else name, thing) for name, thing in returned.items()]
    return "\n\n".join([*parts, _errors()])


def _returned(function: Callable[..., Any]) -> list[type]:
    """The classes of what a function returns, by the names in its annotation."""
    module = importlib.import_module(function.__module__)
    names = re.findall(r"\w+", str(inspect.signature(function).return_annotation))
    return [getattr(module, name) for name in names]


def _function(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    lines = [f"    {_parameter(parameter)}," for parameter in signature.parameters.values()]
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    keywords = next((i for i, kind in enumerate(kinds) if kind is inspect.Parameter.KEYWORD_ONLY), None)
    if keywords is not None and inspect.Parameter.VAR_POSITIONAL not in kinds:
        lines.insert(keywords, "    *,")
    result = f" -> {signature.return_annotation}" if signature.return_annotation is not signature.empty else ""
    text = "\n".join([f"paceline.{name}(", *lines, f"){result}"])
    return f"## paceline.{name}\n\n```text\n{text}\n```\n\n{_prose(function)}\n\n{_example(name)}"


def _example(name: str) -> str:
    """The first block of the notebooks' page that calls the function: the tests execute it."""
    blocks = re.findall(r"^```python\n.*?^```$", NOTEBOOKS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if f"paceline.{name}(" in block)


def _parameter(parameter: inspect.Parameter) -> str:
    """'repeats: int | None = None', the type as the code writes it."""
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
    return f"{star}{parameter.name}: {parameter.annotation}{default}"


def _class(name: str, found: type) -> str:
    parts = [f"## {name}", _prose(found)]
    if dataclasses.is_dataclass(found):
        rows = [f"| `{field.name}` | `{cell(field.type)}` | {cell(field.text)} |" for field in fields(found)]
        parts.append("\n".join(["| field | type | meaning |", "|-------|------|---------|", *rows]))
    rows = [
        f"| `{member}{'' if isinstance(what, property) else cell(_arguments(what))}` | {cell(_prose(what))} |"
        for member, what in vars(found).items()
        if isinstance(what, property) or inspect.isfunction(what)
        if not member.startswith("_") or member.startswith("_repr_")
    ]
    if rows:
        parts.append("\n".join(["| member | what it is |", "|--------|------------|", *rows]))
    return "\n\n".join(parts)


def _arguments(function: Callable[..., Any]) -> str:
    own = [parameter for name, parameter in inspect.signature(function).parameters.items() if name != "self"]
    return f"({', '.join(map(_parameter, own))})"


def _errors() -> str:
    tree = inspect.getdoc(errors) or ""
    raised = [thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, Exception)]
    rows = [f"| `paceline.errors.{error.__name__}` | {error.exit_code} | {cell(_prose(error))} |" for error in raised]
    table = "\n".join(["| error | exit code | when |", "|-------|-----------|------|", *rows])
    text = "Every error of the table is a `paceline.PacelineError`."
    return f"## Errors\n\n{text}\n\n```text\n{tree}\n```\n\n{table}"


def _prose(thing: Any) -> str:
    return inspect.getdoc(thing) or ""
