"""Runs -> one row per point: times, throughput, speed-up, efficiency, accuracy, ledger.

    figure of a run     epoch_s         median of its timed epochs
                        samples_per_s   samples of such an epoch / its time
    figure of a point   median and interval over its runs
    speed-up            throughput / throughput of the baseline, the point with the fewest ranks
    efficiency          speed-up × ranks of the baseline / ranks

Throughput, not epoch time, carries the speed-up: so it means the same in strong and weak scaling,
and where a run is given as a number of steps and never completes an epoch.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from paceline.analyze.findings import Measured, findings
from paceline.analyze.ledger import ledgers, mean_ledger
from paceline.analyze.losses import loop_costs_s, lost_shares
from paceline.analyze.stats import median_interval, ratio_interval, scaled, spread
from paceline.errors import PacelineError
from paceline.records.results import Curve, Interval, PointResult, StudyResults
from paceline.records.run import Epoch, Machine, RunResult
from paceline.records.study import Point, Study
from paceline.records.trace import RankTrace
from paceline.units import nanoseconds

# On a GPU the host's spans show when work was queued, not when it ran.
_ON_DEVICE = ("forward", "backward", "comm-wait", "comm-transfer", "optimizer")
_QUEUED = "On a GPU a step is not divided yet: its forward, backward, communication and optimizer are null."
Traces = Callable[[RunResult], Sequence[RankTrace]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ledger:
    """The ledger of a point's median run, or why there is none."""

    run: int | None = None
    mean_s: dict[str, float | None] | None = None
    ranks_s: tuple[dict[str, float | None], ...] = ()
    costs_s: dict[str, float | None] | None = None
    """Rank-seconds per sample in the timed epochs, by kind."""
    gap: str | None = None
    """What is missing from it, in a sentence; None where nothing is."""


def study_results(
    study: Study,
    folder: str,
    points: Sequence[Point],
    runs: Sequence[RunResult],
    *,
    traces: Traces,
    machine: Machine | None,
    machines: Iterable[Machine | None] = (),
    expected_runs: int,
    failures: Mapping[str, str] | None = None,
    commit: str | None = None,
    commits: Iterable[str | None] = (),
) -> StudyResults:
    """The results of a study from its finished runs.

    `machines` and `commits` are those of the single runs, in any order: they say whether all ran
    in one environment. `traces` gives a run's spans, and is asked for the median runs alone.
    """
    ordered = sorted(points, key=lambda point: point.ranks)
    runs_of = {point.point_id: _runs_of(point, runs) for point in ordered}
    ledger_of = {point_id: _median_ledger(own, traces) for point_id, own in runs_of.items()}
    baseline = next((point for point in ordered if _throughputs(runs_of[point.point_id])), None)
    rows = []
    for point in ordered:
        own, failure = runs_of[point.point_id], (failures or {}).get(point.point_id)
        speedup = _speedup(own, runs_of[baseline.point_id]) if baseline else None
        efficiency = scaled(speedup, baseline.ranks / point.ranks) if baseline and speedup else None
        ledger = ledger_of[point.point_id]
        lost = lost_shares(ledger_of[baseline.point_id].costs_s, ledger.costs_s) if baseline else {}
        rows.append(replace(_row(point, own, speedup, efficiency, ledger, failure), lost_shares=lost))
    measured = Measured(
        rows=tuple(rows),
        runs=runs_of,
        timed={(run.point_id, run.run): timed_epochs(run) for own in runs_of.values() for run in own},
        baseline=baseline.point_id if baseline else None,
        machines=tuple(found for found in machines if found is not None),
        commits=tuple(found for found in commits if found is not None),
        expected_runs=expected_runs,
        gaps={point_id: ledger.gap for point_id, ledger in ledger_of.items() if ledger.gap},
    )
    return StudyResults(
        study=study,
        folder=folder,
        baseline=measured.baseline,
        points=measured.rows,
        findings=findings(measured),
        machine=machine,
        expected_runs=expected_runs,
        commit=commit,
    )


def _row(
    point: Point,
    runs: Sequence[RunResult],
    speedup: Interval | None,
    efficiency: Interval | None,
    ledger: _Ledger,
    failure: str | None,
) -> PointResult:
    """The row of one point; None wherever no run gives a figure."""
    return PointResult(
        point_id=point.point_id,
        point=point,
        runs=len(runs),
        epoch_s=_interval(epoch_s(run) for run in runs),
        total_s=_interval(run.total_s for run in runs),
        samples_per_s=_interval(samples_per_s(run) for run in runs),
        speedup=speedup,
        efficiency=efficiency,
        load_s=_interval(run.load_s for run in runs),
        test_accuracy=spread([run.test_accuracy for run in runs]) if runs else None,
        test_loss=spread([run.test_loss for run in runs]) if runs else None,
        ledger_s=ledger.mean_s,
        rank_ledgers_s=ledger.ranks_s,
        median_run=ledger.run,
        curves=tuple(Curve(run=run.run, seed=run.seed, epochs=run.epochs) for run in runs),
        parameters=runs[0].parameters if runs else None,
        oversubscribed=any(run.oversubscribed for run in runs),
        failure=failure,
    )


