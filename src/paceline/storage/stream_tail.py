"""Tables that another process is still writing: the batches appended to an Arrow stream since the last read.

    rank ──▶ spans/rank-0003.arrows, a batch every ten seconds ──▶ StreamTail ──▶ the batches that are new

A stream is a sequence of messages: its schema, then dictionaries and batches. Only complete messages are read, and at
most a fixed number of bytes, so the cost of a read does not depend on the length of the file.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pyarrow as pa

from paceline.errors import StorageError
from paceline.storage.streams import check_schema, validated

LOOK_BYTES = 4 << 20
"""Bytes of a file per read: about ten minutes of a rank."""
_LARGEST_MESSAGE_BYTES = 256 << 20
"""Larger than any flush: a file without a complete message in so many bytes is damaged."""
_BATCH = "record batch"


class StreamTail:
    """Follows one file, which is opened for each read only."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._begin()

    def _begin(self) -> None:
        self._at = 0
        self._size = 0
        self._inode: int | None = None
        self._whole = _Bytes()
        self._stream: Any = None
        self.caught_up = True
        """Whether the last read reached the last complete message."""

    def batches(self, most_bytes: int = LOOK_BYTES) -> list[pa.RecordBatch] | None:
        """The new batches; None if the file was replaced since the last read.

        StorageError if it is damaged or of another kind: do not read it again.
        """
        try:
            status = self._path.stat()
            if self._inode is not None and (status.st_ino != self._inode or status.st_size < self._at):
                self._begin()
                return None
            if self.caught_up and status.st_size == self._size:
                return []
            self._inode, self._size = status.st_ino, status.st_size
            with self._path.open("rb") as file:
                return self._read(file, most_bytes)
        except OSError:
            return []  # not yet created, or removed

    def _read(self, file: io.BufferedReader, most_bytes: int) -> list[pa.RecordBatch]:
        while True:
            file.seek(self._at)
            data = file.read(most_bytes)
            length, num_batches = _whole_messages(data)
            self.caught_up = len(data) < most_bytes
            if length or self.caught_up:
                break
            most_bytes *= 2
            if most_bytes > _LARGEST_MESSAGE_BYTES:
                raise StorageError(f"{self._path} is damaged: it has no end.")
        self._at += length
        self._whole.add(data[:length])
        return self._decoded(num_batches)

    def _decoded(self, number: int) -> list[pa.RecordBatch]:
        """The next `number` batches; complete messages have been added for all of them."""
        if not number:
            return []
        try:
            stream = self._stream = self._stream or self._opened()
            return list(validated((stream.read_next_batch() for _ in range(number)), self._path))
        except (pa.ArrowException, OSError, StopIteration, RuntimeError, UnicodeDecodeError) as error:
            raise StorageError(f"{self._path} is damaged: {error}.") from error

    def _opened(self) -> Any:
        stream = pa.ipc.open_stream(self._whole)
        check_schema(self._path, stream.schema, self._schema)
        return stream


def _whole_messages(data: bytes) -> tuple[int, int]:
    """Length of the complete messages in `data` in bytes, and how many of them are batches."""
    source, length, batches = pa.BufferReader(data), 0, 0
    with contextlib.suppress(pa.ArrowException, OSError, EOFError):
        while source.tell() < len(data):
            kind = pa.ipc.read_message(source).type
            length, batches = source.tell(), batches + (kind == _BATCH)
    return length, batches


class _Bytes(io.RawIOBase):
    """A byte stream that is filled piece by piece and read once."""

    def __init__(self) -> None:
        self._held, self._at = b"", 0

    def add(self, data: bytes) -> None:
        self._held, self._at = self._held[self._at :] + data, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        taken = self._held[self._at :] if size < 0 else self._held[self._at : self._at + size]
        self._at += len(taken)
        return taken
