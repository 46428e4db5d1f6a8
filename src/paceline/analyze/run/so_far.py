"""The ledger of a running run, extended as its ranks flush their spans.

    flushed     step 1 │ step 2 │ ... │ step 40 │ step 41 │ step 42 ─       rank 0
                step 1 │ step 2 │ ... │ step 40 │ step 41 ─                 rank 1
    counted     ──────────────────────────────▶│ up to the last step but one that all ranks have flushed

A span is written when it ends, so the current activity of a rank is unknown: time is counted up to the last step but
one that is finished on every rank. Spans of counted steps are dropped, except for the last ones, which the next
extension needs. The cost of an extension therefore does not depend on the duration of the run. Without missing spans
the result equals the ledger of the whole run (analyze/run/ledger.py).
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
_PENDING_STEPS = 2
"""Steps before the last counted one whose spans stay in memory: ranks may still wait for their collectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialLedger:
    """The ledger of a run up to an instant."""

    ranks: int
    """Training ranks; servers may have traces, too."""
    started_at_ns: int
    """The launch, or the first span if that is unknown."""
    until_ns: int
    totals_ns: dict[int, dict[str, int]] = field(default_factory=dict)
    """By rank and kind."""
    undivided: frozenset[int] = frozenset()
    """Ranks with communication that is not divided."""
    step: int = -1
    """The last counted step, from 0; -1 before the first."""
    steps_per_s: float | None = None
    """In the last extension."""
    pending: tuple[RankTrace, ...] = ()
    """Spans that the next extension needs."""

    @property
    def ledgers_s(self) -> dict[int, dict[str, float | None]]:
        """Seconds by kind of every rank; the known kinds sum to the counted time."""
        return {rank: self._ledger_s(rank) for rank in self.totals_ns}

    def _ledger_s(self, rank: int) -> dict[str, float | None]:
        total = dict(self.totals_ns[rank])
        if rank in self.undivided:
            total["other"] += sum(total[kind] for kind in COMM_KINDS)
        unknown = COMM_KINDS if rank in self.undivided else ()
        return {kind: None if kind in unknown else seconds(total[kind]) for kind in LEDGER_KINDS}


def empty_ledger(ranks: int, started_at_ns: int | None) -> PartialLedger:
    """The ledger before the first step; without an instant of launch it begins at the first span."""
    start = -1 if started_at_ns is None else started_at_ns
    return PartialLedger(ranks=ranks, started_at_ns=start, until_ns=start)


def extended_ledger(before: PartialLedger, new: Sequence[RankTrace]) -> PartialLedger:
    """The ledger with newly flushed spans, which are in the order in which each rank wrote them."""
    pending = {trace.rank: trace for trace in before.pending}
    for trace in new:
        pending[trace.rank] = joined(pending[trace.rank], trace) if trace.rank in pending else trace
    traces = tuple(pending[rank] for rank in sorted(pending))
    training = [trace for trace in traces if trace.rank < before.ranks]
    counted = _last_common_step(training) - 1
    if len(training) < before.ranks or counted <= before.step:
        return replace(before, pending=traces)
    until_ns = min(_end_ns(trace, counted) for trace in training)
    first_ns = min(int(trace.start_ns.min()) for trace in training)
    # The offset between clocks of two hosts may exceed the duration of a launch.
    start_ns = before.until_ns if before.step >= 0 or before.until_ns in range(first_ns) else first_ns
    if until_ns <= start_ns:
        return replace(before, pending=traces)
    return _counted(replace(before, pending=traces), start_ns, until_ns, counted)


def _counted(before: PartialLedger, start_ns: int, until_ns: int, step: int) -> PartialLedger:
    """The ledger with one more interval, without the spans that are no longer needed."""
    totals, undivided = dict(before.totals_ns), set(before.undivided)
    for line in time_lines(before.pending, (start_ns, until_ns), ranks=before.ranks):
        own = ledger_ns(line)
        # A later interval without a message has nothing to divide.
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
        pending=tuple(without(trace, _past(trace, step)) for trace in before.pending),
    )


def _last_common_step(traces: Sequence[RankTrace]) -> int:
    """The last step that is finished on every rank; -1 if there is none."""
    return min((int(trace.step[_finished(trace)].max(initial=-1)) for trace in traces), default=-1)


def _end_ns(trace: RankTrace, step: int) -> int:
    """The end of a rank's step, or of the last step before it if it has none with that number."""
    rows = _finished(trace) & (trace.step <= step)
    return int(trace.end_ns[rows].max(initial=-1))


def _finished(trace: RankTrace) -> np.ndarray:
    return (trace.kind == _STEP) & (trace.end_ns >= 0)


def _past(trace: RankTrace, step: int) -> np.ndarray:
    """Spans of steps that are no longer needed; spans of groups are always needed, as they are written only once."""
    return (trace.step <= step - _PENDING_STEPS) & (trace.kind != _GROUP)
