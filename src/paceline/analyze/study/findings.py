"""Findings: what a reader of the results has to know, each with its figures, cause and remedy.

A finding is a function from what was measured to a Finding, or to None where the data do not show
it. A new one is a function here and a line in FINDINGS, the order in which they are shown. Those from
what the ranks were given are in `findings_given.py`, those about learning in `findings_learning.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paceline.analyze.study.findings_given import asked_for_against_given, emulated_hosts
from paceline.analyze.study.findings_learning import accuracy_falls, dead_network, diverged, overfitting
from paceline.analyze.study.findings_noise import batch_beyond_noise, schedule_unfinished
from paceline.analyze.study.stats import FEWEST_FOR_INTERVAL
from paceline.records.finding import Finding
from paceline.records.learning import Lesson
from paceline.records.results import Interval, PointResult
from paceline.records.run import Epoch, Machine, RunResult
from paceline.units import counted, duration_text, number_text, percent_text

NOISY = 0.10
"""Interval width over median: beyond it, points that differ by a tenth cannot be told apart."""
SHORT_S = 0.5
"""A timed epoch below this is within reach of a scheduler's hiccup."""
SUPERLINEAR = 1.05
"""Efficiency above 1 by more than a machine's usual drift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All that findings may look at."""

    rows: tuple[PointResult, ...]
    runs: Mapping[str, tuple[RunResult, ...]]
    """Finished runs by point."""
    timed: Mapping[tuple[str, int], tuple[Epoch, ...]]
    """The epochs that times come from, by point and number of the run."""
    baseline: str | None
    machines: tuple[Machine, ...]
    """Of the single runs, in any order."""
    commits: tuple[str, ...]
    expected_runs: int
    gaps: Mapping[str, str]
    """What is missing from the ledger of a point, in a sentence."""
    lesson: Lesson = Lesson()
    one_at_a_time: bool = False
    """Whether every point has one setting of its own: what that does is in a table then."""

    @property
    def all_runs(self) -> tuple[RunResult, ...]:
        return tuple(run for own in self.runs.values() for run in own)


def findings(measured: Measured) -> tuple[Finding, ...]:
    """Whatever of FINDINGS the data show."""
    return tuple(found for finding in FINDINGS if (found := finding(measured)) is not None)


def missing_runs(measured: Measured) -> Finding | None:
    """Fewer runs than the study asks for, or points that failed."""
    finished = len(measured.all_runs)
    failed = [row for row in measured.rows if row.failure]
    if finished >= measured.expected_runs and not failed:
        return None
    reasons = [f"{row.label}: {row.failure.splitlines()[0]}" for row in failed if row.failure]
    stopped = f" and {len(failed)} of {counted(len(measured.rows), 'point')} failed" if failed else ""
    return Finding(
        name="missing-runs",
        severity="error" if failed else "warning",
        summary=f"{finished} of {measured.expected_runs} runs are finished{stopped}: the results are partial.",
        cause=" ".join(reasons) or "The study is still running, or was stopped before its end.",
        remedy="Run the same command again: it continues with the missing runs.",
        points=_ids(failed),
    )


def baseline_missing(measured: Measured) -> Finding | None:
    """Speed-ups against another point than the one with the fewest ranks."""
    chosen = next((row for row in measured.rows if row.point_id == measured.baseline), None)
    if chosen is None:
        return None
    alike = [row for row in measured.rows if row.baseline == chosen.point_id]
    wanted = min(alike, key=lambda row: row.ranks_and_servers)
    if wanted.ranks_and_servers == chosen.ranks_and_servers:
        return None
    return Finding(
        name="baseline-missing",
        severity="warning",
        summary=f"Speed-ups are against {chosen.label}: {wanted.label} was not timed.",
        cause="The point with the fewest ranks has no finished run with a time.",
        remedy="Run the study again to fill it in; until then compare these speed-ups with nothing else.",
        points=_ids((wanted, chosen)),
    )


def more_ranks_than_cores(measured: Measured) -> Finding | None:
    """Points whose ranks had to share cores."""
    shared = [row for row in measured.rows if row.oversubscribed]
    if not shared:
        return None
    cores = max((machine.cores for machine in measured.machines), default=None)
    where = f" on {counted(cores, 'core')}" if cores else ""
    asked = ", ".join(f"{row.label} of {counted(row.point.threads, 'thread')}" for row in shared)
    return Finding(
        name="more-ranks-than-cores",
        severity="warning",
        summary=f"Ranks share cores{where}: {asked}.",
        cause="Threads that take turns on one core measure the machine's limit, not how the training scales.",
        remedy="Leave these points out of any claim about scaling, or measure them on a machine with enough cores.",
        points=_ids(shared),
    )


