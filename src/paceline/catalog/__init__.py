"""Every name that a study may use, each with what it can do and needs.

    catalog.strategy("ddp").needs_mpi        an entry: plain data, nothing is imported
    catalog.load("strategy", "ddp")          its object, imported from where the entry says

Entries are in one file per kind. Other packages add theirs by entry points: see `outside`, which is imported only
where a name is not one of Paceline's own, or all names are asked for.
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
    """The known names of a kind: Paceline's own in their order, then those that other packages register."""
    from paceline.catalog import outside

    registered = outside.registered(kind)
    for name, point in registered.items():
        if name in ENTRIES[kind]:
            raise outside.shadowing(kind, point)
    return (*ENTRIES[kind], *sorted(registered))


def known(kind: str, name: str) -> bool:
    """Whether a name is in the catalog; whether a family has such a member is known only when it is loaded."""
    return name in ENTRIES[kind] or _family(kind, name) is not None or name in names(kind)


def strategy(name: str) -> StrategyEntry:
    """What a strategy can do; nothing for a name that is not in the catalog."""
    return cast(StrategyEntry, _entry("strategy", name))


def launcher(name: str) -> LauncherEntry:
    """What a launcher can do; nothing for a name that is not in the catalog."""
    return cast(LauncherEntry, _entry("launcher", name))


def optimizer(name: str) -> OptimizerEntry:
    """What an optimizer takes; nothing for a name that is not in the catalog."""
    return cast(OptimizerEntry, _entry("optimizer", name))


def model(name: str) -> ModelEntry:
    """What a model takes; a model of the user's own takes what its function takes."""
    return cast(ModelEntry, _entry("model", name))


def dataset(name: str) -> DatasetEntry:
    """What a data set is; files of the user's own have an entry that says nothing."""
    return cast(DatasetEntry, _entry("dataset", name))


def entries(kind: str) -> Iterator[tuple[str, Any]]:
    """Every name of a kind with its entry, without those of packages that cannot be imported."""
    for name in names(kind):
        try:
            yield name, _entry(kind, name)
        except RequestError:
            continue  # said where the name is used, and in its description


def description(kind: str, name: str) -> str:
    """One line about an entry; for one that cannot be imported, the reason."""
    try:
        return _entry(kind, name).text
    except RequestError as error:
        return error.what


def carriers(strategy_name: str) -> tuple[str, ...]:
    """The launchers that can start the ranks of a strategy: only those with MPI where it needs MPI."""
    return with_mpi() if strategy(strategy_name).needs_mpi else names("launcher")


def with_mpi() -> tuple[str, ...]:
    """The launchers whose ranks find each other through MPI."""
    return tuple(name for name, entry in entries("launcher") if entry.provides_mpi)


def load(kind: str, name: str) -> Any:
    """The object that a name stands for; an unknown name is refused with the nearest one."""
    if not known(kind, name):
        raise RequestError(unknown(kind, name))
    if kind not in _RECORDS:
        from paceline.catalog import outside

        return outside.finding(name)
    found = _object(kind, name, _entry(kind, name).at)
    return functools.partial(found, name.partition(":")[2]) if _family(kind, name) else found


def unknown(kind: str, name: str) -> str:
    """The sentence for a name that is not in the catalog."""
    near = nearest(name, names(kind))
    hint = f" Did you mean {near!r}?" if near else ""
    return f"There is no {kind} called {name!r}.{hint} Known: {', '.join((*names(kind), *members(kind)))}."


def members(kind: str) -> tuple[str, ...]:
    """How the names of a kind's families are spelled, such as torchvision:NAME."""
    return tuple(f"{first}:NAME" for first in FAMILIES) if ENTRIES[kind] is MODELS else ()


def nearest(name: str, candidates: tuple[str, ...] | list[str]) -> str | None:
    """The candidate that was probably meant, or None."""
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
    """The family of a name such as torchvision:resnet101; None where it is of none."""
    first, colon, rest = name.partition(":")
    return first if colon and rest and first in FAMILIES and ENTRIES[kind] is MODELS else None


def _object(kind: str, name: str, at: str) -> Any:
    """The object of an entry; what is wrong with that of another package is a RequestError."""
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
