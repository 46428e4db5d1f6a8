"""A decoded data set in memory: normalised, checked, measured and hashed.

    images   N, H, W, C   uint8, or float32 if the file has floats
    labels   N            int64, 0 .. classes - 1

Hashes are of the decoded bytes, independent of the archive format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from paceline.errors import DataError

PARTS = ("train-images", "train-labels", "test-images", "test-labels")
TEST_SHARE = 6
"""One sample in this many is held out if a file has no test set: the proportion of MNIST."""
HELD_OUT_SEED = 20_240_601
_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitArrays:
    """Images and labels of the training and test set."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    def parts(self) -> dict[str, np.ndarray]:
        """The arrays by the names of their files."""
        return dict(zip(PARTS, (self.train_images, self.train_labels, self.test_images, self.test_labels), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays(SplitArrays):
    """A decoded data set and its source."""

    source: str
    """Description of the source."""
    classes: int | None = None
    """None if it follows from the labels."""
    note: str | None = None
    """Changes to the data that the user should know."""
    class_names: tuple[str, ...] | None = None
    """In the order of their labels; None if unknown."""
    validation: int = 0
    """Number of training samples, the first ones, that are a validation set of the data set."""
    mixed: bool = False
    """Whether classes are interleaved: any range of samples has the class balance of all."""
    made: Path | None = None
    """A folder of the cache that already has the images, in files named after their parts."""

    @classmethod
    def of(cls, four: Sequence[np.ndarray], *, source: str) -> Arrays:
        """From training images, training labels, test images, test labels, in this order."""
        train_images, train_labels, test_images, test_labels = four
        return cls(
            train_images=train_images,
            train_labels=train_labels,
            test_images=test_images,
            test_labels=test_labels,
            source=source,
        )


def order(count: int, seed: int) -> np.ndarray:
    """A permutation of `count` indices, int64.

    Sorts the raw words of PCG64, whose stream NumPy guarantees; `Generator.permutation` may change with a version, and
    with it all published splits.
    """
    words = np.random.PCG64(seed).random_raw(count)
    return np.argsort(words, kind="stable").astype(np.int64, copy=False)


def with_test_set(images: np.ndarray, labels: np.ndarray, *, where: str, source: str) -> Arrays:
    """One set divided in two: a fixed sixth of the samples is the test set."""
    _refuse_lengths(images, labels, where)
    num_test = max(1, len(images) // TEST_SHARE)
    shuffled = order(len(images), HELD_OUT_SEED)
    test, train = np.sort(shuffled[:num_test]), np.sort(shuffled[num_test:])
    return Arrays(
        train_images=images[train],
        train_labels=labels[train],
        test_images=images[test],
        test_labels=labels[test],
        source=source,
        note=f"{where} has no test set: {num_test:,} of its {len(images):,} samples were held out as one",
    )


def normalised(arrays: Arrays, where: str) -> Arrays:
    """The data in the format of the cache; DataError if that is not possible."""
    notes = [arrays.note] if arrays.note else []
    images, labels = [], []
    for part, pixels, answers in (
        ("training", arrays.train_images, arrays.train_labels),
        ("test", arrays.test_images, arrays.test_labels),
    ):
        _refuse_lengths(pixels, answers, f"The {part} set of {where}")
        images.append(_images(pixels, f"The {part} images of {where}", notes))
        labels.append(_labels(answers, f"The {part} labels of {where}"))
    if images[0].shape[1:] != images[1].shape[1:] or images[0].dtype != images[1].dtype:
        raise DataError(
            f"The training images of {where} are {_kind(images[0])}, its test images {_kind(images[1])}.",
            right="Both must have the same height, width, channels and type.",
            next="Write the file again with images of one kind.",
        )
    classes = _classes(arrays, labels, where, notes)
    return replace(
        arrays,
        train_images=images[0],
        train_labels=labels[0],
        test_images=images[1],
        test_labels=labels[1],
        classes=classes,
        note="; ".join(dict.fromkeys(notes)) or None,
    )


def sha256(array: np.ndarray) -> str:
    """SHA-256 of an array's values in order, little-endian."""
    values = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return hashlib.sha256(values.reshape(-1).view(np.uint8).data).hexdigest()


def digest(parts: dict[str, np.ndarray], facts: str = "") -> str:
    """SHA-256 over the four arrays with their types and shapes, and over `facts`."""
    lines = (
        f"{name} {array.dtype.name} {'x'.join(map(str, array.shape))} {sha256(array)}\n"
        for name, array in sorted(parts.items())
    )
    return hashlib.sha256(("".join(lines) + facts).encode()).hexdigest()


def channel_statistics(images: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel; uint8 is scaled to 0..1 first, a zero deviation becomes 1.

    Bytes are summed as integers: the result is bitwise equal on every machine.
    """
    per_chunk = max(1, _CHUNK_BYTES // max(1, images[0].nbytes))
    chunks = [slice(start, start + per_chunk) for start in range(0, len(images), per_chunk)]
    means, deviations = [], []
    for channel in range(images.shape[3]):
        planes = [images[chunk, :, :, channel] for chunk in chunks]
        if images.dtype == np.uint8:
            mean, variance = _byte_statistics(planes)
        else:
            size = sum(plane.size for plane in planes)
            mean = sum(float(plane.sum(dtype=np.float64)) for plane in planes) / size
            variance = sum(float(np.square(plane - np.float64(mean)).sum()) for plane in planes) / size
        means.append(mean)
        deviations.append(variance**0.5 or 1.0)
    return tuple(means), tuple(deviations)


def _byte_statistics(planes: Sequence[np.ndarray]) -> tuple[float, float]:
    """Mean and variance of bytes scaled to 0..1."""
    counts = np.zeros(256, dtype=np.int64)
    for plane in planes:
        counts += np.bincount(plane.reshape(-1), minlength=256)
    # Python integers: the products below exceed 64 bits.
    levels = list(enumerate(counts.tolist()))
    size = sum(n for _, n in levels)
    total = sum(level * n for level, n in levels)
    squares = sum(level * level * n for level, n in levels)
    return total / (size * 255), (size * squares - total * total) / (size * 255) ** 2


def _refuse_lengths(images: np.ndarray, labels: np.ndarray, where: str) -> None:
    if images.ndim < 1 or labels.ndim < 1 or len(images) != len(labels):
        counts = f"{_count(images)} images and {_count(labels)} labels"
        raise DataError(
            f"{where} has {counts}.", right="Each image needs one label.", next="Write the file again with as many."
        )
    if not len(images):
        raise DataError(f"{where} is empty.", right="At least one image is needed.", next="Write the file again.")


def _images(images: np.ndarray, what: str, notes: list[str]) -> np.ndarray:
    """Images as N, H, W, C of uint8 or float32."""
    if images.ndim == 4 and images.shape[1] in (1, 3) and min(images.shape[2:]) > 4:
        notes.append("the images have their channels first: they were moved last")
        images = images.transpose(0, 2, 3, 1)
    if images.ndim == 3:
        images = images[..., np.newaxis]
    if images.ndim != 4 or 0 in images.shape:
        raise DataError(
            f"{what} have the shape {_shape(images)}.",
            right="Images are N×H×W, or N×H×W×C with channels; rows of numbers can be N×1×W.",
            next="Reshape the array and write the file again.",
        )
    return np.ascontiguousarray(_pixels(images, what))


def _pixels(images: np.ndarray, what: str) -> np.ndarray:
    kind = images.dtype.kind
    if images.dtype == np.uint8:
        return images
    if kind == "b":
        return images.astype(np.uint8) * np.uint8(255)
    if kind in "iu":
        low, high = int(images.min()), int(images.max())
        if low < 0 or high > 255:
            raise DataError(
                f"{what} hold whole numbers from {low} to {high}.",
                right="Whole numbers must lie between 0 and 255; anything else is stored as float32.",
                next="Scale the images, or write them as float32.",
            )
        return images.astype(np.uint8)
    if kind == "f":
        # An overflow to infinity is found below and refused.
        with np.errstate(over="ignore"):
            floats = images.astype("<f4", copy=False)
        bad = floats.size - int(np.count_nonzero(np.isfinite(floats)))
        if bad:
            raise DataError(
                f"{what} hold {bad:,} values that are not finite float32 numbers (NaN, infinite or too large).",
                right="One such value makes every weight NaN after a single step.",
                next="Remove or replace them and write the file again.",
            )
        return floats
    raise DataError(
        f"{what} are of type {images.dtype}.", right="Images are numbers.", next="Write them as uint8 or float32."
    )


def _labels(labels: np.ndarray, what: str) -> np.ndarray:
    """Labels as int64, one per image, none negative."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(
            f"{what} have the shape {_shape(labels)}.",
            right="Labels are one whole number per image, from 0 on.",
            next="If they are one-hot, write labels.argmax(axis=1) in their place.",
        )
    whole = labels.dtype.kind in "biu" or (labels.dtype.kind == "f" and bool(np.all(labels == np.floor(labels))))
    if not whole or labels.min() < 0 or labels.max() >= 2**31:
        found = f"are of type {labels.dtype}"
        if labels.dtype.kind in "iuf":
            found = f"hold values from {labels.min()} to {labels.max()}"
        raise DataError(
            f"{what} {found}.", right="Labels are whole numbers from 0 on.", next="Number the classes from 0."
        )
    return labels.astype("<i8")


def _classes(arrays: Arrays, labels: list[np.ndarray], where: str, notes: list[str]) -> int:
    """Number of classes: what the set declares, or one more than its highest label."""
    highest = max(int(part.max()) for part in labels)
    classes = arrays.classes or highest + 1
    if highest >= classes or highest >= max(2, sum(map(len, labels))):
        right = f"between 0 and {classes - 1}" if arrays.classes else "smaller than the number of samples"
        raise DataError(
            f"A label of {where} is {highest}.", right=f"Labels must be {right}.", next="Number the classes from 0."
        )
    if classes < 2:
        raise DataError(
            f"Every label of {where} is 0.", right="There must be two classes or more.", next="Check the labels."
        )
    seen = len(np.unique(labels[0]))
    if seen < classes:
        notes.append(f"{classes - seen} of {classes} classes have no training sample")
    return classes


def _count(array: np.ndarray) -> str:
    return f"{len(array):,}" if array.ndim else "no list of"


def _shape(array: np.ndarray) -> str:
    return "×".join(map(str, array.shape)) or "of a single number"


def _kind(images: np.ndarray) -> str:
    return f"{'×'.join(map(str, images.shape[1:]))} {images.dtype.name}"