def ranks_share_physical_cores(measured: Measured) -> Finding | None:
    """Points with a hyper-thread for every thread, but not a core."""
    cores = max((machine.cores for machine in measured.machines), default=0)
    shared = [row for row in measured.rows if row.runs and not row.oversubscribed and _threads(row) > cores > 0]
    if not shared:
        return None
    asked = ", ".join(f"{row.label} of {counted(row.point.threads, 'thread')}" for row in shared)
    return Finding(
        name="ranks-share-physical-cores",
        severity="warning",
        summary=f"Hyper-threads of {counted(cores, 'core')} carry {asked}.",
        cause="Two hyper-threads share one core's arithmetic: together they are far from twice as fast.",
        remedy="Read the efficiency of these points as that of hyper-threads, or stay within the physical cores.",
        points=_ids(shared),
    )


def superlinear(measured: Measured) -> Finding | None:
    """Efficiencies that are above 1 beyond their interval."""
    measured_often = [row for row in measured.rows if row.efficiency and row.efficiency.coverage is not None]
    above = [row for row in measured_often if row.efficiency and row.efficiency.low > SUPERLINEAR]
    if not above:
        return None
    shown = ", ".join(f"{row.label}: {_interval_text(row.efficiency)}" for row in above if row.efficiency)
    return Finding(
        name="superlinear",
        severity="warning",
        summary=f"Efficiency is above {SUPERLINEAR} with its whole interval ({shown}).",
        cause="More often a slow baseline than a fast point: a disturbed run, cold caches, a smaller share per rank "
        "that fits a cache.",
        remedy="Distrust the baseline: measure it again on an idle machine before quoting these speed-ups.",
        points=_ids(above),
    )


def mixed_environment(measured: Measured) -> Finding | None:
    """Runs of one study on different machines, versions or commits."""
    facts: dict[str, Counter[str]] = {}
    for machine in measured.machines:
        for name, value in _environment(machine).items():
            facts.setdefault(name, Counter())[value] += 1
    facts["commit"] = Counter(commit[:10] for commit in measured.commits)
    mixed = {name: counter for name, counter in facts.items() if len(counter) > 1}
    if not mixed:
        return None
    shown = "; ".join(
        f"{name}: " + ", ".join(f"{value} ({counted(count, 'run')})" for value, count in counter.most_common())
        for name, counter in mixed.items()
    )
    return Finding(
        name="mixed-environment",
        severity="warning",
        summary=f"Not all runs saw the same environment. {shown}.",
        cause="The study was continued on another machine or after an update: differences between points may be "
        "differences between environments.",
        remedy="Measure all runs in one environment: the same command with --fresh.",
    )


def noisy_machine(measured: Measured) -> Finding | None:
    """Points whose times vary by more than a tenth."""
    widths = {row.point_id: (row, width) for row in measured.rows if (width := _relative_width(row)) > NOISY}
    if not widths:
        return None
    worst, width = max(widths.values(), key=lambda pair: pair[1])
    return Finding(
        name="noisy-machine",
        severity="warning",
        summary=f"Times vary by more than {percent_text(NOISY, 0)} between runs at {len(widths)} of "
        f"{counted(len(measured.rows), 'point')}; most with {worst.label}, where the interval is "
        f"{percent_text(width, 0)} of the median wide.",
        cause="Something else ran on the machine, its clock frequency changed, or ranks were moved between cores.",
        remedy="Close other programs and repeat more often: --repeats 9.",
        points=tuple(widths),
    )


def few_repeats(measured: Measured) -> Finding | None:
    """Points with fewer than five runs: their intervals are ranges."""
    few = [row for row in measured.rows if 0 < row.runs < FEWEST_FOR_INTERVAL]
    if not few:
        return None
    fewest = min(row.runs for row in few)
    return Finding(
        name="few-repeats",
        severity="warning" if fewest < 3 else "info",
        summary=f"There are fewer than {FEWEST_FOR_INTERVAL} runs at {len(few)} of "
        f"{counted(len(measured.rows), 'point')} (the fewest: {fewest}): what stands beside their figures is the "
        "range, not a confidence interval.",
        cause="With so few runs no interval contains the true median with a confidence worth the name.",
        remedy=f"Repeat more often: --repeats {FEWEST_FOR_INTERVAL} adds the missing runs and keeps the finished ones.",
        points=_ids(few),
    )


