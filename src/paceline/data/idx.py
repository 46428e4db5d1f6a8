"""IDX files, plain or gzipped, alone or as the usual four in a folder.

    offset 0   two zero bytes
    offset 2   type: 08 uint8, 09 int8, 0B int16, 0C int32, 0D float32, 0E float64
    offset 3   number of dimensions d
    offset 4   d sizes, int32, big-endian, then the values, big-endian

`train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, and the same with `t10k`.
"""

from __future__ import annotations

import gzip
import os
import shlex
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from paceline.data.arrays import Arrays, with_test_set
from paceline.data.bounded_reads import DEFLATE_RATIO, FETCH_AGAIN, Stream, declared_bytes, read_values
from paceline.errors import DataError

USUAL_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_DIMENSIONS = 8


def read_idx(path: Path) -> np.ndarray:
    """The array in an IDX file; gzip is recognised by its first bytes, since browsers unpack some downloads."""
    if not os.path.isfile(path):
        raise DataError(
            f"{path} is not a file." if os.path.exists(path) else f"There is no file {path}.",
            right="An IDX file is needed here.",
            next=f"See what is there: ls {shlex.quote(str(path.parent))}",
        )
    try:
        with path.open("rb") as file:
            return read_idx_file(file, str(path), os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}.",
            next=f"Check its permissions: ls -l {shlex.quote(str(path))}",
        ) from error


def read_idx_file(file: IO[bytes], where: str, size_bytes: int) -> np.ndarray:
    """The array in an open IDX file of `size_bytes`, gzipped or not."""
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if not packed:
        return _read_stream(file, where, size_bytes)
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
            return _read_stream(unpacked, where, size_bytes * DEFLATE_RATIO)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = str(error).rstrip(".")
        raise DataError(
            f"{where} is damaged: {reason}.", right="It must be a whole gzip file.", next=FETCH_AGAIN
        ) from error


def _read_stream(stream: Stream, where: str, file_bytes: int) -> np.ndarray:
    start = stream.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or not 1 <= start[3] <= _MAX_DIMENSIONS:
        raise DataError(
            f"{where} is not an IDX file: it begins with {start.hex(' ') or 'nothing'}.",
            right="An IDX file begins with 00 00, a type and a number of dimensions, as in 00 00 08 03.",
            next=FETCH_AGAIN,
        )
    header = stream.read(4 * start[3])
    if len(header) < 4 * start[3]:
        raise DataError(f"{where} breaks off in its header.", right="The file must be whole.", next=FETCH_AGAIN)
    sizes = struct.unpack(f">{start[3]}i", header)
    dtype = np.dtype(_TYPES[start[2]])
    values = read_values(stream, declared_bytes(dtype, sizes, where, file_bytes), where)
    return values.view(dtype).reshape(sizes).astype(dtype.newbyteorder("="), copy=False)


def read_idx_folder(folder: Path) -> Arrays:
    """The usual four files of a folder; if both test files are missing, a test set is held out."""
    found = idx_files(folder)
    alone = not any(name in found for name in USUAL_NAMES[2:])
    wanted = USUAL_NAMES[:2] if alone else USUAL_NAMES
    missing = [name for name in wanted if name not in found]
    if missing:
        raise DataError(
            f"{folder} has no {' and no '.join(missing)}.",
            right=f"A folder of IDX files holds {', '.join(USUAL_NAMES)}, each plain or as .gz.",
            next="Put the missing files there, or name the folder that has them.",
        )
    source = f"your files: {folder}"
    arrays = [read_idx(found[name]) for name in wanted]
    if alone:
        return with_test_set(*arrays, where=str(folder), source=source)
    return Arrays.of(arrays, source=source)


def idx_files(folder: Path) -> dict[str, Path]:
    """Paths of those of the usual four files that a folder has.

    Plain or `.gz`, also as `train-images.idx3-ubyte`, and in the `raw` folder of torchvision.
    """
    found: dict[str, Path] = {}
    for name in USUAL_NAMES:
        spellings = (name, name.replace("-idx", ".idx"))
        places = (
            place / f"{spelling}{ending}"
            for place in (folder, folder / "raw")
            for spelling in spellings
            for ending in ("", ".gz")
        )
        path = next((place for place in places if os.path.isfile(place)), None)
        if path is not None:
            found[name] = path
    return found
