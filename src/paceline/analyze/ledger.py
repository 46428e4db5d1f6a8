"""The ledger: every nanosecond of a rank's window charged to exactly one kind.

The window runs from the launch to the last rank's end and is the same for all ranks of a run.

    instant                                                     charged to
    before the rank's first span                                startup (process, interpreter, imports)
    covered by main-thread spans                                the innermost: the one that started last
    covered by none                                             other
    in `communicate`: the main thread is blocked                comm-wait or comm-transfer
    in `backward`, after the last collective issued in it       comm-wait or comm-transfer

DDP sends its buckets while backward still computes and waits for them at its end: computation is
over when the last bucket is issued. What was sent before is hidden behind computation and not
charged. An exposed instant belongs to the collective that the rank issued last: until the last
rank has issued the same one (same group, same sequence number) it is comm-wait, then comm-transfer:

    rank 0   backward ───● issue
                         [──── comm-wait ────][─ comm-transfer ─]
    rank 1   backward ────────────────────────● issue
                                              [─ comm-transfer ─]

So a `communicate` span with several collectives is divided at their issues, and what a rank does in
it before its own issue, packing a buffer for instance, is not called waiting for others.

A message to or from a parameter server has no last rank to wait for: the server's own work, and its wait for
other ranks, pass on the far side of it. What is exposed of it is comm-transfer as a whole.

What cannot be known is not guessed. Where a rank's exposed time hangs on a collective that is not
in every rank's trace, or its trace holds no collective at all, its comm-wait and comm-transfer
are None and its exposed time counts as `other`. A single rank without a server communicates with
nobody: both are 0, and its `communicate` spans count as `other`.

Damaged traces: a span without end lasts to the end of the innermost finished span around its
start, or of the window; spans that overlap without nesting give the overlap to the one that
started later; a span that ends before it starts has no length.

Assumes: one clock for all ranks, and collectives of groups that all ranks belong to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.records.trace import LEDGER_KINDS, SPAN_KINDS, RankTrace
from paceline.units import seconds

COMM_KINDS = ("comm-wait", "comm-transfer")

_COLLECTIVE = SPAN_KINDS.index("collective")
_COMMUNICATE = SPAN_KINDS.index("communicate")
_BACKWARD = SPAN_KINDS.index("backward")
_STARTUP = LEDGER_KINDS.index("startup")
_OTHER = LEDGER_KINDS.index("other")
# The two kinds that are not in the ledger are counted as `other` until they are divided.
_LEDGER_OF_SPAN = np.array([LEDGER_KINDS.index(k) if k in LEDGER_KINDS else _OTHER for k in SPAN_KINDS])
_NEVER = np.iinfo(np.int64).max


def ledgers(
    traces: Sequence[RankTrace], *, started_at_ns: int, ended_at_ns: int, ranks: int | None = None
) -> tuple[dict[str, float | None], ...]:
    """Seconds by kind for each trace; what is not None sums to the window.

    `ranks` is how many ranks the run had, where traces of some may be missing.
    """
    in_ns = ledgers_ns(traces, started_at_ns=started_at_ns, ended_at_ns=ended_at_ns, ranks=ranks)
    return tuple({kind: None if ns is None else seconds(ns) for kind, ns in ledger.items()} for ledger in in_ns)


def ledgers_ns(
    traces: Sequence[RankTrace], *, started_at_ns: int, ended_at_ns: int, ranks: int | None = None
) -> tuple[dict[str, int | None], ...]:
    """The same in whole nanoseconds, where the sum is exact."""
    assert ended_at_ns >= started_at_ns, "a window ends after it starts"
    ranks = max(len(traces), ranks or 0)
    window = (started_at_ns, ended_at_ns)
    return tuple(
        _rank_ledger(
            _spans(trace, ended_at_ns), messages, window, alone=ranks == 1 and not _with_server(trace, 1).any()
        )
        for trace, messages in zip(traces, _all_messages(traces, ranks), strict=True)
    )


def mean_ledger(ledgers: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Mean seconds by kind over ranks.

    A kind that is None for one rank is None in the mean, and the other ranks' share of it moves to
    `other`: so the mean, too, sums to the window.
    """
    assert ledgers, "a mean needs a ledger"
    mean: dict[str, float | None] = {}
    moved_s = 0.0
    for kind in LEDGER_KINDS:
        values = [ledger[kind] for ledger in ledgers]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            mean[kind] = sum(known) / len(values)
        else:
            mean[kind] = None
            moved_s += sum(known) / len(values)
    other_s = mean["other"]
    assert other_s is not None, "`other` is the remainder and always known"
    mean["other"] = other_s + moved_s
    return mean


