"""Entries that other packages register, by entry points of their metadata.

    [project.entry-points."paceline.strategies"]
    each = "acme_entries:EACH"          name = "module:object", the object a StrategyEntry

The names are read without importing anything; the object is imported when its entry is used.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from paceline.catalog.entry import Entry
from paceline.catalog.strategy_entries import RUN_OPTIONS, StrategyEntry
from paceline.errors import RequestError

GROUPS = {
    "strategy": "paceline.strategies",
    "launcher": "paceline.launchers",
    "optimizer": "paceline.optimizers",
    "model": "paceline.models",
    "dataset": "paceline.datasets",
    "finding": "paceline.findings",
}


@functools.cache
def registered(kind: str) -> dict[str, EntryPoint]:
    """Entry points of a kind, by name; RequestError if two packages register one name."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUPS[kind]):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise RequestError(
                f"Two packages register a {kind} called {point.name!r}: {package(other)} and {package(point)}.",
                right=f"Every name of the entry points {GROUPS[kind]} is of one package.",
                next=f"Rename it in one of them, or uninstall that one: pip uninstall {package(point)}",
            )
    return found


def package(point: EntryPoint) -> str:
    """The name of the package that registers an entry point."""
    return point.dist.name if point.dist else point.module


def shadowing(kind: str, point: EntryPoint) -> RequestError:
    """The error for a package's entry with a built-in name."""
    return RequestError(
        f"The package {package(point)} registers a {kind} called {point.name!r}, which is a name of Paceline's own.",
        right="A registered name is a new one.",
        next=f"Rename it in the package's entry points {GROUPS[kind]}, or: pip uninstall {package(point)}",
    )


@functools.cache
def imported(kind: str, name: str) -> Any:
    """The object of an entry point; RequestError if the package's code fails in any way."""
    point = registered(kind)[name]
    try:
        return point.load()
    except Exception as error:
        raise _broken(kind, point, f"cannot be imported: {type(error).__name__}: {error}") from error


def entry(kind: str, name: str, record: type[Entry]) -> Any:
    """The entry that a package registers under a name, which must be a record of the right kind."""
    found, point = imported(kind, name), registered(kind)[name]
    if not isinstance(found, record):
        raise _broken(kind, point, f"is of type {type(found).__name__}", record.__name__)
    if not all(found.at.partition(":")):
        raise _broken(kind, point, f"has at={found.at!r}, which is not 'module:attribute'", record.__name__)
    unknown = set(found.options) - set(RUN_OPTIONS) if isinstance(found, StrategyEntry) else set()
    if unknown:
        what = f"takes {sorted(unknown)[0]!r}, and the options of strategies are {', '.join(RUN_OPTIONS)}"
        raise _broken(kind, point, what, record.__name__)
    return found


def finding(name: str) -> Any:
    """The finding that a package registers under a name: an object with find(measured) and words(finding)."""
    found = imported("finding", name)
    missing = [method for method in ("find", "words") if not callable(getattr(found, method, None))]
    if missing:
        raise _broken("finding", registered("finding")[name], f"has no function {' and no '.join(missing)}")
    return found


def _broken(kind: str, point: EntryPoint, what: str, record: str = "") -> RequestError:
    right = f"The object is a paceline.catalog.{record}." if record else "It can be imported as module:object."
    if kind == "finding":
        right = "The object has the functions find(measured) and words(finding)."
    return RequestError(
        f"The {kind} {point.name!r} of the package {package(point)}, {point.value}, {what}.",
        right=right,
        next=f"Correct the package or its entry point in {GROUPS[kind]}, or: pip uninstall {package(point)}",
    )
