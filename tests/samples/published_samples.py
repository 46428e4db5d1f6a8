"""Published studies as they might come out here: the shipped study files, runs made up, analysed as real ones are."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from paceline.analyze.stats.intervals import median_interval
from paceline.analyze.study.study_results import study_results
from paceline.published.beside import published_comparison
from paceline.published.records import Answer, PublishedComparison
from paceline.published.section.published_section import published_section
from paceline.published.table_files import published_study
from paceline.records.counters import CpuTime, CpuTimes
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import PointResult, StudyResults
from paceline.records.run import Epoch, PhaseEnd, RunResult
from paceline.records.study import Point
from paceline.reporting.added_section import AddedSection
from paceline.reporting.model import ReportModel, report_model
from paceline.studies.execute.fits import misfit_reason, not_run
from paceline.studies.expand.expand import expand
from paceline.studies.load.load import load_study
from samples import report_samples as samples
from samples.trace_samples import traces_of

STUDIES = (
    "mnist-mpi",
    "mnist-mpi-exchange",
    "mnist-batch-size",
    "fashion-sequential",
    "fashion-parameters",
    "flowers-sequential",
    "flowers-cloud",
    "flowers-cloud-controlled",
    "cifar10-nodes",
    "cifar10-nodes-efficientnet",
    "cifar10-nodes-resnet50",
    "fruits-gpus",
    "caltech256-gpus",
)
"""Every shipped study that repeats rows of a published one."""
ASKED = (
    *("averaging", "transfer-cifar10", "fine-tuning", "large-batch-causes", "large-batch"),
    *("fashion-overfitting", "flowers-overfitting"),
)
"""Those that answer open questions of one, and repeat no row."""
OTHERWISE = ("batch-sizes",)
"""Those that repeat rows with another training, to answer a question; they have one size."""

Accuracy = Callable[[Point, int], float]
"""Test accuracy by point and number of the run."""
Seconds = Callable[[Point], float]
"""Time of an epoch by point."""


def usual_accuracy(point: Point, run: int) -> float:
    """What falls by a tenth of a point with every doubling of the batch, seeds apart."""
    return 0.97 - 0.001 * math.log2(point.batch_global) + 0.0002 * run


def usual_s(point: Point) -> float:
    """Ideal sharing, and a bit for each thread."""
    return 8.0 / point.ranks + 0.1 * point.threads


@functools.cache
def usual(name: str) -> StudyResults:
    """A shipped study as it might come out on two cores."""
    return results_of(name)


def results_of(
    name: str,
    *,
    cores: int = 2,
    repeats: int = 5,
    accuracy: Accuracy = usual_accuracy,
    epoch_s: Seconds = usual_s,
    failed: Callable[[Point], bool] = lambda point: False,
    dead: Callable[[Point, int], bool] = lambda point, run: False,
    overrides: Sequence[str] = (),
) -> StudyResults:
    """A shipped study at its small size, on a machine with so many cores, its published table beside it.

    Runs that are `dead` end at chance.
    """
    study = load_study(name, overrides).study
    study = replace(study, run=replace(study.run, repeats=repeats))
    points = expand(study, data_digest="d" * 64, model_digest="")
    reasons = {point.point_id: misfit_reason(study, point, cores) for point in points}
    held = [point for point in points if not reasons[point.point_id]]
    runs = [
        _at_chance(run) if dead(point, run.run) else run
        for point in held
        if not failed(point)
        for run in (_run(point, number, accuracy, epoch_s, cores) for number in range(1, repeats + 1))
    ]
    found = study_results(
        study,
        f"runs/{name}",
        held,
        runs,
        traces=traces_of(()),
        machine=samples.machine_of(cores=cores),
        expected_runs=len(held) * repeats,
        failures={p.point_id: "Rank 1 on node-a was killed by signal 9.\nIts log: x" for p in held if failed(p)},
        not_run=[not_run(study, p, reasons[p.point_id]) for p in points if reasons[p.point_id]],
    )
    return replace(found, points=tuple(_with_ledger(row) for row in found.points))


def beside_of(results: StudyResults) -> PublishedComparison:
    """The results beside the published study that theirs names."""
    timed = [point for point in results.points if point.runs]
    updates = {point.point_id: median_interval([0.01 * n for n in range(1, point.runs + 1)]) for point in timed}
    return published_comparison(published_study(results.study.published), results, {}, updates)


def section_of(results: StudyResults) -> AddedSection:
    """What a report says about the published study."""
    return published_section(beside_of(results), results)


def model_of(results: StudyResults) -> ReportModel:
    """The report with the published study that the results' study names."""
    return report_model(results, published=section_of(results))


