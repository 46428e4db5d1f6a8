"""Data sets by name or path: found, verified, decoded once, mapped ever after.

DataSettings ── prepare ──▶ Prepared(folder) ── open_dataset ──▶ mapped arrays
                                    └─────────── split ──────▶ who trains, who validates
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paceline import catalog
from paceline.data.arrays import Arrays, digest, order, tidy
from paceline.data.cache import (
    Dataset,
    IndexEntry,
    entry_path,
    keep,
    open_dataset,
    read_entry,
    write_entry,
)
from paceline.data.idx import idx_files, read_idx_folder
from paceline.data.npz import read_npz
from paceline.data.sources import NoSourceError
from paceline.data.synthetic import synthetic_options
from paceline.errors import DataError
from paceline.identity import cache_folder, in_ci
from paceline.records.study import DataSettings

# Part of every index key: raised when decoding changes, so that no old cache answers.
_DECODER = 1
_SPLIT_SEED = 690_590


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A data set that is ready to be mapped."""

    dataset: Dataset
    folder: Path
    note: str | None
    """What its user has to know about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Indices into the training set, int64, ascending, disjoint."""

    train: np.ndarray
    validation: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetState:
    """A data set of the catalog, and whether it is here."""

    name: str
    description: str
    cached: bool
    folder: Path | None
    train: int | None
    test: int | None
    shape: tuple[int, int, int] | None
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What is asked for, under a key that changes whenever the answer could."""

    name: str
    key: str
    decode: Callable[[], Arrays]


def prepare(
    settings: DataSettings,
    *,
    base: Path,
    cache: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Prepared:
    """The data set that the settings name, decoded into the cache. Relative paths start at `base`."""
    cache = cache or cache_folder()
    request = _request(settings, base, cache, say)
    found = _cached(request, cache)
    if found is not None:
        return found
    arrays = request.decode()
    folder, dataset = keep(cache, request.name, arrays)
    entry = IndexEntry(folder=folder.name, source=arrays.source, note=arrays.note)
    write_entry(entry_path(cache, request.name, request.key), entry)
    return Prepared(dataset=dataset, folder=folder, note=arrays.note)


def prepare_or_digits(
    settings: DataSettings,
    *,
    base: Path,
    cache: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Prepared, DataSettings]:
    """`prepare`, but scikit-learn's digits where no source of MNIST can be reached; in CI that is
    a failure. The settings come back as they then apply: no more samples than there are."""
    try:
        return prepare(settings, base=base, cache=cache, say=say), settings
    except NoSourceError as error:
        if settings.dataset != "mnist" or in_ci():
            raise
        reasons = "; ".join(error.failures)
    prepared = prepare(replace(settings, dataset="digits"), base=base, cache=cache, say=say)
    fitted, changes = _fitted(replace(settings, dataset="digits"), prepared.dataset)
    note = f"MNIST could not be had from any source ({reasons}): using the digits that scikit-learn carries"
    return replace(prepared, note=", ".join((note, *changes))), fitted


def check(settings_or_name: str, *, base: Path, cache: Path | None = None) -> Prepared:
    """A cached data set after every byte of it was read and compared with its digest."""
    cache = cache or cache_folder()
    request = _request(DataSettings(dataset=settings_or_name), base, cache, lambda line: None)
    entry = read_entry(entry_path(cache, request.name, request.key))
    if entry is None:
        raise DataError(
            f"{settings_or_name} is not in the cache {cache}.",
            right="Only what was fetched can be checked.",
            next=f"Fetch it: paceline data fetch {settings_or_name}",
        )
    folder = cache / entry.folder
    mapped = open_dataset(folder)
    if digest(mapped.parts()) != mapped.dataset.digest:
        raise DataError(
            f"The cached data set {folder} is damaged: its bytes do not have the SHA-256 they were stored with.",
            right=f"Expected {mapped.dataset.digest} over the four arrays.",
            next=f"Remove that folder, then: paceline data fetch {settings_or_name}",
        )
    return Prepared(dataset=replace(mapped.dataset, source=entry.source), folder=folder, note=entry.note)


def catalog_state(cache: Path | None = None) -> tuple[DatasetState, ...]:
    """The data sets of the catalog, and which of them are in the cache."""
    cache = cache or cache_folder()
    states = []
    for name in catalog.names("dataset"):
        found = _cached(_request(DataSettings(dataset=name), Path(), cache, lambda line: None), cache)
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
            )
        )
    return tuple(states)


def split(dataset: Dataset, settings: DataSettings) -> Split:
    """Who validates and who trains: the same for every run, rank and repeat. Validation is drawn
    first, so that training on fewer samples does not change it."""
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
    shuffled = order(dataset.train, _SPLIT_SEED)
    return Split(
        train=np.sort(shuffled[num_validation : num_validation + num_train]),
        validation=np.sort(shuffled[:num_validation]),
    )


def _fitted(settings: DataSettings, dataset: Dataset) -> tuple[DataSettings, list[str]]:
    """Settings that were meant for MNIST's 60,000 samples, made to fit a smaller set; the changes."""
    changes = []
    fitted = settings
    if settings.validation >= 1:
        share = max(1, round(settings.validation * dataset.train / 60_000))
        fitted = replace(fitted, validation=float(share))
        changes.append(f"{share:,} of them to validate on in place of {settings.validation:,.0f}")
    left = dataset.train - _num_validation(dataset, fitted)
    if settings.train_samples is not None and settings.train_samples > left:
        fitted = replace(fitted, train_samples=left)
        changes.append(f"{left:,} of them to train on in place of {settings.train_samples:,}")
    return fitted, changes