def timed_epochs(run: RunResult) -> tuple[Epoch, ...]:
    """The epochs of a run that its times come from.

    Whole ones, or where `steps` allowed none, the partial ones; without the first, which warms up,
    and without interrupted ones, as long as any is left.
    """
    timed = [epoch for epoch in run.epochs if epoch.epoch_s > 0]
    for wanted in (_whole, _warm, _uninterrupted):
        timed = [epoch for epoch in timed if wanted(epoch)] or timed
    return tuple(timed)


def epoch_s(run: RunResult) -> float | None:
    """Seconds of a whole epoch, without evaluation; None where the run never completed one."""
    timed = timed_epochs(run)
    if not timed or not timed[0].whole:
        return None
    return statistics.median(epoch.epoch_s for epoch in timed)


def samples_per_s(run: RunResult) -> float | None:
    """Samples trained on per second over all ranks; None where nothing was timed."""
    timed = timed_epochs(run)
    if not timed:
        return None
    # Median by median: for whole epochs, which all have the same samples, exactly samples / epoch_s.
    return statistics.median(epoch.samples for epoch in timed) / statistics.median(epoch.epoch_s for epoch in timed)


def _whole(epoch: Epoch) -> bool:
    return epoch.whole


def _warm(epoch: Epoch) -> bool:
    return epoch.epoch > 1


def _uninterrupted(epoch: Epoch) -> bool:
    return not epoch.resumed


def _runs_of(point: Point, runs: Sequence[RunResult]) -> tuple[RunResult, ...]:
    return tuple(sorted((run for run in runs if run.point_id == point.point_id), key=lambda run: run.run))


def _throughputs(runs: Sequence[RunResult]) -> dict[int, float]:
    """Throughput by number of the run, of those that have one."""
    return {run.run: value for run in runs if (value := samples_per_s(run)) is not None and value > 0}


def _speedup(runs: Sequence[RunResult], baseline: Sequence[RunResult]) -> Interval | None:
    """Throughput against the baseline's, paired by number of the run; None where nothing was timed."""
    own, base = _throughputs(runs), _throughputs(baseline)
    if not own or not base:
        return None
    numbers = sorted(own.keys() | base.keys())
    return ratio_interval([own.get(number) for number in numbers], [base.get(number) for number in numbers])


def _interval(values: Iterable[float | None]) -> Interval | None:
    known = [value for value in values if value is not None]
    return median_interval(known) if known else None


def _median_run(runs: Sequence[RunResult]) -> RunResult | None:
    """The run with the lower median time per sample, of those that were seen from launch to end."""
    throughput = _throughputs([run for run in runs if run.total_s is not None])
    by_speed = sorted((run for run in runs if run.run in throughput), key=lambda run: (-throughput[run.run], run.run))
    return by_speed[(len(by_speed) - 1) // 2] if by_speed else None


def _median_ledger(runs: Sequence[RunResult], traces: Traces) -> _Ledger:
    """The ledger of the median run, from its launch to its end."""
    run = _median_run(runs)
    if run is None:
        return _Ledger()
    try:
        found = traces(run)
    except PacelineError as error:
        return _Ledger(run=run.run, gap=f"The spans of run {run.run} cannot be read: {error.what}")
    if not found:
        return _Ledger(run=run.run, gap=f"Run {run.run} left no spans.")
    ended_at_ns = run.launched_at_ns + nanoseconds(run.wall_s)
    ranks_s = ledgers(found, started_at_ns=run.launched_at_ns, ended_at_ns=ended_at_ns, ranks=run.ranks)
    if run.device == "cuda":
        ranks_s = tuple(_host_ledger(ledger) for ledger in ranks_s)
        return _Ledger(run=run.run, mean_s=mean_ledger(ranks_s), ranks_s=ranks_s, gap=_QUEUED)
    return _Ledger(
        run=run.run,
        mean_s=mean_ledger(ranks_s),
        ranks_s=ranks_s,
        costs_s=loop_costs_s(found, _timed_from_step(run)) if len(found) == run.ranks else None,
        gap=_gap(run, found, ranks_s),
    )


def _timed_from_step(run: RunResult) -> list[tuple[int, Epoch]]:
    """The timed epochs, each with the step at which it began."""
    begun_at = {epoch.epoch: before.step for before, epoch in pairwise(run.epochs)}
    return [(begun_at.get(epoch.epoch, 0), epoch) for epoch in timed_epochs(run)]


def _host_ledger(ledger: dict[str, float | None]) -> dict[str, float | None]:
    """What the host's clock knows of a GPU's time: what was only queued is not divided, and goes to `other`."""
    queued_s = sum(ledger[kind] or 0.0 for kind in _ON_DEVICE)
    return {**ledger, **dict.fromkeys(_ON_DEVICE), "other": (ledger["other"] or 0.0) + queued_s}


def _gap(run: RunResult, found: Sequence[RankTrace], ranks_s: Sequence[dict[str, float | None]]) -> str | None:
    """What a ledger lacks: ranks, the end of a trace, the division of communication."""
    broken = [trace.rank for trace in found if trace.truncated]
    if len(found) < run.ranks:
        return f"Run {run.run} has the spans of {len(found)} of its {run.ranks} ranks."
    if broken:
        return f"The spans of run {run.run} break off on rank {', '.join(map(str, broken))}."
    if any(ledger["comm-wait"] is None for ledger in ranks_s):
        return f"Run {run.run} does not show the same collectives on all of its {run.ranks} ranks."
    return None
