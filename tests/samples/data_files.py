"""Small data sets as files, for the tests that read them."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

IDX_TYPES = {"uint8": 0x08, "int8": 0x09, "int16": 0x0B, "int32": 0x0C, "float32": 0x0D, "float64": 0x0E}
IDX_NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx_bytes(array: np.ndarray) -> bytes:
    """An array as the contents of an IDX file."""
    header = struct.pack(f">BBBB{array.ndim}i", 0, 0, IDX_TYPES[array.dtype.name], array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def four_arrays(num_train: int = 30, num_test: int = 6, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Images of 5×4 and labels of 3 classes: training, then test."""
    random = np.random.default_rng(seed)
    parts = []
    for count in (num_train, num_test):
        parts.append(random.integers(0, 256, (count, 5, 4), dtype=np.uint8))
        parts.append((np.arange(count) % 3).astype(np.uint8))
    return tuple(parts)


def write_idx_folder(folder: Path, arrays: tuple[np.ndarray, ...], *, packed: bool = False) -> Path:
    """The usual files in a folder, as many as there are arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(IDX_NAMES, arrays, strict=False):
        data = idx_bytes(array)
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(data) if packed else data)
    return folder


def write_npz(path: Path, arrays: tuple[np.ndarray, ...]) -> Path:
    """The four arrays under the names that Keras gives them."""
    np.savez(path, **dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays, strict=True)))
    return path
