"""Costs of one run in a comparison: times and ledgers of its timed steps, its messages and efficiencies.

    several runs    one cost per run       its timed epochs, or its steps after the first
    a single run    one cost per block     consecutive steps after the first, equally many in each block

Steps of one run are not independent. They are grouped into at most 20 blocks of four autocorrelation times, at least
five steps each. For simulated runs of 60 to 1,000 steps with correlations up to 0.95, two runs of the same kind differ
significantly in 3 to 7 of 100 cases, or have fewer than four blocks and are not tested.

A cost is a time and its ledger, mean over ranks. The time of epochs is from the first rank's first step to the last
rank's last; the time of a step is its span.
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
"""With fewer, the autocorrelation time is uncertain: all steps are one block, and no test is made."""
_SHORTEST_BLOCK = 5
_ALIKE_LENGTHS = 4
"""Autocorrelation times per block: blocks are then practically independent."""
QUEUED = "On a GPU a step is not divided yet."
UNDIVIDED = "Runs do not show the same collectives on all ranks: comm-wait and comm-transfer are in other."


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Time and ledger of some steps."""

    total_s: float
    steps: int
    samples: float | None
    """Over all ranks; None if unknown."""
    ledger_s: Mapping[str, float] | None
    """By kind, mean over ranks; sums to `total_s`. Without comm-wait and comm-transfer if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCosts:
    """The costs of one run."""

    name: str
    costs: tuple[Cost, ...]
    """One for the run or one per block of steps; empty without timed steps."""
    block_steps: int | None = None
    """Steps per block; None if the run is one cost."""
    steps: int = 0
    """Of the whole run."""
    accuracy: float | None = None
    efficiencies: Efficiencies | None = None
    messages: tuple[MessageKind, ...] = ()
    gap: str | None = None
    """What is missing from its spans, in a sentence."""
    problems: tuple[str, ...] = ()
    """Missing or damaged files, one sentence each."""


def costs_without_spans(result: RunResult, gap: str) -> RunCosts:
    """The costs of a run without spans, from its result."""
    throughput, epochs = samples_per_s(result), timed_from_step(result)
    steps, samples = sum(epoch.step - first for first, epoch in epochs), sum(epoch.samples for _, epoch in epochs)
    total_s = samples / throughput if throughput else sum(epoch.epoch_s for _, epoch in epochs)
    costs = (Cost(total_s=total_s, steps=steps, samples=samples or None, ledger_s=None),) if steps > 0 else ()
    return RunCosts(name=f"run {result.run}", costs=costs, steps=result.steps, accuracy=result.test_accuracy, gap=gap)


def run_costs(
    run: RunTrace, result: RunResult | None, *, by_step: bool = False, samples_per_step: float | None = None
) -> RunCosts:
    """The costs of a run from its spans, in blocks of steps if `by_step`, else as a whole.

    Without a result, for ranks that another program started, the timed steps are those after the first, with
    `samples_per_step` samples each.
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
    """A ledger with communication in `other`."""
    communicating_s = sum(ledger_s.get(kind, 0.0) for kind in COMM_KINDS)
    rest = {kind: value for kind, value in ledger_s.items() if kind not in COMM_KINDS}
    return rest | {"other": rest["other"] + communicating_s}


def _step_costs_ns(traces: Sequence[RankTrace], lines: Sequence[TimeLine]) -> np.ndarray:
    """Nanoseconds summed over ranks, one row per timed step and one column per kind."""
    steps = [finished_steps(trace) for trace in traces]
    common = min(map(len, steps))
    costs = np.zeros((common, len(LEDGER_KINDS)), np.int64)
    for trace, rows, line in zip(traces, steps, lines, strict=True):
        starts, ends = trace.start_ns[rows], trace.end_ns[rows]
        costs += (sums_until(line, ends[:common]) - sums_until(line, starts[:common])).astype(np.int64).T
    return costs[1:]  # the first step warms up


def _in_blocks(known: RunCosts, costs_ns: np.ndarray, ranks: int, samples_per_step: float | None) -> RunCosts:
    """The run with one cost per block of steps."""
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
    """Number of practically independent blocks; 1 if there are too few."""
    length = max(_SHORTEST_BLOCK, math.ceil(_ALIKE_LENGTHS * _alike_steps(totals_ns)))
    number = min(_MOST_BLOCKS, len(totals_ns) // length)
    return number if number >= _FEWEST_BLOCKS else 1


def _alike_steps(values: np.ndarray) -> float:
    """The integrated autocorrelation time in steps, at least 1; lags up to five times itself (A. Sokal, 1997)."""
    n = len(values)
    spectrum = np.fft.rfft(values - values.mean(), 2 * n)
    products = np.fft.irfft(np.abs(spectrum) ** 2)[:n] / np.arange(n, 0, -1)
    if products[0] <= 0:
        return 1.0
    times = 2 * np.cumsum(products / products[0]) - 1
    enough = np.flatnonzero(np.arange(n) >= 5 * times)
    return max(1.0, float(times[enough[0] if len(enough) else -1]))


def median_index(runs: Sequence[RunResult]) -> int:
    """Index of the run with the (lower) median throughput."""
    return sorted(range(len(runs)), key=lambda index: (samples_per_s(runs[index]) or 0.0, index))[(len(runs) - 1) // 2]