def small_timed_part(measured: Measured) -> Finding | None:
    """Points whose timed epochs are very short."""
    shortest: dict[str, float] = {}
    for (point_id, _), epochs in measured.timed.items():
        for epoch in epochs:
            shortest[point_id] = min(epoch.epoch_s, shortest.get(point_id, math.inf))
    short = {point_id: value for point_id, value in shortest.items() if value < SHORT_S}
    if not short:
        return None
    scripts = all(row.point.script for row in measured.rows if row.point_id in short)
    part, longer = ("series of timed steps", "one") if scripts else ("timed epoch", "epoch")
    return Finding(
        name="small-timed-part",
        severity="info",
        summary=f"The shortest {part} took {duration_text(min(short.values()))}, less than {duration_text(SHORT_S)}.",
        cause="At this length a single interruption by the operating system shows in the figures.",
        remedy=f"Train on more samples: a longer {longer} averages over such interruptions.",
        points=tuple(short),
    )


def warm_up_in_times(measured: Measured) -> Finding | None:
    """Points timed by the first epoch of their runs, because there was no other."""
    ids = {point_id for (point_id, _), epochs in measured.timed.items() if any(epoch.epoch == 1 for epoch in epochs)}
    cold = [row for row in measured.rows if row.point_id in ids]
    if not cold:
        return None
    return Finding(
        name="warm-up-in-times",
        severity="info",
        summary=f"The first epoch of each run is in the times of {len(cold)} of "
        f"{counted(len(measured.rows), 'point')}.",
        cause="The first epoch also pays for allocation, first use of kernels and cold caches; there was no other "
        "complete one.",
        remedy="Train for at least two epochs: the first is then left out.",
        points=_ids(cold),
    )


def resumed_runs(measured: Measured) -> Finding | None:
    """Runs that continued from a checkpoint."""
    resumed = [run for run in measured.all_runs if run.resumed_from_step is not None]
    if not resumed:
        return None
    ranks = {row.point_id: row.label for row in measured.rows}
    shown = "; ".join(
        f"run {run.run} with {ranks[run.point_id]} at step {run.resumed_from_step}"
        + (f" ({run.resume_note})" if run.resume_note else "")
        for run in resumed
    )
    return Finding(
        name="resumed-runs",
        severity="warning" if any(run.resume_note for run in resumed) else "info",
        summary=f"{len(resumed)} of {counted(len(measured.all_runs), 'run')} continued from a checkpoint: {shown}.",
        cause="They were interrupted: their total times are unknown and left out, and so are their interrupted epochs "
        "where there are others.",
        remedy="Nothing to do for accuracy; for undisturbed times run the study with --fresh.",
        points=tuple(dict.fromkeys(run.point_id for run in resumed)),
    )


def incomplete_ledger(measured: Measured) -> Finding | None:
    """Points for which it is not, or not fully, known where the time went."""
    if not measured.gaps:
        return None
    return Finding(
        name="incomplete-ledger",
        severity="warning",
        summary=f"Where the time went is not fully known for {len(measured.gaps)} of "
        f"{counted(len(measured.rows), 'point')}. {' '.join(measured.gaps.values())}",
        cause="Spans were lost or damaged, so that communication cannot be divided or no ledger be made.",
        remedy="Times and accuracies are not touched by this. For a whole ledger run the study with --fresh.",
        points=tuple(measured.gaps),
    )


FINDINGS = (
    missing_runs,
    baseline_missing,
    diverged,
    dead_network,
    accuracy_falls,
    schedule_unfinished,
    asked_for_against_given,
    more_ranks_than_cores,
    ranks_share_physical_cores,
    emulated_hosts,
    superlinear,
    mixed_environment,
    noisy_machine,
    few_repeats,
    small_timed_part,
    warm_up_in_times,
    resumed_runs,
    overfitting,
    batch_beyond_noise,
    incomplete_ledger,
)


def _environment(machine: Machine) -> dict[str, str]:
    """What should be equal for all runs of a study on as many hosts, in words."""
    on = f" of {len(machine.hosts)} hosts" if len(machine.hosts) > 1 else ""
    return {
        f"names{on}" if on else "host": ", ".join(sorted(machine.hosts)),
        "processor": machine.cpu,
        f"cores{on}": str(machine.cores),
        "GPUs": ", ".join(machine.gpus) or "none",
        "device": ", ".join(sorted({device.split(":")[0] for device in machine.devices})),
        "platform": machine.platform,
    } | machine.versions


def _relative_width(row: PointResult) -> float:
    """Width of the interval of a point's time over its median; 0 where it was not timed."""
    interval = row.epoch_s or row.samples_per_s
    return (interval.high - interval.low) / interval.median if interval else 0.0


def _interval_text(interval: Interval) -> str:
    return f"{number_text(interval.median)}, at least {number_text(interval.low)}"


def _threads(row: PointResult) -> int:
    return row.point.ranks * row.point.threads


def _ids(rows: Iterable[PointResult]) -> tuple[str, ...]:
    return tuple(row.point_id for row in rows)
