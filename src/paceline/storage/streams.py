"""Tables that grow while a rank runs: Arrow IPC streams, compressed and append-only.

Each write is one record batch, so a file that broke off is readable up to the last full one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from paceline.errors import StorageError
from paceline.storage.codec import storage_error
from paceline.storage.stream_checks import check_types, is_ended, sound


class StreamWriter:
    """Appends batches to a file; a batch is on its way to the disk when `write` returns."""

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
        """Append one batch and hand it to the operating system."""
        try:
            self._stream.write_batch(batch)
            self._file.flush()
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        """End the stream properly; the file is closed even where that fails."""
        try:
            with self._file:
                self._stream.close()
        except OSError as error:
            raise storage_error(self._path, error) from error


def read_table(
    path: Path, schema: pa.Schema, readable: Sequence[str], *, what: str, later: Collection[str] = ()
) -> tuple[pa.Table, bool]:
    """The rows of a file of one of the `readable` versions up to its last full batch, and whether it broke off.

    Files of an earlier version may lack the columns of `later`. StorageError where there is nothing to be had of it.
    """
    broke_off, batches = False, []
    try:
        with pa.memory_map(str(path)) as source:
            broke_off = not is_ended(source)
            with pa.ipc.open_stream(source) as stream:
                if (stream.schema.metadata or {}).get(b"schema", b"").decode(errors="replace") not in readable:
                    raise StorageError(f"{path} is not a {readable[0]} file.")
                check_types(path, stream.schema, schema, later=later)
                try:
                    batches.extend(sound(stream, path))
                except (pa.ArrowException, OSError):
                    broke_off = True
                return pa.Table.from_batches(batches, stream.schema), broke_off
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: a name that is no text
        raise StorageError(f"{path} cannot be read as {what}: {error}.") from error
