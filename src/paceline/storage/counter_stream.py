"""Counters on disk: an Arrow IPC stream, compressed and append-only (columns: see `records/counters.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from paceline.records.counters import COUNTER_SCHEMA, COUNTERS, RankCounters, Sample
from paceline.storage.streams import StreamWriter, read_table

_SCHEMA = pa.schema(
    [pa.field("at_ns", pa.int64(), nullable=False), *(pa.field(name, pa.int64()) for name in COUNTERS)],
    metadata={"schema": COUNTER_SCHEMA},
)


class CounterWriter:
    """Appends samples to a file; they are flushed when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._stream = StreamWriter(path, _SCHEMA)

    def write(self, samples: Sequence[tuple[int, Sample]]) -> None:
        """Append samples, each with its instant in nanoseconds."""
        if not samples:
            return
        columns = [pa.array([at_ns for at_ns, _ in samples], pa.int64())]
        columns += [pa.array([sample.get(name) for _, sample in samples], pa.int64()) for name in COUNTERS]
        self._stream.write(pa.record_batch(columns, schema=_SCHEMA))

    def close(self) -> None:
        """End the stream properly."""
        self._stream.close()


def read_counter_file(path: Path, rank: int) -> RankCounters:
    """The samples of one process, up to the last complete batch; StorageError if the file is not readable."""
    table, truncated = read_table(path, _SCHEMA, what="counters")

    def column(name: str) -> np.ndarray:
        """Readings of a counter; -1 if it was not measured."""
        return table.column(name).fill_null(-1).to_numpy()

    values = {name: column(name) for name in COUNTERS}
    return RankCounters(rank=rank, at_ns=column("at_ns"), values=values, truncated=truncated)
