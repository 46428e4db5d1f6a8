"""Data sets by name or path: found, verified, decoded once, then mapped.

DataSettings ── prepare ──▶ Prepared(folder) ── open_dataset ──▶ mapped arrays
                                    └─────────── split ──────▶ training, validation and test samples
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paceline import catalog
from paceline.data.arrays import digest, order
from paceline.data.cache import Dataset, IndexEntry, entry_path, open_dataset, read_entry, store_arrays, write_entry
from paceline.data.request import Request, request
from paceline.errors import DataError
from paceline.identity import cache_folder
from paceline.records.settings import DataSettings

_SPLIT_SEED = 690_590


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A data set in the cache."""

    dataset: Dataset
    folder: Path
    note: str | None
    """For the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Indices, int64, ascending: disjoint ones of the training set, and of the test set."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetState:
    """A data set of the catalog, and whether it is cached."""

    name: str
    description: str
    cached: bool
    folder: Path | None
    train: int | None
    test: int | None
    shape: tuple[int, int, int] | None
    source: str | None
    class_names: tuple[str, ...] | None
    train_counts: tuple[int, ...] | None
    """Training samples of each class."""
    test_counts: tuple[int, ...] | None


def prepare(
    settings: DataSettings,
    *,
    base: Path,
    cache: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Prepared:
    """The configured data set, decoded in the cache. Relative paths start at `base`."""
    cache = cache or cache_folder()
    wanted = request(settings, base, cache, say)
    found = _cached(wanted, cache)
    if found is not None:
        return found
    if wanted.fetch is not None:
        wanted.fetch()
        wanted = request(settings, base, cache, say)  # its key contains the fetched files
    arrays = wanted.decode()
    folder, dataset = store_arrays(cache, wanted.name, arrays)
    entry = IndexEntry(folder=folder.name, source=arrays.source, note=arrays.note)
    write_entry(entry_path(cache, wanted.name, wanted.key), entry)
    return Prepared(dataset=dataset, folder=folder, note=arrays.note)


def cached(settings: DataSettings, *, base: Path, cache: Path | None = None) -> Prepared | None:
    """The configured data set if it is in the cache; nothing is fetched or decoded."""
    cache = cache or cache_folder()
    return _cached(request(settings, base, cache, lambda line: None), cache)


def check(settings_or_name: DataSettings | str, *, base: Path, cache: Path | None = None) -> Prepared:
    """A cached data set, after every byte was compared with its digest."""
    cache = cache or cache_folder()
    named = isinstance(settings_or_name, str)
    settings = DataSettings(dataset=settings_or_name) if named else settings_or_name
    wanted = request(settings, base, cache, lambda line: None)
    entry = read_entry(entry_path(cache, wanted.name, wanted.key))
    if entry is None:
        raise not_cached(settings, cache)
    folder = cache / entry.folder
    mapped = open_dataset(folder)
    if digest(mapped.parts(), mapped.dataset.facts) != mapped.dataset.digest:
        raise DataError(
            f"The cached data set {folder} is damaged: its bytes do not have the SHA-256 they were stored with.",
            right=f"Expected {mapped.dataset.digest} over the four arrays.",
            next=f"Remove that folder, then: paceline data fetch {settings.dataset}",
        )
    return Prepared(dataset=replace(mapped.dataset, source=entry.source), folder=folder, note=entry.note)


def not_cached(settings: DataSettings, cache: Path | None = None) -> DataError:
    """Error for a data set that is not in the cache."""
    return DataError(
        f"{settings.dataset} is not in the cache {cache or cache_folder()}.",
        right="Only what was fetched can be checked or shown.",
        next=f"Fetch it: paceline data fetch {settings.dataset}",
    )


def catalog_state(cache: Path | None = None) -> tuple[DatasetState, ...]:
    """The data sets of the catalog, and which of them are cached."""
    cache = cache or cache_folder()
    states = []
    for name in catalog.names("dataset"):
        try:
            found = cached(DataSettings(dataset=name), base=Path(), cache=cache)
        except DataError:  # invalid files of the user: reported when they are used
            found = None
        states.append(
            DatasetState(
                name=name,
                description=catalog.description("dataset", name),
                cached=found is not None,
                folder=found.folder if found else None,
                train=found.dataset.train if found else None,
                test=found.dataset.test if found else None,
                shape=found.dataset.shape if found else None,
                source=found.dataset.source if found else None,
                class_names=found.dataset.class_names if found else None,
                train_counts=found.dataset.train_counts if found else None,
                test_counts=found.dataset.test_counts if found else None,
            )
        )
    return tuple(states)


def split(dataset: Dataset, settings: DataSettings) -> Split:
    """Training, validation and test samples: equal for every run, rank and repeat.

    Validation samples are drawn first: they do not depend on the number of training samples.
    """
    num_validation = _num_validation(dataset, settings)
    left = dataset.train - num_validation
    num_train = left if settings.train_samples is None else settings.train_samples
    if not 1 <= num_train <= left:
        held = f" after {num_validation:,} are held out for validation" if num_validation else ""
        raise DataError(
            f"train_samples is {num_train:,}, and {dataset.name} has {dataset.train:,} training samples{held}.",
            right=f"train_samples must lie between 1 and {left:,}."
            if left
            else "At least one must be left to train on.",
            next="Correct [data] in the study file.",
        )
    num_test = dataset.test if settings.test_samples is None else settings.test_samples
    if not 1 <= num_test <= dataset.test:
        raise DataError(
            f"test_samples is {num_test:,}, and {dataset.name} has {dataset.test:,} test samples.",
            right=f"test_samples must lie between 1 and {dataset.test:,}.",
            next="Correct [data] in the study file.",
        )
    shuffled = _shuffled(dataset, dataset.train)
    return Split(
        train=np.sort(shuffled[num_validation : num_validation + num_train]),
        validation=np.sort(shuffled[:num_validation]),
        test=np.sort(_shuffled(dataset, dataset.test)[:num_test]),
    )


def _shuffled(dataset: Dataset, samples: int) -> np.ndarray:
    """Order of the samples: interleaved classes are not shuffled, which keeps them exactly balanced."""
    return np.arange(samples) if dataset.mixed else order(samples, _SPLIT_SEED)


def _num_validation(dataset: Dataset, settings: DataSettings) -> int:
    asked = settings.validation
    if dataset.validation:
        if asked:
            raise DataError(
                f"validation is {asked:g}, and {dataset.name} brings {dataset.validation:,} samples to validate on.",
                right="Validation is held out only where a data set brings none.",
                next="Leave validation out of [data] in the study file.",
            )
        return dataset.validation
    if 0 <= asked < 1:
        return round(asked * dataset.train)
    if asked > 1e15 or asked != asked or asked < 0 or asked != int(asked) or asked > dataset.train:
        raise DataError(
            f"validation is {asked:g}, and {dataset.name} has {dataset.train:,} training samples.",
            right="validation is a fraction below 1, or a whole number of samples that are there.",
            next="Correct [data] in the study file.",
        )
    return int(asked)


def _cached(wanted: Request, cache: Path) -> Prepared | None:
    """Cached data of a request; None if missing or damaged."""
    entry = read_entry(entry_path(cache, wanted.name, wanted.key))
    if entry is None:
        return None
    folder = cache / entry.folder
    try:
        dataset = open_dataset(folder).dataset
    except DataError:
        return None
    return Prepared(dataset=replace(dataset, name=wanted.name, source=entry.source), folder=folder, note=entry.note)
