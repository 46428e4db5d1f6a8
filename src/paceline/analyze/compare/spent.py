"""What the timed steps of one run cost, and what its messages and efficiencies were: one run's part of a comparison.

    of several runs    one cost a run       its timed epochs, or its steps after the first
    of a single run    one cost a block     consecutive steps after the first, as many in each block

Steps of one run are not independent: a noisy moment lasts for several. So they are taken together in blocks of four
times the length over which steps are alike, their autocorrelation time, and of five at least; 20 blocks at most. Of
simulated runs of 60 to 1,000 steps, independent ones and others that are correlated by up to 0.95 from one to the next,
two of the same kind are then called different in 3 to 7 of 100 cases, or left untested for want of four blocks.

A cost is a time and its division by kind of the ledger, mean over ranks. Over epochs the time is that from the first
rank's first step to the last rank's last; of a step, that of its span.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.analyze.points.losses import loop_windows
from paceline.analyze.points.timing import samples_per_s, timed_from_step
from paceline.analyze.run.arrivals import sums_until
from paceline.analyze.run.efficiencies import efficiencies
from paceline.analyze.run.ledger import ledger_ns
from paceline.analyze.run.run_summary import RunAnalysis, num_steps, run_analysis
from paceline.analyze.run.run_timeline import COMM_KINDS, TimeLine, finished_steps
from paceline.records.rank_trace import LEDGER_KINDS, RankTrace
from paceline.records.run import RunResult
from paceline.records.trace_summary import Efficiencies, MessageKind, RunTrace
from paceline.units import seconds

_MOST_BLOCKS = 20
_FEWEST_BLOCKS = 4
"""With fewer the autocorrelation time itself is a guess: they are one block, which no test can be made of."""
_SHORTEST_BLOCK = 5
_ALIKE_LENGTHS = 4
"""Blocks of so many autocorrelation times are as good as independent."""
QUEUED = "On a GPU a step is not divided yet."
UNDIVIDED = "Runs do not show the same collectives on all ranks: comm-wait and comm-transfer are in other."


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a stretch of training cost."""

    total_s: float
    steps: int
    samples: float | None
    """Over all ranks; None where nobody counted them."""
    ledger_s: Mapping[str, float] | None
    """By kind, mean over ranks: sums to `total_s`. Without comm-wait and comm-transfer where they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCosts:
    """One run, as far as it can be compared with another."""

    name: str
    costs: tuple[Cost, ...]
    """One for the run, or one for each block of its steps; none where it has no time that counts."""
    block_steps: int | None = None
    """Steps in each block; None where the run is one cost."""
    steps: int = 0
    """Of the whole run."""
    accuracy: float | None = None
    efficiencies: Efficiencies | None = None
    messages: tuple[MessageKind, ...] = ()
    gap: str | None = None
    """What its spans do not show, in a sentence."""
    problems: tuple[str, ...] = ()
    """What of its files is missing or damaged, a sentence each."""


def costs_without_spans(result: RunResult, gap: str) -> RunCosts:
    """A run of which only the result is known."""
    throughput, epochs = samples_per_s(result), timed_from_step(result)
    steps, samples = sum(epoch.step - first for first, epoch in epochs), sum(epoch.samples for _, epoch in epochs)
    total_s = samples / throughput if throughput else sum(epoch.epoch_s for _, epoch in epochs)
    costs = (Cost(total_s=total_s, steps=steps, samples=samples or None, ledger_s=None),) if steps > 0 else ()
    return RunCosts(name=f"run {result.run}", costs=costs, steps=result.steps, accuracy=result.test_accuracy, gap=gap)


def run_costs(
    run: RunTrace, result: RunResult | None, *, by_step: bool = False, samples_per_step: float | None = None
) -> RunCosts:
    """What a run spent, from its spans; in blocks of steps where `by_step`, else as a whole.

    Without a result, as of ranks that another program started, its timed steps are those after the first, and their
    samples what the ranks say.
    """
    training = [trace for trace in run.traces if trace.rank < run.ranks]
    if len(training) < run.ranks or not training:
        gap = f"{run.name} has the spans of {len(training)} of its {run.ranks} ranks."
        return costs_without_spans(result, gap) if result else RunCosts(name=run.name, costs=(), gap=gap)
    epochs = timed_from_step(result) if result else []
    windows = loop_windows(training, epochs) if epochs else None
    analysis, taken = run_analysis(run, windows), num_steps(training)
    known = RunCosts(
        name=run.name,
        costs=(),
        steps=taken or (result.steps if result else 0),
        accuracy=result.test_accuracy if result else None,
        efficiencies=efficiencies(analysis.work, 0) if analysis.work else None,
        messages=analysis.summary.messages,
        gap=None if all(line.divided for line in analysis.lines) else UNDIVIDED,
        problems=run.problems,
    )
    steps = sum(epoch.step - first for first, epoch in epochs) if windows else taken - 1
    samples = sum(epoch.samples for _, epoch in epochs) if windows else (samples_per_step or 0) * steps
    if run.device == "cuda":
        known = replace(known, efficiencies=None, gap=QUEUED)
        if result is not None and not by_step:
            return replace(costs_without_spans(result, QUEUED), name=run.name)
    if by_step:
        per_step = samples / steps if samples and steps else None
        return _in_blocks(known, _step_costs_ns(training, analysis.lines), run.ranks, per_step)
    if not analysis.windows or len(analysis.windows) < len(windows or ()) or steps < 1:
        return costs_without_spans(result, f"{run.name} shows no timed steps.") if result else known
    cost = Cost(
        total_s=seconds(sum(end - start for start, end in analysis.windows)),
        steps=steps,
        samples=samples or None,
        ledger_s=_ledger_s(analysis),
    )
    return replace(known, costs=(cost,))


def _ledger_s(analysis: RunAnalysis) -> dict[str, float]:
    """Seconds by kind in the windows, mean over ranks."""
    lines = analysis.lines
    parts = [ledger_ns(line, line.during(*window)) for line in lines for window in analysis.windows]
    ledger_s = {kind: seconds(sum(part[kind] or 0 for part in parts)) / len(lines) for kind in LEDGER_KINDS}
    return ledger_s if all(line.divided for line in lines) else undivided(ledger_s)


def undivided(ledger_s: Mapping[str, float]) -> dict[str, float]:
    """The same with communication in `other`."""
    communicating_s = sum(ledger_s.get(kind, 0.0) for kind in COMM_KINDS)
    rest = {kind: value for kind, value in ledger_s.items() if kind not in COMM_KINDS}
    return rest | {"other": rest["other"] + communicating_s}


def _step_costs_ns(traces: Sequence[RankTrace], lines: Sequence[TimeLine]) -> np.ndarray:
    """Nanoseconds of every timed step by kind, summed over ranks: a row a step, a column a kind."""
    steps = [finished_steps(trace) for trace in traces]
    common = min(map(len, steps))
    costs = np.zeros((common, len(LEDGER_KINDS)), np.int64)
    for trace, rows, line in zip(traces, steps, lines, strict=True):
        starts, ends = trace.start_ns[rows], trace.end_ns[rows]
        costs += (sums_until(line, ends[:common]) - sums_until(line, starts[:common])).astype(np.int64).T
    return costs[1:]  # the first step warms up


def _in_blocks(known: RunCosts, costs_ns: np.ndarray, ranks: int, samples_per_step: float | None) -> RunCosts:
    """A run with a cost for each block of its steps."""
    if not len(costs_ns):
        return known
    num_blocks = _num_blocks(costs_ns.sum(axis=1))
    length = len(costs_ns) // num_blocks
    blocks = costs_ns[len(costs_ns) - num_blocks * length :].reshape(num_blocks, length, -1).sum(axis=1)
    costs = []
    for block in blocks:
        ledger_s = {kind: seconds(int(ns)) / ranks for kind, ns in zip(LEDGER_KINDS, block, strict=True)}
        if known.gap is not None:
            ledger_s = undivided(ledger_s)
        costs.append(
            Cost(
                total_s=seconds(int(block.sum())) / ranks,
                steps=length,
                samples=None if samples_per_step is None else samples_per_step * length,
                ledger_s=None if known.gap == QUEUED else ledger_s,
            )
        )
    return replace(known, costs=tuple(costs), block_steps=length)


def _num_blocks(totals_ns: np.ndarray) -> int:
    """Into how many blocks to cut so many steps that they are as good as independent."""
    length = max(_SHORTEST_BLOCK, math.ceil(_ALIKE_LENGTHS * _alike_steps(totals_ns)))
    number = min(_MOST_BLOCKS, len(totals_ns) // length)
    return number if number >= _FEWEST_BLOCKS else 1


def _alike_steps(values: np.ndarray) -> float:
    """The integrated autocorrelation time: by so many steps one is worth less than independent ones; 1 where they are.

    Lags are summed up to five times the sum itself (A. Sokal, 1997): beyond that there is only noise.
    """
    n = len(values)
    spectrum = np.fft.rfft(values - values.mean(), 2 * n)
    products = np.fft.irfft(np.abs(spectrum) ** 2)[:n] / np.arange(n, 0, -1)
    if products[0] <= 0:
        return 1.0
    times = 2 * np.cumsum(products / products[0]) - 1
    enough = np.flatnonzero(np.arange(n) >= 5 * times)
    return max(1.0, float(times[enough[0] if len(enough) else -1]))


def median_index(runs: Sequence[RunResult]) -> int:
    """Which of several runs has the lower median throughput, by position."""
    return sorted(range(len(runs)), key=lambda index: (samples_per_s(runs[index]) or 0.0, index))[(len(runs) - 1) // 2]
