"""The message tables of A and B side by side: what is sent more or less often, and what moves faster or slower."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paceline.analyze.compare.spent import Spent
from paceline.analyze.stats.two_samples import corrected, known_versus
from paceline.records.changes import MessageChange
from paceline.records.trace_summary import MessageKind

_Row = tuple[str, str, str | None, int]
"""Operation, group, type and size: what tells one row of the message table from another."""
_Table = tuple[int, Mapping[_Row, MessageKind]]
"""Steps of a run, and its rows."""
_SMALLEST_MAIN = 0.01


def message_changes(a: Sequence[Spent], b: Sequence[Spent]) -> tuple[MessageChange, ...]:
    """Every row that a run of A or B has; most bytes first.

    Bandwidths are corrected among the main rows: beside a dozen small messages of start-up none could be real.
    """
    first, second = _tables(a), _tables(b)
    rows = {key: kind for _, table in (*first, *second) for key, kind in table.items()}
    found = [
        MessageChange(
            operation=kind.operation,
            group=kind.group,
            dtype=kind.dtype,
            payload_bytes=kind.payload_bytes,
            a_per_step=_per_step(first, key),
            b_per_step=_per_step(second, key),
            bandwidth=known_versus(_bandwidths(first, key), _bandwidths(second, key), ratio=True),
            main=False,
        )
        for key, kind in rows.items()
    ]
    largest = [max((each[side] for each in map(_bytes_per_step, found)), default=0.0) for side in (0, 1)]
    found = [replace(each, main=_is_main(each, largest)) for each in found]
    found = [each for main in (True, False) for each in _tested([each for each in found if each.main is main])]
    return tuple(sorted(found, key=lambda each: max(_bytes_per_step(each)), reverse=True))


def _tested(rows: Sequence[MessageChange]) -> list[MessageChange]:
    """The same rows with their bandwidths corrected for one another."""
    tested = iter(corrected([each.bandwidth for each in rows if each.bandwidth], ratio=True))
    return [replace(each, bandwidth=next(tested)) if each.bandwidth else each for each in rows]


def _is_main(change: MessageChange, largest: Sequence[float]) -> bool:
    return any(own >= _SMALLEST_MAIN * most > 0 for own, most in zip(_bytes_per_step(change), largest, strict=True))


def _tables(runs: Sequence[Spent]) -> list[_Table]:
    return [
        (run.steps, {(kind.operation, kind.group, kind.dtype, kind.payload_bytes): kind for kind in run.messages})
        for run in runs
    ]


def _per_step(tables: Sequence[_Table], key: _Row) -> float | None:
    """Messages of a row for each step of a run, median over runs; None where no run has any."""
    counts = [table[key].count / steps for steps, table in tables if steps and key in table]
    return statistics.median(counts) if counts else None


def _bandwidths(tables: Sequence[_Table], key: _Row) -> list[float | None]:
    return [table[key].bus_bytes_per_s if key in table else None for _, table in tables]


def _bytes_per_step(change: MessageChange) -> tuple[float, float]:
    """Of A, and of B."""
    return change.payload_bytes * (change.a_per_step or 0.0), change.payload_bytes * (change.b_per_step or 0.0)
