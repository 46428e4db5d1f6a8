"""A run as a graph: computation and messages of each rank, and their dependencies.

    computation    an interval of a rank's timeline without exposed time, cut at the issue of each message
    message        from its issue until the rank observed its completion

    ═══ 0 ═══╤═══ 1 ═══╤═══ 3 ═══╤·····exposed·····╤═══ 5 ═══          0, 1, 3 and 5 in turn
             └─ 2 ─────┼─────────┼────┐            │                   2 after 0, 4 after 1 and 3
                       └── 4 ────┴────┴────────────┘                   5 after 2 and 4: the rank waited for both

A rank waits during exposed time: the next node, computation or message, depends on every message whose completion the
rank has observed by then. A message that completes while the rank computes does not delay it.
"""

from __future__ import annotations

import numpy as np

from paceline.analyze.run.messages import UNKNOWN, Messages, messages, served
from paceline.analyze.run.run_timeline import TimeLine, time_line
from paceline.analyze.views.tracks import host_of, message_numbers
from paceline.records.rank_trace import RankTrace, Words
from paceline.records.trace_summary import RunTrace
from paceline.records.track import RankGraph


def graphs(run: RunTrace) -> tuple[RankGraph, ...]:
    """The graph of every trace of a run."""
    found = messages(run.traces, run.ranks)
    numbers = message_numbers(found)
    return tuple(_graph(run, trace, own, number) for trace, own, number in zip(run.traces, found, numbers, strict=True))


def _graph(run: RunTrace, trace: RankTrace, own: Messages, number: np.ndarray) -> RankGraph:
    window = (run.started_at_ns, max(run.started_at_ns, run.ended_at_ns))
    alone = run.ranks == 1 and trace.rank == 0 and not served(trace).any()
    line = time_line(trace, own, window, alone=alone)
    begins, lengths, kinds, waited = _stretches(line, own)
    observed = np.where(own.observed_ns == UNKNOWN, own.issued_ns, np.maximum(own.observed_ns, own.issued_ns))
    start = np.append(own.issued_ns, begins)
    is_message = np.arange(len(start)) < len(own)
    # A message before the computation that goes on at the same instant: what waits for it comes later in the file.
    order = np.lexsort((~is_message, start))
    node = np.empty(len(order), np.int64)
    node[order] = np.arange(len(order))

    after = np.append(_before(begins, own.issued_ns), np.arange(len(begins)) - 1)
    after = np.where(after < 0, -1, np.append(node[len(own) :], -1)[after])
    joining = np.append(_waited(line, own.issued_ns), waited)
    edge_from, edge_to = _joins(start, joining, order, observed, own.observed_ns != UNKNOWN)

    def column(values: np.ndarray, none: int = -1) -> np.ndarray:
        return np.append(values, np.full(len(begins), none, np.int64))[order]

    def words(of: Words) -> Words:
        return Words(column(of.codes[own.row]), of.words)

    gathered = np.where(own.gathered_ns == UNKNOWN, -1, np.maximum(own.gathered_ns - own.issued_ns, 0))
    return RankGraph(
        rank=trace.rank,
        host=host_of(run, trace.rank),
        start_ns=start[order] - run.started_at_ns,
        length_ns=np.append(observed - own.issued_ns, lengths)[order],
        kind=np.append(np.full(len(own), -1), kinds)[order],
        after=after[order],
        edge_from=node[edge_from],
        edge_to=node[edge_to],
        operation=words(trace.operation),
        payload=column(trace.bytes[own.row]),
        group=words(trace.group),
        dtype=words(trace.dtype),
        peer=column(trace.peer[own.row]),
        sequence=column(trace.sequence[own.row]),
        message=column(number),
        wait_ns=column(gathered),
    )


def _stretches(line: TimeLine, own: Messages) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Computation: begins, lengths, kinds, and whether the rank had waited just before."""
    computes = ~line.exposed
    before = np.append(False, computes[:-1])[: len(computes)]
    same = before & (np.append(-1, line.kind[:-1])[: len(computes)] == line.kind)
    same &= ~np.isin(line.start_ns, own.issued_ns)
    heads = np.flatnonzero(computes & ~same)
    lengths = np.add.reduceat(np.where(computes, line.length_ns, 0), heads) if len(heads) else np.zeros(0, np.int64)
    return line.start_ns[heads], lengths, line.kind[heads], ~before[heads] & (heads > 0)


def _before(begins: np.ndarray, instants: np.ndarray) -> np.ndarray:
    """For each instant the last stretch that begins before it; -1 where none does."""
    return np.searchsorted(begins, instants) - 1


def _waited(line: TimeLine, instants: np.ndarray) -> np.ndarray:
    """Whether the rank was exposed just before each of the instants."""
    place = np.searchsorted(line.start_ns, instants) - 1
    return np.append(line.exposed, False)[np.where(place < 0, len(line.exposed), place)]


def _joins(
    start: np.ndarray, joining: np.ndarray, order: np.ndarray, observed: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """From which message to which node an edge leads: the first that waited, and begins when the rank was observed."""
    joiners = order[joining[order]]
    # One that is itself the message, or was issued at the same instant, did not wait for it.
    place = np.searchsorted(start[joiners], np.maximum(observed, start[: len(observed)] + 1))
    rows = np.flatnonzero(known & (place < len(joiners)))
    targets = joiners[place[rows]]
    rank_of = np.empty(len(order), np.int64)
    rank_of[order] = np.arange(len(order))
    by_target = np.argsort(rank_of[targets], kind="stable")
    return rows[by_target], targets[by_target]
