"""The names of `paceline`, from the package itself.

Made here and not by mkdocstrings: there are a dozen names, whose signatures and docstrings a screen of code can show in
the form of the other pages, and four packages less are installed for it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from docstrings import cell, fields

import paceline
from paceline import errors


def page() -> str:
    """Functions, then classes, then errors, each with what its docstring says."""
    public = {name: getattr(paceline, name) for name in paceline.__all__ if not name.startswith("__")}
    raised = {name: thing for name, thing in public.items() if isinstance(thing, type) and issubclass(thing, Exception)}
    parts = [_function(name, thing) for name, thing in public.items() if inspect.isfunction(thing)]
    parts += [_class(name, thing) for name, thing in public.items() if isinstance(thing, type) and name not in raised]
    return "\n\n".join([*parts, _errors(raised)])


def _function(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    lines = [f"    {_parameter(parameter)}," for parameter in signature.parameters.values()]
    keywords = next(
        (i for i, p in enumerate(signature.parameters.values()) if p.kind is inspect.Parameter.KEYWORD_ONLY), None
    )
    if keywords is not None:
        lines.insert(keywords, "    *,")
    result = f" -> {signature.return_annotation}" if signature.return_annotation is not signature.empty else ""
    text = "\n".join([f"paceline.{name}(", *lines, f"){result}"])
    return f"## paceline.{name}\n\n```text\n{text}\n```\n\n{_prose(function)}"


def _parameter(parameter: inspect.Parameter) -> str:
    """'repeats: int | None = None', the type as the code writes it."""
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{parameter.name}: {parameter.annotation}{default}"


def _class(name: str, found: type) -> str:
    parts = [f"## paceline.{name}", _prose(found)]
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


def _errors(raised: dict[str, Any]) -> str:
    tree = inspect.getdoc(errors) or ""
    rows = [f"| `paceline.{name}` | {error.exit_code} | {cell(_prose(error))} |" for name, error in raised.items()]
    table = "\n".join(["| error | exit code | when |", "|-------|-----------|------|", *rows])
    return f"## Errors\n\n```text\n{tree}\n```\n\n{table}"


def _prose(thing: Any) -> str:
    return inspect.getdoc(thing) or ""
