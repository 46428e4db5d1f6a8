"""A run folder -> the counters of all its processes on one clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paceline.errors import StorageError
from paceline.records.counters import COUNTERS, RankCounters
from paceline.records.run import Machine
from paceline.storage.codec import optional_record
from paceline.storage.counter_stream import read_counter_file
from paceline.storage.folder import RunFolder


def read_counters(folder: RunFolder) -> tuple[RankCounters, ...]:
    """The counters of a run in order of rank, with instants on the launcher's clock; empty if there are none.

    A file that cannot be read has no samples, and counts as truncated.
    """
    machine = optional_record(folder.machine, Machine)
    found = []
    for path in folder.counters.glob("rank-*.arrows"):
        number = path.stem.removeprefix("rank-")
        if number.isdecimal():
            try:
                read = read_counter_file(path, int(number))
            except StorageError:
                read = _nothing(int(number))
            found.append(_placed(read, machine))
    return tuple(sorted(found, key=lambda counters: counters.rank))


def _placed(counters: RankCounters, machine: Machine | None) -> RankCounters:
    """The counters with host, machine and threads from `machine.json`, on the launcher's clock."""
    if machine is None:
        return counters
    clock = next((clock for clock in machine.clocks if clock.rank == counters.rank), None)
    given = next((given for given in machine.ranks if given.rank == counters.rank), None)
    counters = replace(counters, at_ns=counters.at_ns - (clock.offset_ns if clock else 0))
    if given is None:
        return counters
    return replace(counters, host=given.place, machine=given.machine, threads=given.threads)


def _nothing(rank: int) -> RankCounters:
    empty = np.empty(0, np.int64)
    return RankCounters(rank=rank, at_ns=empty, values=dict.fromkeys(COUNTERS, empty), truncated=True)
