"""Reads values from untrusted files: a declared size is accepted only if the file can contain it."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np

from paceline.errors import DataError
from paceline.units import bytes_text

DEFLATE_RATIO = 1032
"""Maximum compression ratio of deflate, in gzip or zip."""
FETCH_AGAIN = "Fetch or write the file again."
_PIECE_BYTES = 1 << 22
_DISPLAY_LIMIT = 1 << 100
"""A header can declare a number beyond the range of floats."""


class Stream(Protocol):
    """Interface of a file, plain or inside an archive."""

    def read(self, size: int, /) -> bytes: ...


def limit_bytes() -> int:
    """Size of the largest array that is decoded: half of the memory, at most 16 GiB."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(16 << 30, memory // 2)


def declared_bytes(dtype: np.dtype, sizes: tuple[int, ...], where: str, file_bytes: int) -> int:
    """Bytes of the values that a header declares.

    Refused before any allocation if the file cannot contain them or they exceed `limit_bytes`.
    """
    if any(size < 0 for size in sizes):
        raise DataError(f"{where} declares the sizes {sizes}.", right="No size can be negative.", next=FETCH_AGAIN)
    # Python integers do not overflow.
    declared = dtype.itemsize
    for size in sizes:
        declared *= size
    declared = min(declared, _DISPLAY_LIMIT)
    if declared > file_bytes:
        raise DataError(
            f"{where} is damaged: it declares {bytes_text(declared)} of values and cannot hold more than "
            f"{bytes_text(file_bytes)}.",
            right="The sizes in its header must fit the file.",
            next=FETCH_AGAIN,
        )
    if declared > limit_bytes():
        raise DataError(
            f"{where} declares {bytes_text(declared)} of values.",
            right=f"On this machine at most {bytes_text(limit_bytes())} are decoded at once.",
            next="Use fewer or smaller images, or whole numbers from 0 to 255 in place of floats.",
        )
    return declared


def read_values(stream: Stream, declared: int, where: str) -> np.ndarray:
    """The `declared` bytes that are the rest of a stream, as uint8.

    Reading to the end also makes gzip and zip check their checksums.
    """
    values = np.empty(declared, dtype=np.uint8)
    view = values.data
    filled = 0
    while filled < declared:
        piece = stream.read(min(declared - filled, _PIECE_BYTES))
        if not piece:
            raise DataError(
                f"{where} breaks off: it declares {declared:,} bytes of values, and {filled:,} are there.",
                right="The file must be whole.",
                next=FETCH_AGAIN,
            )
        view[filled : filled + len(piece)] = piece
        filled += len(piece)
    if stream.read(1):
        raise DataError(
            f"{where} goes on after the {declared:,} bytes of values that it declares.",
            right="It should end there.",
            next=FETCH_AGAIN,
        )
    return values
