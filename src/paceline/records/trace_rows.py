"""Rows of a rank's trace: two traces joined, and a trace without some of its rows."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from paceline.records.rank_trace import SPAN_KINDS, RankTrace, Words

_COLLECTIVE = SPAN_KINDS.index("collective")


def joined(first: RankTrace, second: RankTrace) -> RankTrace:
    """Two consecutive parts of a rank's spans as one trace; a message in both is in it once."""
    columns: dict[str, Any] = {}
    for field in fields(RankTrace):
        values = getattr(first, field.name), getattr(second, field.name)
        if isinstance(values[0], Words):
            columns[field.name] = _joined_words(*values)
        elif isinstance(values[0], np.ndarray):
            columns[field.name] = np.concatenate(values)
    trace = replace(first, truncated=second.truncated, **columns)
    return without(trace, repeated(trace))


def _joined_words(first: Words, second: Words) -> Words:
    words = tuple(dict.fromkeys((*first.words, *second.words)))
    codes = np.asarray([*(words.index(word) for word in second.words), -1], np.int32)[second.codes]
    return Words(np.concatenate((first.codes, codes)), words)


def without(trace: RankTrace, rows: np.ndarray) -> RankTrace:
    """The trace without the rows of a mask."""
    if not rows.any():
        return trace
    others = ~rows
    columns: dict[str, Any] = {}
    for field in fields(RankTrace):
        value = getattr(trace, field.name)
        if isinstance(value, Words):
            columns[field.name] = Words(value.codes[others], value.words)
        elif isinstance(value, np.ndarray):
            columns[field.name] = value[others]
    return replace(trace, **columns)


def repeated(trace: RankTrace) -> np.ndarray:
    """Mask of the messages without an end that occur again with one."""
    messages = np.flatnonzero(trace.kind == _COLLECTIVE)
    group, sequence = trace.group.codes[messages], trace.sequence[messages]
    order = np.lexsort((trace.end_ns[messages], sequence, group, trace.start_ns[messages]))
    keys = np.stack((trace.start_ns[messages], sequence, group, trace.peer[messages]))[:, order]
    again = np.append(np.all(keys[:, :-1] == keys[:, 1:], axis=0), False)[: len(order)]
    repeated_rows = np.zeros(len(trace), dtype=bool)
    repeated_rows[messages[order[again]]] = True
    return repeated_rows & (trace.end_ns < 0)