def answer(results: StudyResults, name: str) -> Answer:
    """What came of one open question."""
    return next(one for one in beside_of(results).answers if one.question.name == name)


def cpu_times(peak: float) -> CpuTimes:
    whole = CpuTime(
        **dict.fromkeys(field for field in CpuTime.__slots__ if field != "real_s"),
        real_s=9.0,
    )
    whole = replace(whole, user_s=8.0, system_s=1.0, peak_bytes=int(peak))
    said = "Real 9.00 s, user 8.00 s, sys 1.00 s: user and sys together are as long as real; it waited."
    return CpuTimes(whole=whole, processes=(), energy=(), sentence=said)


def _run(point: Point, number: int, accuracy: Accuracy, epoch_s: Seconds, cores: int) -> RunResult:
    noise = random.Random(f"{point.point_id} {number}")
    epochs = _epochs(point, number, epoch_s(point) * noise.uniform(0.995, 1.005))
    total_s = sum(epoch.epoch_s for epoch in epochs) + 6
    test = accuracy(point, number)
    tuned, test_s = point.finetune.epochs > 0, noise.uniform(1.9, 2.1)
    first = PhaseEnd(name="train", steps=epochs[-1].step, test_loss=0.3, test_accuracy=test - 0.01 * tuned)
    second = PhaseEnd(name="finetune", steps=10, test_loss=0.2, test_accuracy=test)
    ends = (replace(first, trainable=12_810), replace(second, trainable=690_590))[: 1 + tuned]
    phases = tuple(replace(end, test_s=test_s) for end in ends)
    return RunResult(
        point_id=point.point_id,
        run=number,
        seed=number,
        ranks=point.ranks,
        attempt=1,
        launched_at="2030-01-01T00:00:00+00:00",
        launched_at_ns=0,
        total_s=total_s,
        wall_s=total_s,
        epochs=epochs,
        test_loss=1.2 - test,
        test_accuracy=test,
        parameters=690_590,
        load_s=0.05,
        steps=epochs[-1].step,
        weights_sha256="w",
        oversubscribed=point.ranks * point.threads + point.servers > cores,
        classes=10,
        phases=phases,
        network={"network": point.model.name} if "net" in point.model.name else {},
    )


def _at_chance(run: RunResult) -> RunResult:
    last = replace(run.epochs[-1], train_loss=math.log(10), train_accuracy=0.1)
    if last.validation_loss is not None:
        last = replace(last, validation_loss=math.log(10), validation_accuracy=0.1)
    return replace(run, epochs=(*run.epochs[:-1], last), test_loss=math.log(10), test_accuracy=0.1)


def _epochs(point: Point, number: int, seconds: float) -> tuple[Epoch, ...]:
    noise = random.Random(f"{point.batch_global} {number}")
    count, size = point.train.epochs or 1, point.data.train_samples or 6000
    steps = math.ceil(size / point.batch_global)
    validated = point.data.validation > 0
    made = []
    for epoch in range(1, count + 1):
        missing = 0.4 * math.exp(-epoch / 3) + noise.gauss(0, 0.004)
        made.append(
            Epoch(
                epoch=epoch,
                step=steps * epoch,
                samples=size,
                train_loss=missing,
                train_accuracy=0.95 - missing,
                validation_loss=missing + 0.1 if validated else None,
                validation_accuracy=0.9 - missing if validated else None,
                epoch_s=seconds,
                evaluate_s=0.5 if validated else 0.0,
                whole=True,
            )
        )
    return tuple(made)


def _with_ledger(row: PointResult) -> PointResult:
    """A row with what its traces might have shown."""
    if not row.runs or row.total_s is None:
        return row
    shares = dict.fromkeys(LEDGER_KINDS, row.total_s.median / len(LEDGER_KINDS))
    ledger: dict[str, float | None] = {**shares}
    return replace(row, ledger_s=ledger, rank_ledgers_s=(ledger,) * row.point.ranks, median_run=1, message_bytes=2.7e6)
