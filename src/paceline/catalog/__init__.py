"""Every name that a study may use, each with its capabilities and requirements.

    catalog.strategy("ddp").needs_mpi        an entry: plain data, nothing is imported
    catalog.load("strategy", "ddp")          its object, imported from the path of its entry

Entries are in one file per kind. Other packages register entries by entry points: see `outside`, which is imported
only for a name that is not built in, and to list all names.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from paceline.catalog.dataset_entries import DATA_FORMS, DATASETS, DatasetEntry
from paceline.catalog.entry import Entry
from paceline.catalog.launcher_entries import LAUNCHERS, LauncherEntry
from paceline.catalog.model_entries import (
    FAMILIES,
    MODELS,
    PREPROCESSING,
    TORCH_WEIGHTS_ENDINGS,
    WEIGHTS,
    WEIGHTS_ENDINGS,
    ModelEntry,
)
from paceline.catalog.optimizer_entries import OPTIMIZERS, OptimizerEntry
from paceline.catalog.strategy_entries import RUN_OPTIONS, STRATEGIES, StrategyEntry
from paceline.errors import RequestError

__all__ = [
    "DATA_FORMS",
    "ENTRIES",
    "FAMILIES",
    "PREPROCESSING",
    "RUN_OPTIONS",
    "TORCH_WEIGHTS_ENDINGS",
    "WEIGHTS",
    "WEIGHTS_ENDINGS",
    "DatasetEntry",
    "Entry",
    "LauncherEntry",
    "ModelEntry",
    "OptimizerEntry",
    "StrategyEntry",
]

ENTRIES: Mapping[str, dict[str, Any]] = {
    "model": MODELS,
    "dataset": DATASETS,
    "strategy": STRATEGIES,
    "launcher": LAUNCHERS,
    "optimizer": OPTIMIZERS,
    "finding": {},
}
_RECORDS: Mapping[str, type[Entry]] = {
    "model": ModelEntry,
    "dataset": DatasetEntry,
    "strategy": StrategyEntry,
    "launcher": LauncherEntry,
    "optimizer": OptimizerEntry,
}


def names(kind: str) -> tuple[str, ...]:
    """The names of a kind: the built-in ones in order, then those that other packages register."""
    from paceline.catalog import outside

    registered = outside.registered(kind)
    for name, point in registered.items():
        if name in ENTRIES[kind]:
            raise outside.shadowing(kind, point)
    return (*ENTRIES[kind], *sorted(registered))


def known(kind: str, name: str) -> bool:
    """Whether a name is in the catalog. Members of a family are not checked before they are loaded."""
    return name in ENTRIES[kind] or _family(kind, name) is not None or name in names(kind)


def strategy(name: str) -> StrategyEntry:
    """The entry of a strategy; an empty entry for an unknown name."""
    return cast(StrategyEntry, _entry("strategy", name))


def launcher(name: str) -> LauncherEntry:
    """The entry of a launcher; an empty entry for an unknown name."""
    return cast(LauncherEntry, _entry("launcher", name))


def optimizer(name: str) -> OptimizerEntry:
    """The entry of an optimizer; an empty entry for an unknown name."""
    return cast(OptimizerEntry, _entry("optimizer", name))


def model(name: str) -> ModelEntry:
    """The entry of a model; an empty entry for a user's model file."""
    return cast(ModelEntry, _entry("model", name))


def dataset(name: str) -> DatasetEntry:
    """The entry of a data set; an empty entry for a user's files."""
    return cast(DatasetEntry, _entry("dataset", name))


def entries(kind: str) -> Iterator[tuple[str, Any]]:
    """Every name of a kind with its entry, except those of packages that cannot be imported."""
    for name in names(kind):
        try:
            yield name, _entry(kind, name)
        except RequestError:
            continue  # reported when the name is used or described


def description(kind: str, name: str) -> str:
    """One line about an entry; the reason if it cannot be imported."""
    try:
        return _entry(kind, name).text
    except RequestError as error:
        return error.what


def carriers(strategy_name: str) -> tuple[str, ...]:
    """The launchers that can start the ranks of a strategy: only those with MPI if it needs MPI."""
    return with_mpi() if strategy(strategy_name).needs_mpi else names("launcher")


def with_mpi() -> tuple[str, ...]:
    """The launchers whose ranks find each other through MPI."""
    return tuple(name for name, entry in entries("launcher") if entry.provides_mpi)


def load(kind: str, name: str) -> Any:
    """The object of a name; RequestError with the nearest name if it is unknown."""
    if not known(kind, name):
        raise RequestError(unknown(kind, name))
    if kind not in _RECORDS:
        from paceline.catalog import outside

        return outside.finding(name)
    found = _object(kind, name, _entry(kind, name).at)
    return functools.partial(found, name.partition(":")[2]) if _family(kind, name) else found


def unknown(kind: str, name: str) -> str:
    """The error message for an unknown name."""
    near = nearest(name, names(kind))
    hint = f" Did you mean {near!r}?" if near else ""
    return f"There is no {kind} called {name!r}.{hint} Known: {', '.join((*names(kind), *members(kind)))}."


def members(kind: str) -> tuple[str, ...]:
    """How the names of a kind's families are spelled, such as torchvision:NAME."""
    return tuple(f"{first}:NAME" for first in FAMILIES) if ENTRIES[kind] is MODELS else ()


def nearest(name: str, candidates: tuple[str, ...] | list[str]) -> str | None:
    """The most similar candidate; None if none is similar."""
    found = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.6)
    return found[0] if found else None


def _entry(kind: str, name: str) -> Entry:
    first = _family(kind, name)
    if name in ENTRIES[kind]:
        return ENTRIES[kind][name]
    if first is not None:
        return FAMILIES[first]
    from paceline.catalog import outside

    return outside.entry(kind, name, _RECORDS[kind]) if name in outside.registered(kind) else _RECORDS[kind]()


def _family(kind: str, name: str) -> str | None:
    """The family of a name such as torchvision:resnet101; None if it has none."""
    first, colon, rest = name.partition(":")
    return first if colon and rest and first in FAMILIES and ENTRIES[kind] is MODELS else None


def _object(kind: str, name: str, at: str) -> Any:
    """The object of an entry; RequestError if that of another package cannot be imported."""
    module, _, attribute = at.partition(":")
    if name in ENTRIES[kind] or _family(kind, name):
        return getattr(importlib.import_module(module), attribute)
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise RequestError(
            f"The {kind} {name!r} is at {at!r}, which cannot be imported: {type(error).__name__}: {error}",
            right=f"Its {_RECORDS[kind].__name__} has at = 'module:object', which Python can import.",
            next="Correct the package that registers it, or uninstall it.",
        ) from error
