"""Pickles of arrays and plain values, read without running what they say.

A pickle is a small program that may name any function to be called. Here it can name those of the table below, and
they are our own: NumPy's code for unpickling is not run, and an array's bytes are looked at before they become one.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np


class NotPlain(Exception):
    """Why a pickle was not read, in one line."""


def plain_values(data: bytes) -> Any:
    """What a pickle holds: numbers, text, bytes, lists, dictionaries, and a PickledArray for each array."""
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="bytes").load()
    except pickle.UnpicklingError as error:
        raise NotPlain(str(error)) from error
    # A damaged pickle makes the interpreter of its own little language stumble in any of these ways.
    except (
        *(EOFError, TypeError, ValueError, KeyError, IndexError, AttributeError, ImportError),
        *(OverflowError, MemoryError, RecursionError, NotImplementedError),
    ) as error:
        raise NotPlain(f"{type(error).__name__}: {error}") from error


class _PickledType:
    """What stands where a pickle has the type of an array."""

    def __init__(self, code: object = None, *rest: object) -> None:
        self.code = code.decode("latin1") if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Byte order and fields: of no meaning for single bytes."""


class PickledArray:
    """What stands where a pickle has an array: its bytes are looked at before NumPy sees them."""

    state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def rows(self) -> np.ndarray:
        """The array, where it is one of rows of bytes."""
        _, shape, dtype, by_column, values = self.state
        if not isinstance(dtype, _PickledType) or dtype.code not in ("u1", "|u1") or by_column:
            raise TypeError("its data are no rows of bytes")
        return np.frombuffer(values, dtype=np.uint8).reshape(shape)


def _new_array(*_: object) -> PickledArray:
    return PickledArray()


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    """How Python 3 writes bytes for Python 2."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding!r:.40}")
    return text.encode("latin1")


# All that the pickle of an array names, under the names that versions 1 and 2 of NumPy have for it.
_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): _PickledType,
    ("numpy.core.multiarray", "_reconstruct"): _new_array,
    ("numpy._core.multiarray", "_reconstruct"): _new_array,
    ("_codecs", "encode"): _encoded,
}


class _PlainUnpickler(pickle.Unpickler):
    """Makes plain values, and what stands for arrays: whatever else a pickle names is refused, and never imported."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module[:60]}.{name[:60]}, which no array needs")
        return _KNOWN[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside of it")
