"""The decoded cache: written once, mapped by every rank of a host.

    CACHE/mnist-1f0c9a77e2b4/      train-images.npy train-labels.npy test-images.npy test-labels.npy dataset.json
    CACHE/index/mnist-5d2ab0….json folder of a request, so nothing is decoded twice
    CACHE/sources/mnist/           files of the user

A folder is written under a temporary name, synced, and renamed: it is complete or absent, and if several processes
write it at once the first wins.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paceline.data.arrays import PARTS, Arrays, SplitArrays, channel_statistics, digest
from paceline.errors import DataError, FolderError, StorageError
from paceline.storage.codec import read_record, storage_error, sync_folder, write_record

_PARTIAL = ".making-"
_ABANDONED_AFTER_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """`dataset.json`: description of a cached data set."""

    SCHEMA = "paceline.dataset/1"

    name: str
    digest: str
    """SHA-256 over the decoded arrays, their types and shapes."""
    shape: tuple[int, int, int]
    """Height, width, channels."""
    classes: int
    train: int
    test: int
    dtype: str
    """Of the images: uint8 or float32."""
    mean: tuple[float, ...]
    """Per channel of the training images, uint8 scaled to 0..1 first."""
    std: tuple[float, ...]
    """Standard deviation per channel of the training images; 1 for a constant channel."""
    source: str
    """Description of the source."""
    class_names: tuple[str, ...] | None = None
    """In the order of their labels; None if unknown."""
    train_counts: tuple[int, ...] = ()
    """Training samples of each class."""
    test_counts: tuple[int, ...] = ()
    """Test samples of each class."""
    validation: int = 0
    """Number of training samples, the first ones, that are a validation set of the data set."""
    mixed: bool = False
    """Whether classes are interleaved: any range of samples has the class balance of all."""

    @property
    def facts(self) -> str:
        """Text that the digest covers besides the arrays; empty for sets without it."""
        return facts(self.class_names, self.validation, self.mixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedDataset(SplitArrays):
    """A cached data set, memory-mapped: pages are shared by all ranks of a host."""

    dataset: Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """`index/NAME-KEY.json`: the folder of a request."""

    SCHEMA = "paceline.dataset-index/1"

    folder: str
    source: str
    note: str | None


def open_dataset(folder: Path) -> MappedDataset:
    """A cached data set, mapped copy-on-write: torch accepts the arrays, and writes never reach the files.

    Sizes are checked; `check` reads every byte.
    """
    try:
        dataset = read_record(folder / "dataset.json", Dataset)
        arrays = [_mapped(folder / f"{part}.npy", dataset, part) for part in PARTS]
    except (StorageError, OSError, ValueError) as error:
        reason = getattr(error, "what", str(error)).rstrip(".")
        raise DataError(
            f"The cached data set {folder} is damaged: {reason}.",
            right="It holds four arrays and dataset.json, as they were written.",
            next="Run the same command again, or paceline data fetch: either makes it anew.",
        ) from error
    train_images, train_labels, test_images, test_labels = arrays
    return MappedDataset(
        dataset=dataset,
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
    )


def store_arrays(cache: Path, name: str, arrays: Arrays) -> tuple[Path, Dataset]:
    """Folder and description of normalised arrays, which are written to the cache."""
    partial = arrays.made
    try:
        dataset = _description(name, arrays)
        folder = cache / f"{_file_name(name)}-{dataset.digest[:12]}"
        with storage_errors(folder):
            cache.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(cache)
            if _is_intact(folder, dataset.digest):
                return folder, dataset
            partial = partial or partial_folder(cache, folder.name)
            for part, array in arrays.parts().items():
                if arrays.made is None or part.endswith("labels"):
                    _write_array(partial / f"{part}.npy", array)
            write_record(partial / "dataset.json", dataset)
            _move_into_place(partial, folder, dataset.digest)
            sync_folder(cache)
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
    return folder, dataset


def partial_folder(cache: Path, name: str) -> Path:
    """New temporary folder of the cache; it is removed after a day if a killed process leaves it."""
    partial = cache / f"{_PARTIAL}{_file_name(name)}-{os.getpid()}-{secrets.token_hex(4)}"
    partial.mkdir(parents=True)
    return partial


def entry_path(cache: Path, name: str, key: str) -> Path:
    """The file of a request's index entry."""
    return cache / "index" / f"{_file_name(name)}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def read_entry(path: Path) -> IndexEntry | None:
    """An index entry; None if it is missing or unreadable."""
    if not os.path.isfile(path):
        return None
    try:
        return read_record(path, IndexEntry)
    except StorageError:
        return None


