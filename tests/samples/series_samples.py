"""Results of studies that vary more than ranks: runs made up, then analysed as real ones are."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from paceline.analyze.study.study_results import study_results
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import NotRun, PointResult, StudyResults
from paceline.records.run import RunResult
from paceline.records.settings import ModelSettings
from paceline.records.study import Point, Study, point_label
from paceline.studies.expand.expand import expand
from samples import report_samples as samples
from samples.trace_samples import traces_of

ALONE_S = 9.87
GRADIENT_BYTES = 2_762_360.0

# Speed-ups over one rank: of 2 and of 4 ranks on one host, then on two.
PACE: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "ddp": ((1.88, 3.50), (1.81, 3.21)),
    "flat": ((1.87, 3.41), (1.70, 2.90)),
    "parameter-server": ((1.35, 2.10), (1.10, 1.60)),
}
Paced = tuple[Point, float | None]
"""A point and its speed-up over one rank; None where its runs are missing."""


def strategies() -> StudyResults:
    """Three strategies, three numbers of ranks, one host and two; a single rank is run once for all."""
    study = replace(
        samples.study_of((1, 2, 4), 5, 4),
        title="Three strategies on one host and on two",
        question="Which strategy trains fastest, and does it stay so across hosts?",
        vary={"run.strategy": tuple(PACE), "run.hosts": (1, 2)},
    )
    paced: list[Paced] = [(_point(study, 1), 1.0)]
    for index, ranks in enumerate((2, 4)):
        for strategy, by_hosts in PACE.items():
            options = {"servers": 2, "server_threads": 1} if strategy == "parameter-server" else {}
            for hosts, pace in enumerate(by_hosts, start=1):
                paced.append((_point(study, ranks, strategy=strategy, hosts=hosts, options=options), pace[index]))
    return _results(study, paced)


def rivals() -> StudyResults:
    """Three strategies at two ranks and nothing to scale: two of them cannot be told apart."""
    study = replace(samples.study_of((2,), 5, 4), vary={"run.strategy": ("ddp", "flat", "local-sgd")})
    paces = {"ddp": 1.88, "flat": 1.878, "local-sgd": 1.6}
    return _results(study, [(_point(study, 2, strategy=name), pace) for name, pace in paces.items()])


def batches() -> StudyResults:
    """Two batch sizes, each against its own single rank; the last point had to share cores."""
    study = replace(samples.study_of((1, 2), 5, 4), vary={"train.batch_global": (128, 512)})
    paced: list[Paced] = []
    for batch, paces in ((128, (1.0, 1.88)), (512, (1.2, 2.35))):
        train = replace(study.train, batch_global=batch)
        paced += [(_point(study, ranks, train=train), pace) for ranks, pace in enumerate(paces, start=1)]
    return _results(study, paced, lambda point, run: {"oversubscribed": point.batch_global * point.ranks == 1024})


def reads() -> StudyResults:
    """Three ways to read the data, in jobs that waited; two hosts that are one machine, and three repeats."""
    ways = ("mapped", "whole", "mpi-io")
    study = replace(samples.study_of((1, 2), 3, 4), vary={"data.read": ways, "run.hosts": (1, 2)})
    paced: list[Paced] = []
    for read in ways:
        for ranks, hosts, pace in ((1, 1, 1.0), (2, 1, 1.88), (2, 2, 1.7)):
            data = replace(study.data, read=read)
            paced.append((_point(study, ranks, hosts=hosts, launcher="slurm", data=data), pace))
    read_bytes = {"mapped": 4_096, "whole": 54_880_000, "mpi-io": 27_440_000}
    load_s = {"mapped": 0.012, "whole": 0.31, "mpi-io": 0.16}
    return _results(
        study,
        paced,
        lambda point, run: {
            "read_bytes": read_bytes[point.data.read] // (point.ranks if point.data.read == "mpi-io" else 1),
            "load_s": load_s[point.data.read] * (1 + 0.02 * run),
            "queue_s": 14.0 + 3 * run,
            "emulated": point.hosts > 1,
        },
    )


def stale() -> StudyResults:
    """An asynchronous strategy whose ranks ran ahead; the other failed at four ranks."""
    study = replace(samples.study_of((1, 2, 4), 5, 4), vary={"run.strategy": ("ddp", "parameter-server-async")})
    options = {"servers": 1, "server_threads": 1, "staleness": 4}
    ahead: dict[str, Any] = {"strategy": "parameter-server-async", "options": options}
    paced: list[Paced] = [
        (_point(study, 1), 1.0),
        (_point(study, 2), 1.88),
        (_point(study, 2, **ahead), 1.6),
        (_point(study, 4), None),
        (_point(study, 4, **ahead), 2.9),
    ]
    return _results(study, paced, lambda point, run: {"staleness_max": 1 + run % 3 if point.options else None})


def one_at_a_time(repeats: int = 5) -> StudyResults:
    """One factor at a time: more neurons learn better and take longer, threads take less, layers change nothing."""
    factors = {"model.neurons": (32, 128), "model.layers": (1, 4), "run.threads": (1, 2)}
    study = replace(
        samples.study_of((1,), repeats, 4, ModelSettings(name="mlp", options={"neurons": 32, "layers": 1})),
        title="One factor at a time",
        question="What matters?",
        design="one-at-a-time",
        vary=factors,
    )
    paces = {"128 neurons": 0.6, "2 threads": 1.7}
    points = expand(study, data_digest="d" * 64, model_digest="")
    labels = {point.point_id: point_label(point, factors) for point in points}
    paced: list[Paced] = [
        (point, next((pace for name, pace in paces.items() if name in labels[point.point_id]), 1.0)) for point in points
    ]
    shares = {"128 neurons": 0.8}

    def told(point: Point, run: int) -> dict[str, Any]:
        better = next((share for name, share in shares.items() if name in labels[point.point_id]), 1.0)
        noise = random.Random(f"{point.point_id} {run} loss").uniform(0.98, 1.02)
        return {"test_loss": 0.07 * better * noise, "test_accuracy": 1 - 0.03 * better * noise}

    return _results(study, paced, told)


def too_large() -> StudyResults:
    """Ranks that the machine cannot hold were left out; the small size of a study that has two."""
    results = samples.oversubscribed()
    reason = "It has 8 ranks, and this machine 2 cores: more than twice as many are not run."
    study = replace(results.study, fits="machine", size="small", full={"train.epochs": "12", "data.train_samples": ""})
    left_out = [
        NotRun(label=f"{n} ranks", settings={"run.ranks": n}, reason=reason.replace("8", str(n))) for n in (8, 16)
    ]
    return replace(results, study=study, not_run=tuple(left_out))


ALL: dict[str, Callable[[], StudyResults]] = {
    **samples.ALL,
    "strategies": strategies,
    "rivals": rivals,
    "batches": batches,
    "reads": reads,
    "stale": stale,
    "one-at-a-time": one_at_a_time,
    "too-large": too_large,
}


def _point(study: Study, ranks: int, **changed: Any) -> Point:
    point = Point(
        data=study.data, data_digest="d" * 64, model=study.model, model_digest="", train=study.train, ranks=ranks
    )
    return replace(point, **changed)


def _results(
    study: Study, paced: Sequence[Paced], told: Callable[[Point, int], dict[str, Any]] = lambda point, run: {}
) -> StudyResults:
    """What analysis makes of runs at this pace, with the ledgers that such runs might have."""
    repeats = study.run.repeats
    runs = [
        replace(_run(point, number, pace), **told(point, number))
        for point, pace in paced
        if pace is not None
        for number in range(1, repeats + 1)
    ]
    failures = {point.point_id: "Rank 3 on node-a was killed by signal 9." for point, pace in paced if pace is None}
    found = study_results(
        study,
        "studies/series",
        [point for point, _ in paced],
        runs,
        traces=traces_of(()),
        machine=samples.machine_of(cores=8),
        expected_runs=len(paced) * repeats,
        failures=failures,
        commit="4f1c2a9d0b7e",
    )
    told_of = tuple(finding for finding in found.findings if finding.code != "incomplete-ledger")
    return replace(found, points=tuple(_with_ledger(row) for row in found.points), findings=told_of)


def _run(point: Point, number: int, pace: float) -> RunResult:
    noise = random.Random(f"{point.point_id} {number}")
    seconds = ALONE_S / pace * noise.uniform(0.99, 1.01)
    curve = samples.curve(number, point.ranks, 4, seconds)
    return RunResult(
        point_id=point.point_id,
        run=number,
        seed=number - 1,
        ranks=point.ranks,
        attempt=1,
        launched_at="2030-01-01T00:00:00+00:00",
        launched_at_ns=0,
        total_s=4 * seconds + 4,
        wall_s=4 * seconds + 4,
        epochs=curve.epochs,
        test_loss=0.07,
        test_accuracy=noise.uniform(0.974, 0.979),
        parameters=690_590,
        load_s=0.05,
        steps=376,
        weights_sha256="w",
        oversubscribed=False,
    )


def _with_ledger(row: PointResult) -> PointResult:
    """A row with what its traces might have shown."""
    if row.efficiency is None or row.speedup is None:
        return row
    ranks, efficiency = row.point.ranks, min(1.0, row.speedup.median / row.point.ranks)
    ledgers = tuple(samples.rank_ledger(ranks, efficiency, rank, ranks, 4) for rank in range(ranks))
    mean: dict[str, float | None] = {k: sum(one[k] or 0.0 for one in ledgers) / ranks for k in LEDGER_KINDS}
    return replace(
        row,
        ledger_s=mean,
        rank_ledgers_s=ledgers,
        median_run=2,
        message_bytes=GRADIENT_BYTES * (2 if row.point.servers else 1) if ranks > 1 else 0.0,
        exposed_share=1 - efficiency,
    )


def hostile(text: str) -> StudyResults:
    """Rivals whose every name is `text` and something that tells them apart."""
    results = rivals()
    points = tuple(
        replace(point, series=f"{text} {n}", label=f"{text} {n}", point=replace(point.point, strategy=text))
        for n, point in enumerate(results.points)
    )
    return replace(results, points=points)
