"""Spans on disk: an Arrow IPC stream, compressed and append-only (columns: see `records/trace.py`).

Each flush is one record batch, so a file that broke off is readable up to the last full one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paceline.errors import StorageError
from paceline.records.codec import storage_error
from paceline.records.trace import SPAN_KINDS, SPAN_SCHEMA, RankTrace

# kind index, start_ns, end_ns, step, operation, bytes, sequence, group, peer: as the recorder keeps them.
# -1 and None stand for null.
SpanRow = tuple[int, int, int, int, str | None, int, int, str | None, int]

_TEXT = pa.dictionary(pa.int16(), pa.string())
_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("start_ns", pa.int64(), nullable=False),
        pa.field("end_ns", pa.int64()),
        pa.field("step", pa.int32(), nullable=False),
        pa.field("operation", _TEXT),
        pa.field("bytes", pa.int64()),
        pa.field("sequence", pa.int32()),
        pa.field("group", _TEXT),
        pa.field("peer", pa.int32()),
    ],
    metadata={"schema": SPAN_SCHEMA},
)
_KINDS = pa.array(SPAN_KINDS, pa.string())


class SpanWriter:
    """Appends batches of spans to a file; a batch is on its way to the disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb")
        except OSError as error:
            raise storage_error(path, error) from error
        options = pa.ipc.IpcWriteOptions(compression="zstd", emit_dictionary_deltas=True)
        self._stream = pa.ipc.new_stream(self._file, _SCHEMA, options=options)

    def write(self, rows: Sequence[SpanRow]) -> None:
        """Append one batch and hand it to the operating system."""
        if not rows:
            return
        try:
            self._stream.write_batch(_batch(rows))
            self._file.flush()
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        """End the stream properly."""
        try:
            self._stream.close()
            self._file.close()
        except OSError as error:
            raise storage_error(self._path, error) from error


def read_spans(path: Path, rank: int) -> RankTrace:
    """The spans of one rank, up to the last full batch; raises StorageError where there is none."""
    truncated = False
    batches: list[pa.RecordBatch] = []
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
            if (stream.schema.metadata or {}).get(b"schema") != SPAN_SCHEMA.encode():
                raise StorageError(f"{path} is not a {SPAN_SCHEMA} file.")
            schema = stream.schema
            try:
                batches.extend(stream)
            except (pa.ArrowException, OSError):
                truncated = True
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path} cannot be read as a trace: {error}.") from error
    return _trace(rank, pa.Table.from_batches(batches, schema), truncated)


def _batch(rows: Sequence[SpanRow]) -> pa.RecordBatch:
    kind, start, end, step, operation, size, sequence, group, peer = zip(*rows, strict=True)

    def optional(values: Sequence[int], dtype: pa.DataType) -> pa.Array:
        array = np.asarray(values, np.int64)
        return pa.array(array, dtype, mask=array < 0)

    return pa.record_batch(
        [
            pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), _KINDS),
            pa.array(start, pa.int64()),
            optional(end, pa.int64()),
            pa.array(step, pa.int32()),
            pa.array(operation, pa.string()).cast(_TEXT),
            optional(size, pa.int64()),
            optional(sequence, pa.int32()),
            pa.array(group, pa.string()).cast(_TEXT),
            optional(peer, pa.int32()),
        ],
        schema=_SCHEMA,
    )


def _trace(rank: int, table: pa.Table, truncated: bool) -> RankTrace:
    def integers(name: str) -> np.ndarray:
        return table.column(name).fill_null(-1).to_numpy()

    def texts(name: str) -> tuple[Any, ...]:
        return tuple(table.column(name).to_pylist())

    kinds = table.column("kind").unify_dictionaries().combine_chunks()
    numbers = [SPAN_KINDS.index(name) if name in SPAN_KINDS else -1 for name in kinds.dictionary.to_pylist()]
    return RankTrace(
        rank=rank,
        kind=np.asarray(numbers, np.int8)[kinds.indices.to_numpy()],
        start_ns=integers("start_ns"),
        end_ns=integers("end_ns"),
        step=integers("step"),
        operation=texts("operation"),
        bytes=integers("bytes"),
        sequence=integers("sequence"),
        group=texts("group"),
        # Files of an earlier version have no such column.
        peer=integers("peer") if "peer" in table.column_names else None,
        truncated=truncated,
    )
