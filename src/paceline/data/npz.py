"""NumPy's .npz: a zip of .npy arrays, read without ever unpickling anything.

x_train  y_train  x_test  y_test        as Keras writes them, or one of the other usual names
x  y                                    one set: a sixth is held out as the test set
"""

from __future__ import annotations

import os
import shlex
import struct
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from paceline.data.arrays import Arrays, with_test_set
from paceline.data.bounded_reads import DEFLATE_RATIO, FETCH_AGAIN, declared_bytes, read_values
from paceline.errors import DataError

# Compared in lower case. Training images, training labels, test images, test labels.
_NAMES = (
    ("x_train", "y_train", "x_test", "y_test"),
    ("train_images", "train_labels", "test_images", "test_labels"),
    ("train_x", "train_y", "test_x", "test_y"),
    ("train_data", "train_labels", "test_data", "test_labels"),
    ("images_train", "labels_train", "images_test", "labels_test"),
)
_NAMES_ALONE = (("x", "y"), ("images", "labels"), ("data", "labels"), ("data", "target"))


def read_npz(path: Path) -> Arrays:
    """The data set in an .npz file."""
    if not os.path.isfile(path):
        raise DataError(
            f"{path} is not a file." if os.path.exists(path) else f"There is no file {path}.",
            right="dataset names a data set, an .npz file or a folder of IDX files, seen from the study file's folder.",
            next=f"See what is there: ls {shlex.quote(str(path.parent))}",
        )
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, path)
    # ValueError: names that are not UTF-8, places before the start. RuntimeError: an encrypted archive.
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise DataError(
            f"{path} is not a whole .npz file: {reason}.",
            right="An .npz file is what numpy.savez and numpy.savez_compressed write.",
            next=FETCH_AGAIN,
        ) from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}.",
            next=f"Check its permissions: ls -l {shlex.quote(str(path))}",
        ) from error


def _read(archive: zipfile.ZipFile, path: Path) -> Arrays:
    members = {info.filename.removesuffix(".npy").lower(): info for info in archive.infolist()}
    source = f"your files: {path}"
    for names in _NAMES:
        if all(name in members for name in names):
            return Arrays.of([_array(archive, members[name], path) for name in names], source=source)
    for names in _NAMES_ALONE + tuple(names[:2] for names in _NAMES):
        if all(name in members for name in names):
            images, labels = (_array(archive, members[name], path) for name in names)
            return with_test_set(images, labels, where=str(path), source=source)
    raise DataError(
        f"{path} holds {', '.join(sorted(info.filename for info in archive.infolist())) or 'nothing'}.",
        right="An .npz data set holds x_train, y_train, x_test and y_test, or x and y.",
        next="Write it again with numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...).",
    )


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> np.ndarray:
    where = f"{info.filename} in {path}"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"{where} is compressed in a way that NumPy does not use.", right="Use deflate.", next=FETCH_AGAIN
        )
    ratio = DEFLATE_RATIO if info.compress_type == zipfile.ZIP_DEFLATED else 1
    file_bytes = min(info.file_size, min(info.compress_size, path.stat().st_size) * ratio)
    with archive.open(info) as stream:
        sizes, by_column, dtype = _header(stream, where)
        values = read_values(stream, declared_bytes(dtype, sizes, where, file_bytes), where).view(dtype)
    return values.reshape(sizes, order="F" if by_column else "C")


def _header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    try:
        # NumPy warns about headers of Python 2, and reads them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            version = npy.read_magic(stream)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            sizes, by_column, dtype = read(stream)
    except (ValueError, SyntaxError, TypeError, OverflowError, MemoryError, RecursionError) as error:
        raise DataError(f"{where} is damaged: {error}.", right="It must be a .npy array.", next=FETCH_AGAIN) from error
    if dtype.kind not in "biuf":
        kind = "Python objects, which are never unpickled" if dtype.hasobject else f"values of type {dtype}"
        raise DataError(
            f"{where} holds {kind}.", right="Images and labels are numbers.", next="Write it as uint8 or float32."
        )
    return sizes, by_column, dtype
