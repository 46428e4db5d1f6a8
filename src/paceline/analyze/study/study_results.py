"""Results of a study, one row per point: times, throughput, speed-up, efficiency, accuracy, ledger.

    metric of a run     epoch_s         median of its timed epochs
                        samples_per_s   samples of such an epoch / its time
    metric of a point   median and interval over its runs
    speed-up            throughput / throughput of the baseline (see points/series.py)
    efficiency          speed-up × ranks of the baseline / ranks, servers counted as ranks

The speed-up is a ratio of throughputs, not of epoch times: it has one meaning in strong and weak scaling, and is
defined for runs that never complete an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paceline.analyze.learning.verdicts import LearningOptions, with_learning
from paceline.analyze.points.losses import lost_shares
from paceline.analyze.points.median_run import MedianRun, Traces, View, median_run
from paceline.analyze.points.scaling_laws import scaling_laws
from paceline.analyze.points.series import baselines, series_factors, series_label
from paceline.analyze.points.speedups import Throughputs, comparisons, ratio
from paceline.analyze.points.timing import epoch_s, samples_per_s, throughputs, timed_epochs
from paceline.analyze.run.efficiencies import efficiencies
from paceline.analyze.stats.equivalence import MARGIN
from paceline.analyze.stats.intervals import known_interval, scaled, spread
from paceline.analyze.study.findings import findings
from paceline.analyze.study.measured import Measured
from paceline.analyze.study.one_factor import effects
from paceline.analyze.study.phase_results import phase_results, slowest_features
from paceline.records.results import Curve, NotRun, PointResult, Spread, StudyResults
from paceline.records.run import Machine, RunResult
from paceline.records.study import Point, Study, point_label
from paceline.records.trace_summary import Efficiencies


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
    target: float | None = None,
    margin: float | None = None,
    not_run: Sequence[NotRun] = (),
    view: View | None = None,
) -> StudyResults:
    """The results of a study from its finished runs.

    `machines` and `commits` are those of the runs, in any order. `traces` reads the spans of a run; it is called for
    median runs only. `target` (a validation accuracy) replaces that of the study; `margin` is the largest difference of
    equal accuracies. `not_run` are the points that were not run. `view` builds the drawn view of a median run.
    """
    ordered = sorted(points, key=lambda point: point.ranks)
    runs_of = {point.point_id: _runs_of(point, runs) for point in ordered}
    pace_of = {point_id: throughputs(own) for point_id, own in runs_of.items()}
    median_of = {
        point.point_id: median_run(runs_of[point.point_id], traces, servers=point.servers, view=view)
        for point in ordered
    }
    baseline_of = baselines(points, {point_id for point_id, pace in pace_of.items() if pace})
    phases_of = phase_results(runs_of)
    rows = []
    for point in ordered:
        own, median, why = runs_of[point.point_id], median_of[point.point_id], (failures or {}).get(point.point_id)
        row = replace(_row(study, point, own, median, why), phases=phases_of[point.point_id])
        baseline = baseline_of.get(point.point_id)
        rows.append(_against(row, baseline, pace_of, median_of) if baseline else row)
    asked = LearningOptions(
        target=study.train.target_accuracy if target is None else target, margin=MARGIN if margin is None else margin
    )
    rows, lesson = with_learning(rows, runs_of, pace_of, asked)
    first = next((row.baseline for row in rows if row.baseline), None)
    measured = Measured(
        rows=rows,
        lesson=lesson,
        one_at_a_time=study.design == "one-at-a-time",
        runs=runs_of,
        timed={(run.point_id, run.run): timed_epochs(run) for own in runs_of.values() for run in own},
        baseline=first,
        machines=tuple(found for found in machines if found is not None),
        commits=tuple(found for found in commits if found is not None),
        expected_runs=expected_runs,
        gaps={point_id: median.gap for point_id, median in median_of.items() if median.gap},
    )
    return StudyResults(
        study=study,
        folder=folder,
        baseline=first,
        points=measured.rows,
        findings=findings(measured),
        machine=machine,
        expected_runs=expected_runs,
        commit=commit,
        comparisons=() if study.design == "one-at-a-time" else comparisons(rows, pace_of),
        lesson=lesson,
        laws=scaling_laws(study, rows, pace_of),
        not_run=tuple(not_run),
        effects=effects(study, points, runs_of),
    )


def _against(
    row: PointResult, baseline: Point, paces: Mapping[str, Throughputs], medians: Mapping[str, MedianRun]
) -> PointResult:
    """A row with its metrics relative to the baseline."""
    own, base = medians[row.point_id], medians[baseline.point_id]
    speedup = ratio(paces[row.point_id], paces[baseline.point_id])
    fewer = (baseline.ranks + baseline.servers) / row.ranks_and_servers
    return replace(
        row,
        baseline=baseline.point_id,
        speedup=speedup,
        efficiency=scaled(speedup, fewer) if speedup else None,
        lost_shares=lost_shares(base.costs_s, own.costs_s),
        efficiencies=_tree(own, base),
    )


def _tree(own: MedianRun, baseline: MedianRun) -> Efficiencies | None:
    """The efficiency tree of a point relative to its baseline; None if one is unknown."""
    if own.work is None or baseline.work is None:
        return None
    return efficiencies(own.work, own.samples, (baseline.work, baseline.samples))


def _row(study: Study, point: Point, runs: Sequence[RunResult], median: MedianRun, failure: str | None) -> PointResult:
    """The row of one point, without metrics that need a baseline."""
    return PointResult(
        point_id=point.point_id,
        point=point,
        label=point_label(point, study.vary),
        series=series_label(point, series_factors(study)),
        runs=len(runs),
        epoch_s=known_interval(epoch_s(run) for run in runs),
        total_s=known_interval(run.total_s for run in runs),
        samples_per_s=known_interval(samples_per_s(run) for run in runs),
        speedup=None,
        efficiency=None,
        load_s=known_interval(run.load_s for run in runs),
        test_accuracy=_spread(run.test_accuracy for run in runs),
        test_loss=_spread(run.test_loss for run in runs),
        ledger_s=median.mean_s,
        rank_ledgers_s=median.ranks_s,
        median_run=median.run,
        curves=tuple(Curve(run=run.run, seed=run.seed, epochs=run.epochs) for run in runs),
        parameters=runs[0].parameters if runs else None,
        oversubscribed=any(run.oversubscribed for run in runs),
        failure=failure,
        messages=median.messages,
        message_bytes=median.message_bytes,
        exposed_share=median.exposed_share,
        anatomy=median.anatomy,
        view=median.view,
        read_bytes=max((run.read_bytes for run in runs if run.read_bytes is not None), default=None),
        queue_s=known_interval(run.queue_s for run in runs),
        staleness_max=max((run.staleness_max for run in runs if run.staleness_max is not None), default=None),
        emulated=any(run.emulated for run in runs),
        features=slowest_features(runs),
        network=runs[0].network if runs else {},
    )


def _runs_of(point: Point, runs: Sequence[RunResult]) -> tuple[RunResult, ...]:
    return tuple(sorted((run for run in runs if run.point_id == point.point_id), key=lambda run: run.run))


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return spread(known) if known else None