@dataclass(frozen=True, slots=True)
class _Spans:
    """Main-thread spans from the outermost to the innermost: a later one wins where two overlap."""

    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray


@dataclass(frozen=True, slots=True)
class _Messages:
    """The collectives of one rank in the order of their issue."""

    issued: np.ndarray
    gathered: np.ndarray
    """When the last rank issued the same one; _NEVER where some rank's trace does not show it."""


def _spans(trace: RankTrace, ended_at_ns: int) -> _Spans:
    """The main-thread spans of a trace, each with an end."""
    main = trace.kind != _COLLECTIVE
    kind, start, end = trace.kind[main], trace.start_ns[main], trace.end_ns[main]
    unfinished = end == -1
    if not unfinished.any():
        return _in_order(kind, start, end)
    finished = _in_order(kind[~unfinished], start[~unfinished], end[~unfinished])
    instants = np.unique(np.concatenate((start, finished.end)))
    parent = _owners(instants, finished)[np.searchsorted(instants, start[unfinished])]
    end[unfinished] = np.append(finished.end, ended_at_ns)[parent]  # parent -1: the window
    return _in_order(kind, start, end)


def _in_order(kind: np.ndarray, start: np.ndarray, end: np.ndarray) -> _Spans:
    end = np.maximum(start, end)
    # Of two that start together the shorter is the inner one; the kind settles what is left, so
    # that the order of the file never matters.
    order = np.lexsort((kind, -end, start))
    return _Spans(kind[order], start[order], end[order])


def _owners(instants: np.ndarray, spans: _Spans) -> np.ndarray:
    """For each instant the span that owns the time from it to the next: the last that covers it, or -1.

    A range of segments is the union of two overlapping blocks of 2^k segments. Every span marks its
    two blocks; then blocks are halved from the largest down, the higher number winning. That takes
    O(n log n) array operations, no loop over spans, and no nesting.
    """
    first, after = np.searchsorted(instants, spans.start), np.searchsorted(instants, spans.end)
    level = np.frexp(after - first)[1] - 1  # floor(log2(length)); -1 where it is empty
    owner = np.full(len(instants), -1, dtype=np.int64)
    for k in range(level.max(initial=-1), -1, -1):
        half = 1 << k
        owner[half:] = np.maximum(owner[half:], owner[:-half])
        here = np.flatnonzero(level == k)
        np.maximum.at(owner, first[here], here)
        np.maximum.at(owner, after[here] - half, here)
    return owner


