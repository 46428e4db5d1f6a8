"""Decides which lists in `[model]` are factors, and which are one value that is a list.

    neurons = [32, 128]      of mlp: two values, because it takes a number
    head = [20]              of a pretrained network: one value, because it takes a list
    sizes = [64, 32]         of a user's function: from its parameter's default or annotation

    def build(shape, classes, *, width=64, sizes=(64, 32), depth: int, layers: list[int]):
                                 varied    one value       varied      one value

The file is parsed, not executed. A parameter without default and annotation is unclear, and refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paceline import catalog
from paceline.studies.load.files import model_path
from paceline.studies.load.keys import Problem, mistake, shown

ONE, SEVERAL, UNCLEAR = "one", "several", "unclear"
_LISTS = ("list", "tuple", "Sequence", "Iterable", "Collection")
_SINGLE = ("int", "float", "str", "bool")


def split_factors(
    options: dict[str, Any], names: Sequence[str], base: Path
) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]], list[Problem]]:
    """The options with the first value of each factor, the factors, and the mistakes."""
    values, several, problems = dict(options), {}, []
    for key, items in options.items():
        if not isinstance(items, list) or meaning(key, names, base) == ONE:
            continue
        path = f"model.{key}"
        if meaning(key, names, base) == UNCLEAR:
            problems.append(_unclear(path, items, names))
        elif not items:
            problems.append(Problem((path,), f"{path} = []: must name at least one value."))
        elif not all(isinstance(item, bool | int | float | str) for item in items):
            text = f"{path} = {shown(items)}: each must be a number, text, true or false."
            problems.append(Problem((path,), text))
        elif len({(type(item), item) for item in items}) < len(items):
            problems.append(mistake(path, items, "each value may stand there once."))
        else:
            values[key], several[key] = items[0], tuple(items)
            continue
        del values[key]
    return values, {key: items for key, items in several.items() if len(items) > 1}, problems


def meaning(key: str, names: Sequence[str], base: Path) -> str:
    """The meaning of a list for an option of these models: one value, several, or unclear; one if unknown."""
    found = {each for name in names if (each := _of_model(key, name, base)) is not None}
    return found.pop() if len(found) == 1 else UNCLEAR if found else ONE


def unknown_options(options: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Options that none of several models of the catalog takes."""
    taken = [catalog.model(name).options for name in names]
    for key in options:
        if all(each is not None and key not in each for each in taken):
            yield key


def _of_model(key: str, name: str, base: Path) -> str | None:
    taken = catalog.model(name).options
    if taken is not None:
        return None if key not in taken else ONE if isinstance(taken[key], list) else SEVERAL
    path, function = model_path(name, base), name.rpartition(":")[2]
    return None if path is None else _of_function(key, function, path)


def _of_function(key: str, function: str, path: Path) -> str | None:
    """The meaning of a list for a parameter of the user's function; None if there is no such parameter."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    if not found:
        return UNCLEAR  # imported or generated: it may take anything
    arguments = found[-1].args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip([each.arg for each in plain[::-1]], arguments.defaults[::-1], strict=False))
    defaults |= {
        each.arg: value for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
    }
    named = {each.arg: each for each in (*plain, *arguments.kwonlyargs)}
    if key not in named:
        return UNCLEAR if arguments.kwarg else None
    return _of_default(defaults.get(key)) or _of_annotation(named[key].annotation) or UNCLEAR


def _of_default(default: ast.expr | None) -> str | None:
    if isinstance(default, ast.List | ast.Tuple):
        return ONE
    if isinstance(default, ast.UnaryOp):  # -1
        default = default.operand
    return SEVERAL if isinstance(default, ast.Constant) and default.value is not None else None


def _of_annotation(annotation: ast.expr | None) -> str | None:
    """From the names in it: `Sequence[int]` and `list[int] | None` are lists, `int | None` is not."""
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(annotation) if isinstance(node, ast.Attribute)}
    return ONE if names & set(_LISTS) else SEVERAL if names & set(_SINGLE) else None


def _unclear(path: str, items: list[Any], names: Sequence[str]) -> Problem:
    key = path.split(".", 1)[1]
    text = f"is it one value, or {len(items)} to vary? {shown(names[0])} does not say: give its parameter a default"
    return mistake(path, items, f"{text}, {key}=(1, 2) for a list, {key}=1 to have it varied.")
