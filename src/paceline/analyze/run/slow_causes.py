"""Causes of a slow run, by cost, each with its rank, ledger kind and lost time.

The timed steps of each rank are divided by step and ledger kind, spent[rank, kind, step]:

    cause                                                  lost time
    one rank, kinds of its own work                        its time − median of the other ranks in the same step, summed
                                                           over steps, so random differences cancel
    all ranks, kinds without work (input-wait,             time of the fastest rank in each step
      comm-transfer, checkpoint, other)
    all ranks, kinds of work (forward, backward,           excess over the typical step, in steps in which even the
      optimizer)                                           fastest rank takes 1.5 times as long as in a typical one; or,
                                                           with counters, time of every rank in the run queue

comm-wait is never a cause: ranks wait for a straggler, whose time is in its own kinds. The lost time of a straggler is
limited to the excess of its whole work over that of the others.

A run whose work is slow in all steps on all ranks shows no cause in its spans: this needs counters, or another run to
compare with.

Assumes: ranks have equal work in a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.analyze.run.arrivals import sums_until
from paceline.analyze.run.run_summary import RunAnalysis, run_analysis
from paceline.analyze.run.run_timeline import TRANSFER, WAIT, TimeLine, finished_steps
from paceline.records.counters import RankCounters
from paceline.records.rank_trace import LEDGER_KINDS, RankTrace
from paceline.records.slow_cause import SlowCause
from paceline.records.trace_summary import Exchange, MessageKind, RunTrace
from paceline.units import bytes_text, counted, duration_text, percent_text, seconds

MIN_SHARE = 0.01
"""Smallest reported lost time, as a fraction of the timed steps."""
TYPICAL = 25
"""Percentile of the typical step: not affected by a fault that lasts for most of a run."""
SLOWER = 1.5
"""Duration from which a step is slow, as a multiple of the typical step."""
SLOW_LINK = 0.5
"""Bandwidth below which a link is slow, as a fraction of the other links' median."""