def _num_validation(dataset: Dataset, settings: DataSettings) -> int:
    asked = settings.validation
    if 0 <= asked < 1:
        return round(asked * dataset.train)
    if asked > 1e15 or asked != asked or asked < 0 or asked != int(asked) or asked > dataset.train:
        raise DataError(
            f"validation is {asked:g}, and {dataset.name} has {dataset.train:,} training samples.",
            right="validation is a fraction below 1, or a whole number of samples that are there.",
            next="Correct [data] in the study file.",
        )
    return int(asked)


def _cached(request: _Request, cache: Path) -> Prepared | None:
    """What the cache holds for a request; None where it holds nothing, or nothing sound."""
    entry = read_entry(entry_path(cache, request.name, request.key))
    if entry is None:
        return None
    folder = cache / entry.folder
    try:
        dataset = open_dataset(folder).dataset
    except DataError:
        return None
    return Prepared(dataset=replace(dataset, name=request.name, source=entry.source), folder=folder, note=entry.note)


def _request(settings: DataSettings, base: Path, cache: Path, say: Callable[[str], None]) -> _Request:
    name = settings.dataset
    if name != "synthetic" and (settings.shape, settings.classes, settings.samples) != (None, None, None):
        raise DataError(
            f"shape, classes and samples are given for the data set {name!r}.",
            right="They are settings of synthetic alone: other sets have a shape of their own.",
            next='Remove them from [data], or use dataset = "synthetic".',
        )
    if name in catalog.names("dataset"):
        options = synthetic_options(settings) if name == "synthetic" else None
        make = catalog.load("dataset", name)
        return _Request(
            name=name,
            key=json.dumps([_DECODER, name, options]),
            decode=lambda: make(settings, sources=cache / "sources", say=say),
        )
    return _file_request(name, base)


def _file_request(name: str, base: Path) -> _Request:
    """A request for the user's own files: its key holds their sizes and times, so that a file
    that was changed is decoded again."""
    form, _, rest = name.partition(":")
    path = Path(rest if form in ("npz", "idx") else name).expanduser()
    path = path if path.is_absolute() else base / path
    if form == "npz" or (form != "idx" and path.suffix == ".npz"):
        read, files = read_npz, [path]
    elif form == "idx" or os.path.isdir(path):
        read, files = read_idx_folder, list(idx_files(path).values())
    elif os.path.isfile(path):
        raise DataError(
            f"{path} is neither an .npz file nor a folder of IDX files.",
            right="A data set of your own is an .npz file, or a folder of IDX files.",
            next="For IDX files name their folder.",
        )
    elif len(Path(name).parts) > 1:
        raise DataError(
            f"There is no file or folder {path}.",
            right="dataset names a data set, an .npz file or a folder of IDX files.",
            next="Check the path: a relative one starts at the study file's folder.",
        )
    else:
        raise DataError(
            catalog.unknown("dataset", name),
            right="A path works too: an .npz file, or a folder of IDX files.",
            next="See them all: paceline data list",
        )
    stats = [(str(file), *_stamp(file)) for file in files if os.path.isfile(file)]
    return _Request(
        name=path.stem if read is read_npz else path.resolve().name,
        key=json.dumps([_DECODER, str(path.absolute()), stats]),
        decode=lambda: tidy(read(path), str(path)),
    )


def _stamp(file: Path) -> tuple[int, int, int]:
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
