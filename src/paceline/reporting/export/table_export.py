"""All spans of a run as one table: Parquet or CSV, a row for each span of each rank.

Columns are those of `spans/rank-0000.arrows` on one time line, instants in nanoseconds since the start of the run;
before them whose span it is, behind them what all ranks together show of a message:

    rank host    kind start_ns end_ns step operation bytes sequence group peer begun_ns dtype
                                                                             message gathered_ns completed_ns

What is not known is null in Parquet and empty in CSV.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from paceline.records.rank_trace import SPAN_KINDS, Words
from paceline.records.track import Track
from paceline.reporting.wording.characters import printable

_TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("rank", pa.int32()),
        ("host", _TEXT),
        ("kind", _TEXT),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("step", pa.int32()),
        ("operation", _TEXT),
        ("bytes", pa.int64()),
        ("sequence", pa.int32()),
        ("group", _TEXT),
        ("peer", pa.int32()),
        ("begun_ns", pa.int64()),
        ("dtype", _TEXT),
        ("message", pa.int64()),
        ("gathered_ns", pa.int64()),
        ("completed_ns", pa.int64()),
    ]
)
ROWS = 1 << 16
"""Rows that are written at once: what bounds the memory, however long the run was."""


def write_parquet(tracks: Sequence[Track], file: BinaryIO) -> None:
    """Write the table of all tracks as Parquet."""
    from pyarrow import parquet

    with parquet.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        for part in parts(tracks):
            writer.write_table(part)


def write_csv(tracks: Sequence[Track], file: BinaryIO) -> None:
    """Write the same as CSV, with a line of names."""
    from pyarrow import csv

    plain = pa.schema([(field.name, pa.string() if field.type == _TEXT else field.type) for field in SCHEMA])
    with csv.CSVWriter(file, plain, write_options=csv.WriteOptions(quoting_style="needed")) as writer:
        for part in parts(tracks):
            writer.write_table(part.cast(plain))


def parts(tracks: Sequence[Track]) -> Iterator[pa.Table]:
    """The table, some rows at a time."""
    for track in tracks:
        table = track_table(track)
        for start in range(0, len(table), ROWS):
            yield table.slice(start, ROWS)


def track_table(track: Track) -> pa.Table:
    """The rows of one rank."""
    trace, count = track.trace, len(track.trace)
    columns = [
        pa.repeat(pa.scalar(trace.rank, pa.int32()), count),
        pa.nulls(count, _TEXT)
        if track.host is None
        else pa.repeat(pa.scalar(printable(track.host)), count).cast(_TEXT),
        text(Words(trace.kind, SPAN_KINDS)),
        pa.array(trace.start_ns, pa.int64()),
        optional(trace.end_ns, pa.int64()),
        optional(trace.step, pa.int32()),
        text(trace.operation),
        optional(trace.bytes, pa.int64()),
        optional(trace.sequence, pa.int32()),
        text(trace.group),
        optional(trace.peer, pa.int32()),
        optional(trace.begun_ns, pa.int64()),
        text(trace.dtype),
        optional(track.message, pa.int64()),
        optional(track.gathered_ns, pa.int64()),
        optional(track.completed_ns, pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def optional(values: Any, type: pa.DataType) -> pa.Array:
    """A column of numbers; null where it has -1."""
    return pa.array(values, type, mask=values < 0)


def text(words: Words) -> pa.Array:
    """A column of text; null where it has none."""
    indices = pa.array(words.codes, pa.int32(), mask=words.codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words.words, pa.string()))