_OTHER = LEDGER_KINDS.index("other")
_READY = "main_run_queue_wait_ns"
_OWN = [code for code in range(len(LEDGER_KINDS)) if code not in (WAIT, TRANSFER)]
_NO_WORK = [LEDGER_KINDS.index(kind) for kind in ("input-wait", "comm-transfer", "checkpoint", "other")]
_WORK = [LEDGER_KINDS.index(kind) for kind in ("forward", "backward", "optimizer")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The timed steps that are in the traces of all ranks."""

    ranks: tuple[int, ...]
    spent: np.ndarray
    """Nanoseconds by rank, kind and step."""
    start_ns: np.ndarray
    end_ns: np.ndarray
    """Start of the first and end of the last step, by rank."""
    divided: bool
    """Whether communication is divided; otherwise it is in `other`, which is then not analysed."""

    def kinds(self, codes: Sequence[int]) -> list[int]:
        """The kinds that can be analysed."""
        return [code for code in codes if self.divided or code != _OTHER]

    @property
    def only_rank(self) -> int | None:
        """The rank of a run with one rank."""
        return self.ranks[0] if len(self.ranks) == 1 else None

    @property
    def num_steps(self) -> int:
        return self.spent.shape[2]

    @property
    def window_ns(self) -> float:
        """Duration of all steps on the median rank."""
        return float(np.median(self.spent.sum(axis=(1, 2))))


def slow_causes(
    run: RunTrace, analysis: RunAnalysis | None = None, counters: Sequence[RankCounters] = ()
) -> tuple[SlowCause, ...]:
    """Causes of lost time, by cost; empty below two timed steps. Counters reveal time in the run queue."""
    found = analysis or run_analysis(run)
    traces = [trace for trace in run.traces if trace.rank < run.ranks]
    steps = _steps(traces, found.lines)
    if steps is None:
        return ()
    all_named = [
        *_of_one_rank(steps),
        *_of_all(steps, run, found),
        *_of_some_steps(steps),
        *_of_crowded_cores(steps, counters),
    ]
    named = sorted(all_named, key=lambda each: -each.lost_s)
    costliest: dict[tuple[int | None, str], SlowCause] = {}
    for each in named:
        if each.lost_s > MIN_SHARE * seconds(steps.window_ns):
            costliest.setdefault((each.rank, each.kind), each)
    return tuple(costliest.values())


def _steps(traces: Sequence[RankTrace], lines: Sequence[TimeLine]) -> _Steps | None:
    """The steps after the first that all ranks have finished, each up to the next; None below two."""
    begun = [_begun(trace) for trace in traces]
    if not begun:
        return None
    common = begun[0][0]
    for numbers, _, _ in begun[1:]:
        common = np.intersect1d(common, numbers)
    common = common[1:]  # the first warms up
    if len(common) < 2:
        return None
    spent, bounds = [], []
    for line, (numbers, starts, ends) in zip(lines, begun, strict=True):
        places = np.searchsorted(numbers, common)
        spent.append(sums_until(line, ends[places]) - sums_until(line, starts[places]))
        bounds.append((starts[places].min(), ends[places].max()))
    return _Steps(
        ranks=tuple(line.rank for line in lines),
        spent=np.maximum(np.stack(spent), 0.0),
        start_ns=np.array([start for start, _ in bounds]),
        end_ns=np.array([end for _, end in bounds]),
        divided=all(line.divided for line in lines),
    )


def _begun(trace: RankTrace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of a rank's finished steps, their starts, and the starts of the next ones (the end of the last)."""
    rows = finished_steps(trace)
    starts = trace.start_ns[rows]
    ends = np.append(starts[1:], trace.end_ns[rows[-1:]])
    numbers, first = np.unique(trace.step[rows], return_index=True)
    return numbers, starts[first], np.maximum(ends[first], starts[first])


def _of_one_rank(steps: _Steps) -> Iterator[SlowCause]:
    """Ranks that spent more time on their own work than the others."""
    if len(steps.ranks) < 2:
        return
    kinds = steps.kinds(_OWN)
    others = _others_median(steps.spent)
    own = steps.spent[:, kinds].sum(axis=1)
    late = (own - _others_median(own)).sum(axis=1)
    longer = np.maximum((steps.spent - others).sum(axis=2)[:, kinds], 0.0)
    limit = np.clip(late / np.maximum(longer.sum(axis=1), 1.0), 0.0, 1.0)
    for number, rank in enumerate(steps.ranks):
        for place, kind in enumerate(kinds):
            lost_ns = longer[number, place] * limit[number]
            if lost_ns <= 0:
                continue
            mine, theirs = steps.spent[number, kind].sum(), others[number, kind].sum()
            yield SlowCause(
                rank=rank,
                kind=LEDGER_KINDS[kind],
                lost_s=seconds(float(lost_ns)),
                why=f"Rank {rank} spent {_time(mine)} in {LEDGER_KINDS[kind]} over "
                f"{counted(steps.num_steps, 'step')}, the others {_time(theirs)} in the median: they waited for it.",
            )


def _of_all(steps: _Steps, run: RunTrace, found: RunAnalysis) -> Iterator[SlowCause]:
    """Time that even the fastest rank of each step spent without work."""
    only_rank = steps.only_rank
    for kind in steps.kinds(_NO_WORK):
        least = steps.spent[:, kind].min(axis=0)
        if kind == TRANSFER:
            # The end of a wait is an instant on another rank's clock.
            least = np.maximum(least - run.clock_error_ns, 0.0)
        lost_ns = float(least.sum())
        if lost_ns <= 0:
            continue
        name = LEDGER_KINDS[kind]
        share = percent_text(lost_ns / steps.window_ns if steps.window_ns else 0.0, 0)
        over = f"over {counted(steps.num_steps, 'step')}"
        why = f"Every rank spent at least {_time(lost_ns)} in {name} {over}: {share} of them."
        rank = only_rank
        if kind == TRANSFER:
            why += _speed(found.summary.messages)
            rank = only_rank if only_rank is not None else slow_link(found.summary.matrix)
        yield SlowCause(rank=rank, kind=name, lost_s=seconds(lost_ns), why=why)


def _of_some_steps(steps: _Steps) -> Iterator[SlowCause]:
    """Time that even the fastest rank took longer for its work in slow steps than in a typical step."""
    for kind in _WORK:
        least = steps.spent[:, kind].min(axis=0)
        typical = float(np.percentile(least, TYPICAL))
        slow = least > SLOWER * typical
        lost_ns = float((least[slow] - typical).sum())
        if lost_ns <= 0:
            continue
        yield SlowCause(
            rank=steps.only_rank,
            kind=LEDGER_KINDS[kind],
            lost_s=seconds(lost_ns),
            why=f"In {slow.sum()} of {counted(steps.num_steps, 'step')} even the fastest rank took "
            f"{_time(float(np.median(least[slow])))} for {LEDGER_KINDS[kind]}; a typical step takes {_time(typical)}.",
        )


def _of_crowded_cores(steps: _Steps, counters: Sequence[RankCounters]) -> Iterator[SlowCause]:
    """Time of every rank's main thread in the run queue, charged to the kind of work that takes longest."""
    waited = {each.rank: each for each in counters if len(each) > 1 and each.values[_READY].min() >= 0}
    if not all(rank in waited for rank in steps.ranks):
        return
    ready = []
    for rank, start, end in zip(steps.ranks, steps.start_ns, steps.end_ns, strict=True):
        at = waited[rank].at_ns - start
        bounds = np.interp((0, end - start), at, waited[rank].values[_READY])
        ready.append(bounds[1] - bounds[0])
    kind = max(_WORK, key=lambda code: float(steps.spent[:, code].sum()))
    yield SlowCause(
        rank=steps.only_rank,
        kind=LEDGER_KINDS[kind],
        lost_s=seconds(float(min(ready))),
        why=f"Every rank was ready to run and had no core for at least {_time(float(min(ready)))} over "
        f"{counted(steps.num_steps, 'step')}: other processes used its core. Its longest work is {LEDGER_KINDS[kind]}.",
    )


def slow_link(matrix: Sequence[Exchange]) -> int | None:
    """The rank whose point-to-point messages are much slower than those between the other ranks; None if none is."""
    rates = {
        (cell.source, cell.target): cell.payload_bytes / cell.seconds
        for cell in matrix
        if not cell.estimated and cell.seconds and cell.payload_bytes
    }
    slowest: tuple[float, int] | None = None
    for rank in {end for pair in rates for end in pair}:
        own = [rate for pair, rate in rates.items() if rank in pair]
        rest = [rate for pair, rate in rates.items() if rank not in pair]
        if rest and max(own) < SLOW_LINK * float(np.median(rest)):
            slowest = min(slowest or (np.inf, -1), (max(own), rank))
    return None if slowest is None else slowest[1]


def _others_median(values: np.ndarray) -> np.ndarray:
    """For every rank (first axis) the median over all other ranks, from one sort."""
    ranks = len(values)
    order = np.argsort(values, axis=0, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(ranks).reshape(-1, *(1,) * (values.ndim - 1)), axis=0)
    in_order = np.take_along_axis(values, order, axis=0)
    # Without the value at `place`, all later values move down by one.
    middle = [np.take_along_axis(in_order, at + (at >= place), axis=0) for at in ((ranks - 2) // 2, (ranks - 1) // 2)]
    return (middle[0] + middle[1]) / 2


def _speed(messages: Sequence[MessageKind]) -> str:
    """A sentence: bandwidth of the messages with the most bytes."""
    if not messages or messages[0].bus_bytes_per_s is None:
        return ""
    most = messages[0]
    return f" {most.operation} of {bytes_text(most.payload_bytes)} went at {bytes_text(most.bus_bytes_per_s)}/s."


def _time(ns: float) -> str:
    return duration_text(seconds(ns)) if ns > 0 else "no time"
