"""Tables that grow while a rank runs: Arrow IPC streams, compressed and append-only.

Each write is one record batch, so a truncated file is readable up to the last complete one. A kill truncates files;
failing disks and copies flip bits. pyarrow follows a corrupt dictionary index or text offset to any address in memory,
so every batch has to pass `validated` before its values are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from paceline.errors import StorageError
from paceline.storage.codec import storage_error

_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The last bytes of a closed stream: a message of length 0."""


class StreamWriter:
    """Appends batches to a file; each is flushed when `write` returns."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb")
        except OSError as error:
            raise storage_error(path, error) from error
        options = pa.ipc.IpcWriteOptions(compression="zstd", emit_dictionary_deltas=True)
        self._stream = pa.ipc.new_stream(self._file, schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append one batch and flush it."""
        try:
            self._stream.write_batch(batch)
            self._file.flush()
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        """End the stream; the file is closed even if that fails."""
        try:
            with self._file:
                self._stream.close()
        except OSError as error:
            raise storage_error(self._path, error) from error


def read_table(path: Path, schema: pa.Schema, *, what: str) -> tuple[pa.Table, bool]:
    """The rows of a file up to its last complete batch, and whether it is truncated.

    StorageError if the file is not readable or has another schema.
    """
    truncated, batches = False, []
    try:
        with pa.memory_map(str(path)) as source:
            truncated = not is_ended(source)
            with pa.ipc.open_stream(source) as stream:
                check_schema(path, stream.schema, schema)
                try:
                    batches.extend(validated(stream, path))
                except (pa.ArrowException, OSError):
                    truncated = True
                return pa.Table.from_batches(batches, stream.schema), truncated
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: a name that is no text
        raise StorageError(f"{path} cannot be read as {what}: {error}.") from error


def check_schema(path: Path, found: pa.Schema, written: pa.Schema) -> None:
    """Raise StorageError if a file is of another kind or version, or if a column is missing or has another type."""
    name = (written.metadata or {}).get(b"schema", b"")
    if (found.metadata or {}).get(b"schema", b"") != name:
        raise StorageError(f"{path} is not a {name.decode()} file.")
    try:
        _ = found.names  # decodes all names, also of columns that are not read
        for column in written.names:
            types = [found.field(index).type for index in found.get_all_field_indices(column)]
            if types != [written.field(column).type]:
                raise StorageError(f"{path} is damaged: its column {column} is missing or has another type.")
    except UnicodeDecodeError as error:
        raise StorageError(f"{path} is damaged: the name of a column is not text.") from error


def validated(batches: Iterable[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, each validated; ArrowInvalid at the first invalid one, StorageError if none is valid."""
    for number, batch in enumerate(batches):
        try:
            _check(batch)
        except pa.ArrowInvalid as error:
            if number:
                raise
            raise StorageError(f"{path} is damaged: {error}.") from error
        yield batch


def _check(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid if a batch has a value that no writer can have written."""
    batch.validate(full=True)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column.dictionary.validate(full=True)
            if column.dictionary.null_count:
                raise pa.ArrowInvalid("a word of a dictionary is missing")


def is_ended(source: pa.NativeFile) -> bool:
    """Whether the stream in a file was closed by its writer; the read position is unchanged."""
    place = source.tell()
    source.seek(max(0, source.size() - len(_END)))
    ended = source.read() == _END
    source.seek(place)
    return ended
