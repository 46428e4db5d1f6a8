"""A run as tracks: what a viewer of traces can draw, whose lanes take spans only where they nest.

    main thread   ══════ step ══════════════════       spans nest; what a damaged trace lets overlap is cut
                  ═ forward ═  ═══ backward ════       at the end of the span around it
    messages                ●────────●                 one lane for as many as are under way at once: each message takes
    messages 2                  ●─────────●            the first that is free

Messages are numbered over all ranks, and those that all their ranks show are put in the order of their arrival, so that
arrows can lead from rank to rank to the last.
"""

from __future__ import annotations

import heapq
from dataclasses import fields, replace
from typing import Any

import numpy as np

from paceline.analyze.run.messages import COLLECTIVE, SENDING, UNKNOWN, Messages, is_operation, messages
from paceline.records.rank_trace import RankTrace, Words
from paceline.records.trace_summary import RunTrace
from paceline.records.track import FLOW_BETWEEN, FLOW_FIRST, FLOW_LAST, Track


def tracks(run: RunTrace) -> tuple[Track, ...]:
    """A track for every trace of a run; instants are since its start."""
    found = messages(run.traces, run.ranks)
    numbers = message_numbers(found)
    flows = _flows(run.traces, found)
    return tuple(
        _track(run, trace, own, number, flow)
        for trace, own, number, flow in zip(run.traces, found, numbers, flows, strict=True)
    )


def message_numbers(found: tuple[Messages, ...]) -> tuple[np.ndarray, ...]:
    """For each rank's messages their numbers over all ranks, from 0 on; -1 where nothing says which message it is."""
    if not found:
        return ()
    keys = np.concatenate([own.key for own in found])
    known = keys >= 0
    numbers = np.full(len(keys), -1, np.int64)
    numbers[known] = np.unique(keys[known], return_inverse=True)[1]
    return tuple(np.split(numbers, np.cumsum([len(own) for own in found])[:-1]))


def host_of(run: RunTrace, rank: int) -> str | None:
    """The host of a rank, where it is known; that of a server is not."""
    return run.hosts[rank] if rank < len(run.hosts) else None


def _flows(traces: tuple[RankTrace, ...], found: tuple[Messages, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each rank's messages their place in the order of arrival, and the instant of it."""
    if not found:
        return []
    key = np.concatenate([own.key for own in found])
    issued = np.concatenate([own.issued_ns for own in found])
    gathered = np.concatenate([own.gathered_ns for own in found])
    between = np.concatenate(
        [(trace.sequence[own.row] < 0) & (trace.peer[own.row] >= 0) for trace, own in zip(traces, found, strict=True)]
    )
    sends = np.concatenate([is_operation(trace, own.row, SENDING) for trace, own in zip(traces, found, strict=True)])
    # A message between two leads from its sender to its receiver, whoever came first.
    at = np.where(between & ~sends, gathered, issued)
    shown = np.flatnonzero((key >= 0) & (gathered != UNKNOWN))
    order = shown[np.lexsort((~sends[shown] & between[shown], at[shown], key[shown]))]
    flow = np.zeros(len(key), np.int8)
    flow[order] = FLOW_BETWEEN
    first = np.diff(key[order], prepend=-2) != 0
    last = np.append(first[1:], True)[: len(order)]
    flow[order[first]], flow[order[last]] = FLOW_FIRST, FLOW_LAST
    flow[order[first & last]] = 0
    cuts = np.cumsum([len(own) for own in found])[:-1]
    return list(zip(np.split(flow, cuts), np.split(at, cuts), strict=True))


def _track(
    run: RunTrace, trace: RankTrace, own: Messages, number: np.ndarray, flow: tuple[np.ndarray, np.ndarray]
) -> Track:
    begun_at = run.started_at_ns

    def whole(values: np.ndarray) -> np.ndarray:
        """A column of the messages as one of the trace."""
        column = np.full(len(trace), -1, np.int64)
        column[own.row] = values
        return column

    def since(instants: np.ndarray) -> np.ndarray:
        return np.where((instants < 0) | (instants == UNKNOWN), -1, instants - begun_at)

    # Of two that start together the longer is the outer one.
    length = np.where(trace.end_ns < 0, UNKNOWN, trace.end_ns)
    order = np.lexsort((trace.kind, -length, trace.start_ns))
    moved = replace(
        trace,
        start_ns=trace.start_ns - begun_at,
        end_ns=since(trace.end_ns),
        begun_ns=since(trace.begun_ns),
    )
    ordered = selected_rows(moved, order)
    is_message = ordered.kind == COLLECTIVE
    drawn_end = np.maximum(ordered.end_ns, ordered.start_ns)
    main = np.flatnonzero(~is_message)
    drawn_end[main] = _nested(ordered.start_ns[main], ordered.end_ns[main], run.ended_at_ns - begun_at)
    lane = np.zeros(len(trace), np.int64)
    rows = np.flatnonzero(is_message)
    lane[rows] = 1 + _lanes(ordered.start_ns[rows], drawn_end[rows])
    kind = np.zeros(len(trace), np.int8)
    kind[own.row] = flow[0]
    return Track(
        trace=ordered,
        host=host_of(run, trace.rank),
        message=whole(number)[order],
        gathered_ns=since(whole(own.gathered_ns))[order],
        completed_ns=since(whole(own.completed_ns))[order],
        lane=lane,
        drawn_end_ns=drawn_end,
        flow=kind[order],
        flow_at_ns=since(whole(flow[1]))[order],
    )


def selected_rows(trace: RankTrace, rows: np.ndarray) -> RankTrace:
    """Some rows of a trace, in this order."""
    columns: dict[str, Any] = {}
    for field in fields(RankTrace):
        value = getattr(trace, field.name)
        if isinstance(value, Words):
            columns[field.name] = Words(value.codes[rows], value.words)
        elif isinstance(value, np.ndarray):
            columns[field.name] = value[rows]
    return replace(trace, **columns)


def _nested(start_ns: np.ndarray, end_ns: np.ndarray, ended_at_ns: int) -> np.ndarray:
    """Ends of spans in the order of their starts, the outer one first: none after that of the span around it.

    A span hangs on those before it, so this is a loop over plain numbers: half a second for a million.
    """
    ends, around = [], [(1 << 63) - 1]
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        while around[-1] <= start and len(around) > 1:
            around.pop()
        limit = around[-1] if len(around) > 1 else max(ended_at_ns, end)
        end = max(start, min(limit if end < 0 else end, limit))
        ends.append(end)
        around.append(end)
    return np.array(ends, np.int64)


def _lanes(start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """For each interval, in the order of their starts, the first lane that is free at its start."""
    lanes = np.zeros(len(start_ns), np.int64)
    if not np.any(np.maximum.accumulate(end_ns)[:-1] > start_ns[1:]):
        return lanes
    found, taken_until, free = [], [], []
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        while taken_until and taken_until[0][0] <= start:
            heapq.heappush(free, heapq.heappop(taken_until)[1])
        lane = heapq.heappop(free) if free else len(taken_until)
        heapq.heappush(taken_until, (end, lane))
        found.append(lane)
    return np.array(found, np.int64)
