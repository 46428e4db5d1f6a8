"""Stragglers: the last rank of each collective, how often, by how much, and in which activity.

The lateness of a collective is the difference between its last two issues; it counts if it exceeds the clock error.
The activity of the straggler: the ledger kinds in which it spent more than the median of the other ranks since its
previous collective.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paceline.analyze.run.messages import UNKNOWN, Messages
from paceline.analyze.run.run_timeline import TRANSFER, WAIT, TimeLine
from paceline.records.rank_trace import LEDGER_KINDS, RankTrace
from paceline.records.trace_summary import Arrivals
from paceline.units import seconds

_OWN_KINDS = np.array([code for code in range(len(LEDGER_KINDS)) if code not in (WAIT, TRANSFER)])


def arrivals(
    traces: Sequence[RankTrace],
    lines: Sequence[TimeLine],
    found: Sequence[Messages],
    windows: Sequence[tuple[int, int]],
    *,
    error_ns: int = 0,
) -> tuple[Arrivals, ...]:
    """One record per rank, over the collectives that were gathered in the windows."""
    chosen = [_collectives(trace, own, windows) for trace, own in zip(traces, found, strict=True)]
    rank = np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen])
    key = np.concatenate([own.key[rows] for own, rows in zip(found, chosen, strict=True)])
    issued = np.concatenate([own.issued_ns[rows] for own, rows in zip(found, chosen, strict=True)])
    order = np.lexsort((issued, key))
    rank, key, issued = rank[order], key[order], issued[order]
    tails = np.flatnonzero(np.diff(key, append=-2))
    sizes = np.diff(tails, prepend=-1)
    tails, sizes = tails[sizes > 1], sizes[sizes > 1]
    late_ns = issued[tails] - issued[tails - 1]
    is_late = late_ns > error_ns
    last, late_keys, late_ns, sizes = rank[tails][is_late], key[tails][is_late], late_ns[is_late], sizes[is_late]
    excess = _excess(lines, found, chosen, late_keys, last)
    return tuple(
        _record(line.rank, late_ns[last == number], sizes[last == number], len(rows), excess[:, last == number])
        for number, (line, rows) in enumerate(zip(lines, chosen, strict=True))
    )


def _record(rank: int, late_ns: np.ndarray, sizes: np.ndarray, of: int, excess: np.ndarray) -> Arrivals:
    by_kind = excess.sum(axis=1)
    whole = by_kind.sum()
    doing = (
        {LEDGER_KINDS[k]: float(by_kind[k] / whole) for k in np.argsort(-by_kind) if by_kind[k] > 0} if whole else {}
    )
    return Arrivals(
        rank=rank,
        last=len(late_ns),
        of=of,
        late_s=seconds(float(np.median(late_ns))) if len(late_ns) else None,
        caused_wait_s=seconds(int((late_ns * (sizes - 1)).sum())),
        doing=doing,
    )


def _collectives(trace: RankTrace, own: Messages, windows: Sequence[tuple[int, int]]) -> np.ndarray:
    """Rows of the collectives that are in the traces of all their ranks and were gathered in one of the windows."""
    within = np.zeros(len(own), dtype=bool)
    for start, end in windows:
        within |= (own.gathered_ns >= start) & (own.gathered_ns < end)
    return np.flatnonzero(within & (own.key >= 0) & (own.gathered_ns != UNKNOWN) & (trace.sequence[own.row] >= 0))


def _excess(
    lines: Sequence[TimeLine],
    found: Sequence[Messages],
    chosen: Sequence[np.ndarray],
    keys: np.ndarray,
    last: np.ndarray,
) -> np.ndarray:
    """Nanoseconds by kind and late collective: time of the straggler − median of the other ranks, at least 0."""
    spent = np.full((len(lines), len(LEDGER_KINDS), len(keys)), np.nan)
    for number, (line, own, rows) in enumerate(zip(lines, found, chosen, strict=True)):
        if not len(rows):
            continue
        by_issue = rows[np.argsort(own.key[rows], kind="stable")]
        places = np.minimum(np.searchsorted(own.key[by_issue], keys), len(by_issue) - 1)
        mine = own.key[by_issue[places]] == keys
        at = by_issue[places[mine]]
        before = np.where(at > 0, own.issued_ns[at - 1], line.start_ns[0] if len(line.start_ns) else 0)
        spent[number][:, mine] = sums_until(line, own.issued_ns[at]) - sums_until(line, before)
    own_time = np.take_along_axis(spent, last[None, None, :].repeat(len(LEDGER_KINDS), axis=1), axis=0)[0]
    np.put_along_axis(spent, last[None, None, :].repeat(len(LEDGER_KINDS), axis=1), np.nan, axis=0)
    excess = np.zeros((len(LEDGER_KINDS), len(keys)))
    if len(keys):
        excess[_OWN_KINDS] = np.maximum(own_time - np.nanmedian(spent, axis=0), 0.0)[_OWN_KINDS]
    return excess


def sums_until(line: TimeLine, instants: np.ndarray) -> np.ndarray:
    """Nanoseconds by kind from the start of a timeline to each of the instants, which are starts of segments."""
    places = np.searchsorted(line.start_ns, instants)
    sums = np.zeros((len(LEDGER_KINDS), len(instants)))
    for kind in np.unique(line.kind):
        passed = np.append(0, np.cumsum(np.where(line.kind == kind, line.length_ns, 0)))
        sums[kind] = passed[places]
    return sums
