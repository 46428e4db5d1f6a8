"""The timeline of a rank: its window cut into segments, each charged to exactly one kind of the ledger.

The window runs from the launch to the end of the last rank. All ranks of a run have the same window.

    instant                                                     charged to
    before the rank's first span                                startup (process, interpreter, imports)
    covered by main-thread spans                                the innermost: the one that started last
    covered by none                                             other
    in `communicate`: the main thread is blocked                comm-wait or comm-transfer
    in `backward`, after the last collective issued in it,      comm-wait or comm-transfer
      until the rank observed the completion of all of them

DDP sends its buckets during backward and waits for them at its end: computation ends when the last bucket is issued.
Earlier messages are hidden behind computation and not charged. An exposed instant belongs to the message that the rank
issued last: comm-wait until all participants have issued it (analyze/run/messages.py), then comm-transfer:

    rank 0   backward ───● issue
                         [──── comm-wait ────][─ comm-transfer ─]
    rank 1   backward ────────────────────────● issue
                                              [─ comm-transfer ─]

A `communicate` span with several collectives is therefore divided at their issues. Work before the issue, such as
packing a buffer, is not comm-wait.

A message with a parameter server has no last rank. The server's work and its wait for other ranks happen on its own
side, so all exposed time of the message is comm-transfer.

Unknown times are not guessed. If the exposed time of a rank depends on a collective that is missing from a trace, or
its own trace has no collective, it is not divided and counts as `other`. A single rank without a server does not
communicate: its `communicate` spans are `other`.

Damaged traces: a span without end lasts to the end of the innermost finished span around its start, or of the window.
If spans overlap without nesting, the overlap belongs to the span that started later. A span that ends before its start
has length 0.

Assumes: one clock for all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.messages import COLLECTIVE, UNKNOWN, Messages
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS, RankTrace

COMM_KINDS = ("comm-wait", "comm-transfer")

_STEP = SPAN_KINDS.index("step")
_COMMUNICATE = SPAN_KINDS.index("communicate")
_BACKWARD = SPAN_KINDS.index("backward")
_STARTUP, _OTHER, WAIT, TRANSFER = map(LEDGER_KINDS.index, ("startup", "other", *COMM_KINDS))
# Span kinds without a ledger kind count as `other`, and so does -1, an unknown kind.
_LEDGER_OF_SPAN = np.array([LEDGER_KINDS.index(k) if k in LEDGER_KINDS else _OTHER for k in (*SPAN_KINDS, "unknown")])
_LONG_AGO = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLine:
    """The window of one rank without gaps: columns of equal length, one row per segment."""

    rank: int
    start_ns: np.ndarray
    length_ns: np.ndarray
    kind: np.ndarray
    """Index into LEDGER_KINDS."""
    exposed: np.ndarray
    """Whether the rank communicates and does not compute."""
    message: np.ndarray
    """Row of `Messages` that an exposed segment belongs to; -1 before the first."""
    divided: bool
    """Whether exposed segments are divided into comm-wait and comm-transfer; otherwise they are `other`."""

    def during(self, start_ns: int, end_ns: int) -> slice:
        """The segments between two instants, both of which are starts of segments."""
        return slice(*np.searchsorted(self.start_ns, (start_ns, end_ns)))


def finished_steps(trace: RankTrace) -> np.ndarray:
    """Rows of the step spans that have ended, in the order of their starts."""
    rows = np.flatnonzero((trace.kind == _STEP) & (trace.end_ns >= 0))
    return rows[np.argsort(trace.start_ns[rows], kind="stable")]


def time_line(
    trace: RankTrace, own: Messages, window: tuple[int, int], *, alone: bool = False, cuts: Sequence[int] = ()
) -> TimeLine:
    """The timeline of a rank, with additional cuts at `cuts`; `alone`: a single rank that does not communicate."""
    spans = _spans(trace, window[1])
    begins, ends = _exposure(spans, own)
    known = own.gathered_ns[own.gathered_ns != UNKNOWN]
    inner = (spans.start, spans.end, own.issued_ns, known, ends[ends < spans.end], np.array(cuts, np.int64))
    instants = _distinct(np.concatenate((np.array(window), *inner)))
    # Both ends of the window are instants, so no segment crosses them.
    inside = slice(*np.searchsorted(instants, window))
    owner = _owners(instants, spans)[inside]
    start, length = instants[inside], np.diff(instants)[inside]

    kind = np.append(_LEDGER_OF_SPAN[spans.kind], _OTHER)[owner].astype(np.int8)  # owner -1: no span
    if len(spans.start):
        kind[(owner < 0) & (start < spans.start[0])] = _STARTUP
    exposed = (start >= np.append(begins, UNKNOWN)[owner]) & (start < np.append(ends, UNKNOWN)[owner])
    exposed &= not alone
    message = np.searchsorted(own.issued_ns, start, side="right") - 1
    gathered = np.append(own.gathered_ns, _LONG_AGO)[message]
    divided = len(own) > 0 and not np.any(gathered[exposed] == UNKNOWN)
    kind[exposed] = np.where(start < gathered, WAIT, TRANSFER)[exposed] if divided else _OTHER
    message[~exposed] = -1
    return TimeLine(
        rank=trace.rank,
        start_ns=start,
        length_ns=length,
        kind=kind,
        exposed=exposed,
        message=message,
        divided=divided or alone,
    )


@dataclass(frozen=True, slots=True)
class _Spans:
    """Main-thread spans from the outermost to the innermost: the later one owns an overlap."""

    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray


def _spans(trace: RankTrace, ended_at_ns: int) -> _Spans:
    """The main-thread spans of a trace, each with an end."""
    main = trace.kind != COLLECTIVE
    kind, start, end = trace.kind[main], trace.start_ns[main], trace.end_ns[main]
    unfinished = end == -1
    if not unfinished.any():
        return _in_order(kind, start, end)
    finished = _in_order(kind[~unfinished], start[~unfinished], end[~unfinished])
    instants = _distinct(np.concatenate((start, finished.end)))
    parent = _owners(instants, finished)[np.searchsorted(instants, start[unfinished])]
    end[unfinished] = np.append(finished.end, ended_at_ns)[parent]  # parent -1: the window
    return _in_order(kind, start, end)


def _in_order(kind: np.ndarray, start: np.ndarray, end: np.ndarray) -> _Spans:
    end = np.maximum(start, end)
    # Of two spans with one start the shorter is the inner one. Sorting by kind last makes the result independent of the
    # order in the file.
    order = np.lexsort((kind, -end, start))
    return _Spans(kind[order], start[order], end[order])


def _distinct(instants: np.ndarray) -> np.ndarray:
    """The sorted distinct instants; np.unique takes forty times as long for a million of them."""
    ordered = np.sort(instants)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _owners(instants: np.ndarray, spans: _Spans) -> np.ndarray:
    """For each instant, the span that owns the time up to the next instant: the last span that covers it, or -1.

    A range of segments is the union of two overlapping blocks of 2^k segments. Every span marks its two blocks; then
    blocks are halved from the largest down, and the higher span number wins. This takes O(n log n) array operations
    without a loop over spans, and does not require nesting.
    """
    first, after = np.searchsorted(instants, spans.start), np.searchsorted(instants, spans.end)
    level = np.frexp(after - first)[1] - 1  # floor(log2(length)); -1 if empty
    owner = np.full(len(instants), -1, dtype=np.int64)
    for k in range(level.max(initial=-1), -1, -1):
        half = 1 << k
        owner[half:] = np.maximum(owner[half:], owner[:-half])
        here = np.flatnonzero(level == k)
        np.maximum.at(owner, first[here], here)
        np.maximum.at(owner, after[here] - half, here)
    return owner


def _exposure(spans: _Spans, own: Messages) -> tuple[np.ndarray, np.ndarray]:
    """For each span, begin and end of its exposed communication; UNKNOWN if it has none."""
    last = np.searchsorted(own.issued_ns, spans.end) - 1  # -1: none before the span's end
    last_issue = np.append(own.issued_ns, UNKNOWN)[last]
    # After the last completion backward continues with its own work, such as copying the sums back.
    all_observed = np.append(np.maximum.accumulate(own.observed_ns), UNKNOWN)[last]
    issues = (spans.kind == _BACKWARD) & (last_issue >= spans.start)
    begins = np.where(issues, last_issue, UNKNOWN)
    begins[spans.kind == _COMMUNICATE] = _LONG_AGO
    return begins, np.where(issues, np.maximum(all_observed, last_issue), UNKNOWN)
