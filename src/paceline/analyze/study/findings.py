"""Findings: facts that a reader of the results must know, each with a code, a severity and values.

Each finding is a function of `Measured` that returns None if the data do not show it. A new finding needs a function
here, a line in FINDINGS (in the order of the report) and its sentences in `reporting/wording/finding_words.py`.
Findings about the allocation and about learning are in modules of their own. Findings of other packages come last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sized

from paceline.analyze.stats.intervals import FEWEST_FOR_INTERVAL
from paceline.analyze.study.allocation_findings import allocation_mismatch, emulated_hosts
from paceline.analyze.study.learning_findings import (
    accuracy_falls,
    batch_beyond_noise,
    dead_network,
    diverged,
    overfitting,
    schedule_unfinished,
)
from paceline.analyze.study.measured import Measured
from paceline.errors import RequestError
from paceline.records.finding import Finding, outside_findings
from paceline.records.results import PointResult
from paceline.records.run import Machine

NOISY = 0.10
"""Interval width / median: above it, a difference of 10 % is not significant."""
SHORT_S = 0.5
"""Shorter timed epochs are sensitive to scheduling noise."""
SUPERLINEAR = 1.05
"""Efficiency that exceeds 1 by more than the usual drift of a machine."""


def findings(measured: Measured) -> tuple[Finding, ...]:
    """The findings of FINDINGS and of other packages that the data show."""
    own = [found for find in FINDINGS.values() if (found := find(measured)) is not None]
    return (*own, *_from_outside(measured))


def _from_outside(measured: Measured) -> list[Finding]:
    """Findings of other packages. Sentences are looked up by code, so the code must be the registered name."""
    found = {name: rule.find(measured) for name, rule in outside_findings().items()}
    for name, finding in found.items():
        if finding is not None and finding.code != name:
            raise RequestError(
                f"The finding registered as {name} has the code {finding.code}.",
                right="The code is the registered name.",
                next="Correct the entry point or the code in the package that registers it.",
            )
    return [finding for finding in found.values() if finding is not None]


def missing_runs(measured: Measured) -> Finding | None:
    """Fewer runs than configured, or failed points."""
    finished = len(measured.all_runs)
    failed = [row for row in measured.rows if row.failure]
    if finished >= measured.expected_runs and not failed:
        return None
    return Finding(
        code="missing-runs",
        severity="error" if failed else "warning",
        values={
            "finished": finished,
            "expected": measured.expected_runs,
            "failures": tuple((row.label, row.failure.splitlines()[0]) for row in failed if row.failure),
            "points": len(measured.rows),
        },
        points=_ids(failed),
    )


def baseline_missing(measured: Measured) -> Finding | None:
    """Speed-ups whose baseline is not the point with the fewest ranks."""
    chosen = next((row for row in measured.rows if row.point_id == measured.baseline), None)
    if chosen is None:
        return None
    alike = [row for row in measured.rows if row.baseline == chosen.point_id]
    wanted = min(alike, key=lambda row: row.ranks_and_servers)
    if wanted.ranks_and_servers == chosen.ranks_and_servers:
        return None
    return Finding(
        code="baseline-missing",
        severity="warning",
        values={"used": chosen.label, "wanted": wanted.label},
        points=_ids((wanted, chosen)),
    )


def more_ranks_than_cores(measured: Measured) -> Finding | None:
    """Points with ranks that share cores."""
    shared = [row for row in measured.rows if row.oversubscribed]
    if not shared:
        return None
    cores = max((machine.cores for machine in measured.machines), default=None)
    return Finding(
        code="more-ranks-than-cores",
        severity="warning",
        values={"cores": cores, "threads": _threads_of_ranks(shared)},
        points=_ids(shared),
    )


def ranks_share_physical_cores(measured: Measured) -> Finding | None:
    """Points with more threads than cores, but not than hyper-threads."""
    cores = max((machine.cores for machine in measured.machines), default=0)
    shared = [row for row in measured.rows if row.runs and not row.oversubscribed and _threads(row) > cores > 0]
    if not shared:
        return None
    return Finding(
        code="ranks-share-physical-cores",
        severity="warning",
        values={"cores": cores, "threads": _threads_of_ranks(shared)},
        points=_ids(shared),
    )


def superlinear(measured: Measured) -> Finding | None:
    """Efficiencies whose interval lies above 1."""
    known = [(row, row.efficiency) for row in measured.rows if row.efficiency and row.efficiency.coverage is not None]
    above = [(row, efficiency) for row, efficiency in known if efficiency.low > SUPERLINEAR]
    if not above:
        return None
    return Finding(
        code="superlinear",
        severity="warning",
        values={"limit": SUPERLINEAR, "efficiencies": tuple((row.label, efficiency) for row, efficiency in above)},
        points=_ids(row for row, _ in above),
    )


def mixed_environment(measured: Measured) -> Finding | None:
    """Runs of one study on different machines, versions or commits."""
    facts: dict[tuple[str, int], Counter[str]] = {}
    for machine in measured.machines:
        for fact, value in _environment(machine).items():
            facts.setdefault(fact, Counter())[value] += 1
    facts["commit", 1] = Counter(commit[:10] for commit in measured.commits)
    mixed = {fact: dict(counter.most_common()) for fact, counter in facts.items() if len(counter) > 1}
    if not mixed:
        return None
    return Finding(code="mixed-environment", severity="warning", values={"mixed": mixed})


def noisy_machine(measured: Measured) -> Finding | None:
    """Points whose times vary by more than a tenth."""
    widths = {row.point_id: (row, width) for row in measured.rows if (width := _relative_width(row)) > NOISY}
    if not widths:
        return None
    worst, width = max(widths.values(), key=lambda pair: pair[1])
    return Finding(
        code="noisy-machine",
        severity="warning",
        values={"limit": NOISY, "worst": worst.label, "width": width, **_of_points(widths, measured)},
        points=tuple(widths),
    )


def few_repeats(measured: Measured) -> Finding | None:
    """Points with fewer than five runs: their intervals are ranges."""
    few = [row for row in measured.rows if 0 < row.runs < FEWEST_FOR_INTERVAL]
    if not few:
        return None
    fewest = min(row.runs for row in few)
    return Finding(
        code="few-repeats",
        severity="warning" if fewest < 3 else "info",
        values={"enough": FEWEST_FOR_INTERVAL, "fewest": fewest, **_of_points(few, measured)},
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
    return Finding(
        code="small-timed-part",
        severity="info",
        values={"script": scripts, "shortest_s": min(short.values()), "limit_s": SHORT_S},
        points=tuple(short),
    )


def warm_up_in_times(measured: Measured) -> Finding | None:
    """Points with no timed epoch but the first."""
    ids = {point_id for (point_id, _), epochs in measured.timed.items() if any(epoch.epoch == 1 for epoch in epochs)}
    cold = [row for row in measured.rows if row.point_id in ids]
    if not cold:
        return None
    return Finding(code="warm-up-in-times", severity="info", values=_of_points(cold, measured), points=_ids(cold))


def resumed_runs(measured: Measured) -> Finding | None:
    """Runs that continued from a checkpoint."""
    resumed = [run for run in measured.all_runs if run.resumed_from_step is not None]
    if not resumed:
        return None
    labels = {row.point_id: row.label for row in measured.rows}
    return Finding(
        code="resumed-runs",
        severity="warning" if any(run.resume_note for run in resumed) else "info",
        values={
            "resumed": tuple(
                {
                    "run": run.run,
                    "label": labels[run.point_id],
                    "step": run.resumed_from_step,
                    "note": run.resume_note,
                }
                for run in resumed
            ),
            "runs": len(measured.all_runs),
        },
        points=tuple(dict.fromkeys(run.point_id for run in resumed)),
    )


def incomplete_ledger(measured: Measured) -> Finding | None:
    """Points with an incomplete ledger."""
    if not measured.gaps:
        return None
    return Finding(
        code="incomplete-ledger",
        severity="warning",
        values={"gaps": tuple(measured.gaps.values()), **_of_points(measured.gaps, measured)},
        points=tuple(measured.gaps),
    )


FINDINGS: dict[str, Callable[[Measured], Finding | None]] = {
    "missing-runs": missing_runs,
    "baseline-missing": baseline_missing,
    "diverged": diverged,
    "dead-network": dead_network,
    "accuracy-falls": accuracy_falls,
    "schedule-unfinished": schedule_unfinished,
    "asked-for-against-given": allocation_mismatch,
    "more-ranks-than-cores": more_ranks_than_cores,
    "ranks-share-physical-cores": ranks_share_physical_cores,
    "emulated-hosts": emulated_hosts,
    "superlinear": superlinear,
    "mixed-environment": mixed_environment,
    "noisy-machine": noisy_machine,
    "few-repeats": few_repeats,
    "small-timed-part": small_timed_part,
    "warm-up-in-times": warm_up_in_times,
    "resumed-runs": resumed_runs,
    "overfitting": overfitting,
    "batch-beyond-noise": batch_beyond_noise,
    "incomplete-ledger": incomplete_ledger,
}


def _environment(machine: Machine) -> dict[tuple[str, int], str]:
    """Facts that should be equal for all runs, by name and, for `host` and `cores`, number of hosts."""
    hosts = max(1, len(machine.hosts))
    versions = {(name, 1): value for name, value in machine.versions.items()}
    return {
        ("host", hosts): ", ".join(sorted(machine.hosts)),
        ("processor", 1): machine.cpu,
        ("cores", hosts): str(machine.cores),
        ("GPUs", 1): ", ".join(machine.gpus) or "none",
        ("device", 1): ", ".join(sorted({device.split(":")[0] for device in machine.devices})),
        ("platform", 1): machine.platform,
    } | versions


def _relative_width(row: PointResult) -> float:
    """Interval width / median of a point's time; 0 if it was not timed."""
    interval = row.epoch_s or row.samples_per_s
    return (interval.high - interval.low) / interval.median if interval else 0.0


def _threads(row: PointResult) -> int:
    return row.point.ranks * row.point.threads


def _threads_of_ranks(rows: Iterable[PointResult]) -> tuple[tuple[str, int], ...]:
    """Label and threads per rank of each point."""
    return tuple((row.label, row.point.threads) for row in rows)


def _of_points(found: Sized, measured: Measured) -> dict[str, int]:
    """Number of points of a finding, and of all points."""
    return {"found": len(found), "points": len(measured.rows)}


def _ids(rows: Iterable[PointResult]) -> tuple[str, ...]:
    return tuple(row.point_id for row in rows)