def write_entry(path: Path, entry: IndexEntry) -> None:
    """Store the folder of a request."""
    with storage_errors(path):
        write_record(path, entry)


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Context that converts write errors of `path` to errors about the cache."""
    try:
        yield
    except (OSError, FolderError, StorageError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        converted = storage_error(path, cause)
        if isinstance(converted, FolderError):
            converted.right = "Decoded data sets are kept there, for every rank to map."
            converted.next = "Set PACELINE_CACHE to a folder that can be written to."
        raise converted from error


def facts(class_names: tuple[str, ...] | None, validation: int, mixed: bool) -> str:
    """Facts about a data set besides its arrays, as the text that is hashed with them."""
    return json.dumps([class_names, validation, mixed]) if class_names or validation or mixed else ""


def class_counts(labels: np.ndarray, classes: int) -> tuple[int, ...]:
    """Samples of each class."""
    return tuple(np.bincount(labels, minlength=classes).tolist())


def _description(name: str, arrays: Arrays) -> Dataset:
    assert arrays.classes is not None
    images = arrays.train_images
    mean, std = channel_statistics(images)
    height, width, channels = images.shape[1:]
    return Dataset(
        name=name,
        digest=digest(arrays.parts(), facts(arrays.class_names, arrays.validation, arrays.mixed)),
        shape=(height, width, channels),
        classes=arrays.classes,
        train=len(images),
        test=len(arrays.test_images),
        dtype=images.dtype.name,
        mean=mean,
        std=std,
        source=arrays.source,
        class_names=arrays.class_names,
        train_counts=class_counts(arrays.train_labels, arrays.classes),
        test_counts=class_counts(arrays.test_labels, arrays.classes),
        validation=arrays.validation,
        mixed=arrays.mixed,
    )


def _mapped(path: Path, dataset: Dataset, part: str) -> np.ndarray:
    mapped = np.lib.format.open_memmap(path, mode="c")
    count = dataset.train if part.startswith("train") else dataset.test
    shape, dtype = ((count, *dataset.shape), dataset.dtype) if part.endswith("images") else ((count,), "int64")
    if mapped.shape != shape or mapped.dtype.name != dtype or mapped.dtype.byteorder == ">":
        raise ValueError(f"{path.name} holds {mapped.dtype.name} {mapped.shape} in place of {dtype} {shape}")
    if path.stat().st_size != mapped.offset + mapped.nbytes:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes in place of {mapped.offset + mapped.nbytes:,}")
    return mapped.view(np.ndarray)


def _is_intact(folder: Path, digest: str) -> bool:
    try:
        return open_dataset(folder).dataset.digest == digest
    except DataError:
        return False


def _write_array(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _move_into_place(partial: Path, folder: Path, digest: str) -> None:
    """Rename; an existing folder is used if it is intact, and moved away if not."""
    for _ in range(10):
        try:
            os.rename(partial, folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        if _is_intact(folder, digest):
            return
        away = folder.with_name(f"{_PARTIAL}damaged-{secrets.token_hex(8)}")
        try:
            os.rename(folder, away)
        except FileNotFoundError:
            continue
        if away.is_dir():
            shutil.rmtree(away, ignore_errors=True)
        else:
            away.unlink(missing_ok=True)
    raise OSError(errno.EBUSY, "other processes keep replacing it")


def _remove_abandoned(cache: Path) -> None:
    """Remove temporary folders of processes that were killed more than a day ago."""
    for path in cache.glob(f"{_PARTIAL}*"):
        try:
            if time.time() - path.stat().st_mtime > _ABANDONED_AFTER_S:
                shutil.rmtree(path, ignore_errors=True)
        except FileNotFoundError:
            continue


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60] or "data"
