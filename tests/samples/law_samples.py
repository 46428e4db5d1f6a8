"""Results of studies that never ran and follow a scaling law: runs made up, then analysed as real ones are."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paceline.analyze.study.study_results import study_results
from paceline.records.results import StudyResults
from paceline.records.run import RunResult
from paceline.records.settings import TrainSettings
from paceline.records.study import Point, Study
from samples import report_samples as samples
from samples.trace_samples import traces_of

RANKS = (1, 2, 4, 8, 16)
CONTENTION, COHERENCY = 0.03, 0.0015

Pace = Callable[[int], float]
"""The speed-up over one rank."""


def usl(contention: float = CONTENTION, coherency: float = COHERENCY) -> Pace:
    return lambda n: n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def amdahl(serial: float = CONTENTION) -> Pace:
    return usl(serial, 0.0)


def gustafson(serial: float = CONTENTION) -> Pace:
    return lambda n: n - serial * (n - 1)


def throughputs(
    pace: Pace, chance: random.Random, *, ranks: Sequence[int] = RANKS, repeats: int = 5, noise: float = 0.02
) -> dict[int, dict[int, float]]:
    """Samples per second by ranks and number of the run; what a repeat has in common is more than its noise."""
    common = [0.05 * math.sin(7 * repeat) for repeat in range(repeats)]
    return {
        n: {r + 1: 1000 * pace(n) * math.exp(common[r] + chance.gauss(0, noise)) for r in range(repeats)} for n in ranks
    }


def study(
    pace: Pace | Mapping[str, Pace],
    *,
    ranks: Sequence[int] = RANKS,
    repeats: int = 5,
    noise: float = 0.01,
    weak: bool = False,
    seed: int = 3,
    told: Callable[[Point], dict[str, Any]] = lambda point: {},
) -> StudyResults:
    """A study at such a pace; of several strategies where there are several, one rank being run once for all."""
    asked = replace(samples.study_of(tuple(ranks), repeats, 4), title="How far it scales")
    if weak:
        train = TrainSettings(batch_per_rank=32, epochs=4)
        asked = replace(asked, train=train, run=replace(asked.run, scaling="weak"))
    paces = pace if isinstance(pace, Mapping) else {"ddp": pace}
    if len(paces) > 1:
        asked = replace(asked, vary={"run.strategy": tuple(paces)})
    chance, points, runs = random.Random(seed), [], []
    for number, (strategy, own) in enumerate(paces.items()):
        shown = [n for n in ranks if number == 0 or n > 1]
        found = {n: replace(_point(asked, n), strategy=strategy) for n in shown}
        points += found.values()
        measured = throughputs(own, chance, ranks=shown, repeats=repeats, noise=noise)
        runs += [
            replace(_run(found[n], run, pace_), **told(found[n]))
            for n, by_run in measured.items()
            for run, pace_ in by_run.items()
        ]
    return study_results(
        asked,
        "studies/laws",
        points,
        runs,
        traces=traces_of(()),
        machine=samples.machine_of(cores=max(ranks)),
        expected_runs=len(runs),
    )


def _point(asked: Study, ranks: int) -> Point:
    return Point(
        data=asked.data, data_digest="d" * 64, model=asked.model, model_digest="", train=asked.train, ranks=ranks
    )


def _run(point: Point, number: int, samples_per_s: float) -> RunResult:
    curve = samples.curve(number, point.ranks, 4, 1.0)
    epochs = tuple(replace(epoch, epoch_s=epoch.samples / samples_per_s) for epoch in curve.epochs)
    return RunResult(
        point_id=point.point_id,
        run=number,
        seed=number - 1,
        ranks=point.ranks,
        attempt=1,
        launched_at="2030-01-01T00:00:00+00:00",
        launched_at_ns=0,
        total_s=60.0,
        wall_s=60.0,
        epochs=epochs,
        test_loss=0.07,
        test_accuracy=0.97,
        parameters=690_590,
        load_s=0.05,
        steps=376,
        weights_sha256="w",
        oversubscribed=False,
    )
