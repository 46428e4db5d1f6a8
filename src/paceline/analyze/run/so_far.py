"""The ledger of a run that is still on: counted up piece by piece, as its ranks flush their spans.

    flushed     step 1 │ step 2 │ ... │ step 40 │ step 41 │ step 42 ─       rank 0
                step 1 │ step 2 │ ... │ step 40 │ step 41 ─                 rank 1
    counted     ──────────────────────────────▶│ until the last step but one that all ranks have flushed

A span is written when it ends, so what a rank does right now is not known yet: time is counted up to a step that is
over on every rank, with a step between it and what may be missing. Spans of steps that were counted are let go of, but
for the last ones, which the next piece begins in: a piece costs what was flushed since the one before, however long the
run has lasted. Where nothing is missing, the pieces sum to the ledger of the whole (analyze/run/ledger.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from paceline.analyze.run.ledger import ledger_ns, time_lines
from paceline.analyze.run.run_timeline import COMM_KINDS
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS, RankTrace
from paceline.records.trace_rows import joined, without
from paceline.units import seconds

_STEP, _GROUP = SPAN_KINDS.index("step"), SPAN_KINDS.index("group")
_KEPT_STEPS = 2
"""Before the last that was counted: collectives of these may still be waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialLedger:
    """What was counted of a run until an instant."""

    ranks: int
    """That train; servers may have traces besides."""
    started_at_ns: int
    """The launch; where that is not known, the first span."""
    until_ns: int
    totals_ns: dict[int, dict[str, int]] = field(default_factory=dict)
    """By rank and kind."""
    undivided: frozenset[int] = frozenset()
    """Ranks some of whose communication could not be divided."""
    step: int = -1
    """The last step that was counted, from 0 on; -1 before the first."""
    steps_per_s: float | None = None
    """In the last piece."""
    kept: tuple[RankTrace, ...] = ()

    @property
    def ledgers_s(self) -> dict[int, dict[str, float | None]]:
        """Seconds by kind of every rank; what is not None sums to the time that was counted."""
        return {rank: self._ledger_s(rank) for rank in self.totals_ns}

    def _ledger_s(self, rank: int) -> dict[str, float | None]:
        total = dict(self.totals_ns[rank])
        if rank in self.undivided:
            total["other"] += sum(total[kind] for kind in COMM_KINDS)
        unknown = COMM_KINDS if rank in self.undivided else ()
        return {kind: None if kind in unknown else seconds(total[kind]) for kind in LEDGER_KINDS}


def empty_ledger(ranks: int, started_at_ns: int | None) -> PartialLedger:
    """Of a run of which nothing was counted yet; without an instant it begins with its first span."""
    start = -1 if started_at_ns is None else started_at_ns
    return PartialLedger(ranks=ranks, started_at_ns=start, until_ns=start)


def extended_ledger(before: PartialLedger, new: Sequence[RankTrace]) -> PartialLedger:
    """The same with what was flushed since; spans of a rank are given in the order in which it wrote them."""
    kept = {trace.rank: trace for trace in before.kept}
    for trace in new:
        kept[trace.rank] = joined(kept[trace.rank], trace) if trace.rank in kept else trace
    traces = tuple(kept[rank] for rank in sorted(kept))
    training = [trace for trace in traces if trace.rank < before.ranks]
    counted = _last_common_step(training) - 1
    if len(training) < before.ranks or counted <= before.step:
        return replace(before, kept=traces)
    until_ns = min(_end_ns(trace, counted) for trace in training)
    first_ns = min(int(trace.start_ns.min()) for trace in training)
    # Clocks of two hosts may be off by more than a start takes.
    start_ns = before.until_ns if before.step >= 0 or before.until_ns in range(first_ns) else first_ns
    if until_ns <= start_ns:
        return replace(before, kept=traces)
    return _counted(replace(before, kept=traces), start_ns, until_ns, counted)


def _counted(before: PartialLedger, start_ns: int, until_ns: int, step: int) -> PartialLedger:
    """With one more piece, and without the spans that no later one needs."""
    totals, undivided = dict(before.totals_ns), set(before.undivided)
    for line in time_lines(before.kept, (start_ns, until_ns), ranks=before.ranks):
        own = ledger_ns(line)
        # A later piece without a message has nothing to divide.
        if not line.divided and (line.exposed.any() or before.step < 0):
            undivided.add(line.rank)
        known = totals.get(line.rank, dict.fromkeys(LEDGER_KINDS, 0))
        totals[line.rank] = {kind: known[kind] + (own[kind] or 0) for kind in LEDGER_KINDS}
    pace = (step - before.step) / seconds(until_ns - start_ns) if before.step >= 0 else None
    return replace(
        before,
        started_at_ns=before.started_at_ns if before.step >= 0 else start_ns,
        until_ns=until_ns,
        totals_ns=totals,
        undivided=frozenset(undivided),
        step=step,
        steps_per_s=pace,
        kept=tuple(without(trace, _past(trace, step)) for trace in before.kept),
    )


def _last_common_step(traces: Sequence[RankTrace]) -> int:
    """The last step that is over on every rank; -1 where there is none."""
    return min((int(trace.step[_over(trace)].max(initial=-1)) for trace in traces), default=-1)


def _end_ns(trace: RankTrace, step: int) -> int:
    """When a rank was done with a step, or with the last before it, where it has none of that number."""
    rows = _over(trace) & (trace.step <= step)
    return int(trace.end_ns[rows].max(initial=-1))


def _over(trace: RankTrace) -> np.ndarray:
    return (trace.kind == _STEP) & (trace.end_ns >= 0)


def _past(trace: RankTrace, step: int) -> np.ndarray:
    """Spans that lie in steps before those that are kept; who belongs to a group is said once and for all."""
    return (trace.step <= step - _KEPT_STEPS) & (trace.kind != _GROUP)
