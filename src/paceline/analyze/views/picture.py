"""RunTrace -> Picture: the ranks' time lines and the messages they had under way, cut down to what a page can hold.

A message is under way from its issue to its completion; until the last rank has issued it it waits, then it moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from paceline.analyze.run.ledger import rank_line
from paceline.analyze.run.messages import UNKNOWN, Messages, messages
from paceline.analyze.run.run_timeline import TimeLine, finished_steps
from paceline.analyze.views.bundles import Parts, bundled
from paceline.analyze.views.message_rows import SentMessages, Strip, message_rows
from paceline.records.rank_trace import SPAN_KINDS, RankTrace
from paceline.records.run_picture import NOT_SEEN, PICTURE_KINDS, Lane, Picture
from paceline.records.trace_summary import RunTrace

MOST_PARTS = 100_000
"""Of a picture: they take 1.7 MB of a page, and a browser draws them between two frames."""
MOST_RANKS = 64
"""Ranks of a run that are drawn: more make a page long and no clearer."""
_MOST_STEPS = 20_000
_NONE = PICTURE_KINDS.index("none")
_AROUND = [SPAN_KINDS.index(kind) for kind in ("collective", "group")]
_STEP = SPAN_KINDS.index("step")


def picture(
    run: RunTrace, limit: int = MOST_PARTS, lines: Sequence[TimeLine] = (), found: Sequence[Messages] | None = None
) -> Picture:
    """The run in at most `limit` parts; `lines` and `found` are the time lines of its ranks and its messages, where
    they are known already."""
    window = (run.started_at_ns, max(run.started_at_ns, run.ended_at_ns))
    tick_ns = max(1, -(-(window[1] - window[0]) // (NOT_SEEN - 1)))
    found = messages(run.traces, run.ranks) if found is None else found
    sides = [(trace, own) for trace, own in zip(run.traces, found, strict=True) if trace.rank < run.ranks][:MOST_RANKS]
    strips = list(_strips(sides, window, run.ranks, tick_ns, lines)) if window[0] < window[1] else []
    parts = _joined(strips, window[1] - window[0])
    less = bundled(parts, limit)
    fewer, referred = _referred(less.parts)
    starts = np.searchsorted(fewer.lane, np.arange(len(strips) + 1))
    sent = SentMessages.of(sides, referred)

    def ticks(instants_ns: np.ndarray) -> np.ndarray:
        since = (np.clip(instants_ns, *window) - window[0]) // tick_ns
        return np.where(instants_ns == UNKNOWN, NOT_SEEN, since).astype("<u4")

    steps = _steps(sides[0][0]) if sides else np.zeros((2, 0), np.int64)
    return Picture(
        name=run.name,
        ranks=run.ranks,
        hosts=run.hosts,
        tick_ns=tick_ns,
        window=(window[1] - window[0]) // tick_ns,
        clock_error_ns=run.clock_error_ns,
        lanes=tuple(
            Lane(rank=strip.rank, row=strip.row, first=int(starts[n]), count=int(starts[n + 1] - starts[n]))
            for n, strip in enumerate(strips)
        ),
        start=(fewer.start_ns // tick_ns).astype("<u4"),
        kind=fewer.kind.astype("u1"),
        step=fewer.step.astype("<i4"),
        ref=fewer.ref.astype("<i4"),
        bundles=less.sizes.astype("<u4"),
        issued=ticks(sent.issued_ns),
        gathered=ticks(sent.gathered_ns),
        completed=ticks(sent.completed_ns),
        label=sent.label.astype("<u4"),
        labels=sent.labels,
        steps_at=ticks(steps[0]),
        steps=steps[1].astype("<i4"),
        loop=_loop(sides, window, tick_ns),
        parts=int(np.count_nonzero(parts.kind != _NONE)),
        shown=int(np.count_nonzero((fewer.kind != _NONE) & (fewer.ref > -2))),
        merged_below_ns=less.below_ns,
        in_full=tuple((begin // tick_ns, end // tick_ns) for begin, end in less.in_full_ns),
    )


def _strips(
    sides: Sequence[tuple[RankTrace, Messages]],
    window: tuple[int, int],
    ranks: int,
    tick_ns: int,
    lines: Sequence[TimeLine],
) -> Iterator[Strip]:
    known = {line.rank: line for line in lines}
    offset = 0
    for trace, own in sides:
        line = known.get(trace.rank) or rank_line(trace, own, window, ranks)
        yield _work(trace, line, window[0], offset)
        yield from message_rows(trace, own, window, offset, tick_ns)
        offset += len(own)


def _work(trace: RankTrace, line: TimeLine, started_ns: int, offset: int) -> Strip:
    """The main thread of a rank: its time line, without the cuts that only the ledger needs."""
    main = np.flatnonzero(~np.isin(trace.kind, _AROUND))
    main = main[np.argsort(trace.start_ns[main], kind="stable")]
    latest = np.searchsorted(trace.start_ns[main], line.start_ns, side="right") - 1
    step = np.append(trace.step[main], -1)[latest]  # latest -1: before the first span
    ref = np.where(line.message >= 0, line.message + offset, -1)
    new = np.zeros(len(ref), dtype=bool)
    new[:1] = True
    for column in (line.kind, step, ref):
        new[1:] |= np.diff(column) != 0
    return Strip(
        rank=trace.rank,
        row=-1,
        start_ns=line.start_ns[new] - started_ns,
        kind=line.kind[new],
        step=step[new],
        ref=ref[new],
    )


def _joined(strips: Sequence[Strip], window_ns: int) -> Parts:
    """The parts of all lanes, one lane after the other."""

    def column(name: str) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *(getattr(strip, name) for strip in strips)])

    lengths = [np.diff(strip.start_ns, append=window_ns) for strip in strips]
    return Parts(
        lane=np.repeat(np.arange(len(strips)), [len(length) for length in lengths]),
        start_ns=column("start_ns"),
        length_ns=np.concatenate([np.zeros(0, np.int64), *lengths]),
        kind=column("kind"),
        step=column("step"),
        ref=column("ref"),
    )


def _referred(parts: Parts) -> tuple[Parts, np.ndarray]:
    """The parts with messages numbered anew, and the messages that are left: rows of those of all ranks."""
    whose = parts.ref >= 0
    left, number = np.unique(parts.ref[whose], return_inverse=True)
    ref = parts.ref.copy()
    ref[whose] = number
    columns = {name: getattr(parts, name) for name in Parts.__dataclass_fields__}
    return Parts(**{**columns, "ref": ref}), left


def _loop(sides: Sequence[tuple[RankTrace, Messages]], window: tuple[int, int], tick_ns: int) -> tuple[int, int]:
    """The stretch of the window in which ranks took steps, in ticks; all of it where none was seen."""
    begins, ends = [], []
    for trace, _ in sides:
        rows = finished_steps(trace)
        begins += [int(trace.start_ns[rows].min())] if len(rows) else []
        ends += [int(trace.end_ns[rows].max())] if len(rows) else []
    begin = max(min(begins, default=window[0]), window[0])
    end = min(max(ends, default=window[1]), window[1])
    return (
        ((begin - window[0]) // tick_ns, (end - window[0]) // tick_ns)
        if begin < end
        else (0, (window[1] - window[0]) // tick_ns)
    )


def _steps(trace: RankTrace) -> np.ndarray:
    """Instants at which a rank's steps begin, in order, and their numbers: two rows."""
    rows = np.flatnonzero(trace.kind == _STEP)
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    every = max(1, -(-len(rows) // _MOST_STEPS))
    return np.stack((trace.start_ns[rows], trace.step[rows].astype(np.int64)))[:, ::every]
