"""Spans on disk: an Arrow IPC stream, compressed and append-only (columns: see `records/rank_trace.py`).

Each flush is one record batch, so a truncated file is readable up to the last complete one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from paceline.errors import StorageError
from paceline.records.rank_trace import SPAN_KINDS, SPAN_SCHEMA, RankTrace, Words
from paceline.records.trace_rows import repeated, without
from paceline.storage.stream_tail import LOOK_BYTES, StreamTail
from paceline.storage.streams import StreamWriter, read_table

# kind index, start_ns, end_ns, step, operation, bytes, sequence, group, peer, begun_ns, dtype: as the recorder stores
# them. -1 and None are null.
SpanRow = tuple[int, int, int, int, str | None, int, int, str | None, int, int, str | None]

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
        pa.field("begun_ns", pa.int64()),
        pa.field("dtype", _TEXT),
    ],
    metadata={"schema": SPAN_SCHEMA},
)
_KINDS = pa.array(SPAN_KINDS, pa.string())


class SpanWriter:
    """Appends batches of spans to a file; each is flushed when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._stream = StreamWriter(path, _SCHEMA)

    def write(self, rows: Sequence[SpanRow]) -> None:
        """Append one batch and flush it."""
        if rows:
            self._stream.write(_batch(rows))

    def close(self) -> None:
        """End the stream properly."""
        self._stream.close()


def read_spans(path: Path, rank: int) -> RankTrace:
    """The spans of one rank, up to the last complete batch; StorageError if there is none."""
    table, truncated = read_table(path, _SCHEMA, what="a trace")
    return _trace(rank, table, truncated)


class SpanTail:
    """Follows the spans of a rank that is still writing them."""

    def __init__(self, path: Path, rank: int) -> None:
        self._rank = rank
        self._tail = StreamTail(path, _SCHEMA)

    @property
    def caught_up(self) -> bool:
        """Whether the last read reached the last flush."""
        return self._tail.caught_up

    def read(self, most_bytes: int = LOOK_BYTES) -> RankTrace | None:
        """The spans that were flushed since the last read; None if the file was replaced."""
        batches = self._tail.batches(most_bytes)
        if batches is None:
            return None
        try:
            table = pa.Table.from_batches(batches, batches[0].schema if batches else _SCHEMA)
            return _trace(self._rank, table, truncated=False)
        except pa.ArrowException as error:
            raise StorageError(f"The spans of rank {self._rank} are damaged: {error}.") from error


def _batch(rows: Sequence[SpanRow]) -> pa.RecordBatch:
    kind, start, end, step, operation, size, sequence, group, peer, begun, dtype = zip(*rows, strict=True)

    def optional(values: Sequence[int], dtype: pa.DataType) -> pa.Array:
        array = np.asarray(values, np.int64)
        return pa.array(array, dtype, mask=array < 0)

    def text(values: Sequence[str | None]) -> pa.Array:
        return pa.array(values, pa.string()).cast(_TEXT)

    return pa.record_batch(
        [
            pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), _KINDS),
            pa.array(start, pa.int64()),
            optional(end, pa.int64()),
            pa.array(step, pa.int32()),
            text(operation),
            optional(size, pa.int64()),
            optional(sequence, pa.int32()),
            text(group),
            optional(peer, pa.int32()),
            optional(begun, pa.int64()),
            text(dtype),
        ],
        schema=_SCHEMA,
    )


def _trace(rank: int, table: pa.Table, truncated: bool) -> RankTrace:
    def integers(name: str) -> np.ndarray:
        """A column of numbers; -1 for null."""
        return table.column(name).fill_null(-1).to_numpy()

    def words(name: str) -> Words:
        if not len(table):
            return Words(np.full(len(table), -1, np.int32), ())
        column = table.column(name).unify_dictionaries().combine_chunks()
        return Words(column.indices.fill_null(-1).to_numpy().astype(np.int32), tuple(column.dictionary.to_pylist()))

    kinds = words("kind")
    numbers = [SPAN_KINDS.index(name) if name in SPAN_KINDS else -1 for name in kinds.words]
    trace = RankTrace(
        rank=rank,
        kind=np.asarray([*numbers, -1], np.int8)[kinds.codes],
        start_ns=integers("start_ns"),
        end_ns=integers("end_ns"),
        step=integers("step"),
        operation=words("operation"),
        bytes=integers("bytes"),
        sequence=integers("sequence"),
        group=words("group"),
        peer=integers("peer"),
        begun_ns=integers("begun_ns"),
        dtype=words("dtype"),
        truncated=truncated,
    )
    return without(trace, repeated(trace))