def _all_messages(traces: Sequence[RankTrace], ranks: int) -> list[_Messages]:
    """Each rank's collectives, with the instant at which the last of all ranks issued the same."""
    codes = {group: code for code, group in enumerate({group for trace in traces for group in set(trace.group)})}
    issued: list[np.ndarray] = []
    keys: list[np.ndarray] = []
    served: list[np.ndarray] = []
    for trace in traces:
        chosen = trace.kind == _COLLECTIVE
        group = np.fromiter(map(codes.__getitem__, trace.group), np.int64, len(trace))[chosen]
        sequence = trace.sequence[chosen].astype(np.int64)
        issued.append(trace.start_ns[chosen])
        keys.append(np.where(sequence < 0, -1, (group << 32) | sequence))
        served.append(_with_server(trace, ranks)[chosen] & (sequence < 0))
    known = np.unique(np.concatenate([np.array([-1]), *keys]))
    gathered = np.full(len(known), np.iinfo(np.int64).min)
    seen_by = np.zeros(len(known), dtype=np.int64)
    places = [np.searchsorted(known, key) for key in keys]
    for place, at in zip(places, issued, strict=True):
        np.maximum.at(gathered, place, at)
        seen_by[np.unique(place)] += 1
    gathered[(seen_by < ranks) | (known < 0)] = _NEVER
    messages = []
    for place, at, alone in zip(places, issued, served, strict=True):
        ready = np.where(alone, at, gathered[place])
        order = np.lexsort((ready, at))
        messages.append(_Messages(at[order], ready[order]))
    return messages


def _with_server(trace: RankTrace, ranks: int) -> np.ndarray:
    """Which spans are messages with a process that does not train: these are numbered after the ranks."""
    return np.zeros(len(trace), dtype=bool) if trace.peer is None else trace.peer >= ranks


def _rank_ledger(spans: _Spans, messages: _Messages, window: tuple[int, int], *, alone: bool) -> dict[str, int | None]:
    """Nanoseconds by kind of one rank."""
    instants = np.unique(np.concatenate((np.array(window), spans.start, spans.end, messages.issued)))
    # The window's ends are instants themselves, so no segment crosses them.
    inside = slice(*np.searchsorted(instants, window))
    owner = _owners(instants, spans)[inside]
    start, length = instants[inside], np.diff(instants)[inside]

    charged = np.append(_LEDGER_OF_SPAN[spans.kind], _OTHER)[owner]  # owner -1: nobody's
    if len(spans.start):
        charged[(owner < 0) & (start < spans.start[0])] = _STARTUP
    if alone:
        exposed, wait_ns = np.zeros(len(start), dtype=bool), 0
    else:
        exposed = _exposed(start, owner, spans, messages)
        wait_ns = _wait_ns(start[exposed], length[exposed], messages)

    totals = np.zeros(len(LEDGER_KINDS), dtype=np.int64)
    np.add.at(totals, charged[~exposed], length[~exposed])
    ledger: dict[str, int | None] = dict(zip(LEDGER_KINDS, totals.tolist(), strict=True))
    exposed_ns = int(length[exposed].sum())
    if wait_ns is None:
        ledger |= dict.fromkeys(COMM_KINDS) | {"other": int(totals[_OTHER]) + exposed_ns}
    else:
        ledger |= {"comm-wait": wait_ns, "comm-transfer": exposed_ns - wait_ns}
    return ledger


def _exposed(start: np.ndarray, owner: np.ndarray, spans: _Spans, messages: _Messages) -> np.ndarray:
    """Which segments are communication that no computation hides."""
    last = np.searchsorted(messages.issued, spans.end) - 1
    last_issue = np.append(messages.issued, _NEVER)[last]  # position -1: none before the span's end
    issues = (spans.kind == _BACKWARD) & (last_issue >= spans.start)
    exposed_from = np.where(issues, last_issue, _NEVER)
    exposed_from[spans.kind == _COMMUNICATE] = np.iinfo(np.int64).min
    return start >= np.append(exposed_from, _NEVER)[owner]


def _wait_ns(start: np.ndarray, length: np.ndarray, messages: _Messages) -> int | None:
    """Nanoseconds of exposed segments before the last rank issued what they wait for; None if unknown."""
    if not len(messages.issued):
        return None
    governing = np.searchsorted(messages.issued, start, side="right") - 1
    # Before its first collective a rank has nothing to wait for.
    gathered = np.append(messages.gathered, np.iinfo(np.int64).min)[governing]
    if np.any(gathered == _NEVER):
        return None
    return int((np.clip(gathered, start, start + length) - start).sum())
