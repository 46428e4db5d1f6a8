"""Results of studies that never ran, with the figures of ones that might have: what reports are tested on."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from paceline.analyze.points.losses import lost_shares
from paceline.records.finding import Finding
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Curve, Interval, PointResult, Spread, StudyResults
from paceline.records.run import Epoch, Machine
from paceline.records.settings import DataSettings, ModelSettings, RunSettings, TrainSettings
from paceline.records.study import Point, Study
from paceline.units import counted

HOSTILE = (
    "</script><script>document.documentElement.dataset.owned=1</script>",
    '"><img src=x onerror="document.documentElement.dataset.owned=1">',
    "'><svg/onload=document.documentElement.dataset.owned=1>",
    "<!--<script>",
    "]]>&lt;b&gt; & &amp; \u2028\u2029 ${verdict} $title {0} %s %{x}",
    "javascript:document.documentElement.dataset.owned=1//",
    "[bold red]not markup[/] [link=file:///etc]x[/link] :smile:",
    "\x1b[31mred\x1b]8;;file:///x\x07 \x00 \r\n\t \x9b2J",
    "../../etc/passwd; rm -rf $HOME `id` \\u003c",
    "lone surrogate \udcff, override \u202egnp.exe, a very long" + "g" * 300,
)

_SHARES = {
    "startup": 2.1,
    "load": 0.05,
    "input-wait": 0.12,
    "forward": 6.2,
    "backward": 11.8,
    "comm-wait": 0.0,
    "comm-transfer": 0.0,
    "optimizer": 1.1,
    "evaluate": 1.4,
    "checkpoint": 0.0,
    "other": 0.31,
}
_TRAIN_SAMPLES = 12_000


def typical(*, ranks: tuple[int, ...] = (1, 2, 4), repeats: int = 5, epochs: int = 4) -> StudyResults:
    """A finished strong-scaling study on a machine with a core for every rank."""
    study = study_of(ranks, repeats, epochs)
    points = tuple(point_result(study, n, repeats, epochs, first=ranks[0]) for n in ranks)
    points = tuple(
        replace(point, lost_shares=lost_shares(_costs_s(points[0]), _costs_s(point)), baseline=points[0].point_id)
        for point in points
    )
    return StudyResults(
        study=study,
        folder="studies/mnist-scaling",
        baseline=points[0].point_id,
        points=points,
        findings=(),
        machine=machine_of(cores=max(ranks)),
        expected_runs=repeats * len(ranks),
        commit="4f1c2a9d0b7e",
    )


def _costs_s(point: PointResult) -> dict[str, float | None]:
    """Rank-seconds of the loop, all on the same samples."""
    outside = {"startup", "load", "evaluate", "other"}
    return {k: 0.0 if k in outside else (s or 0.0) * point.point.ranks for k, s in (point.ledger_s or {}).items()}


def two_points() -> StudyResults:
    """The default study: one rank against two, two epochs."""
    return typical(ranks=(1, 2), epochs=2)


def many_points() -> StudyResults:
    """Ranks over two orders of magnitude."""
    return typical(ranks=(1, 2, 4, 8, 16, 32, 64), epochs=12)


def partial() -> StudyResults:
    """Stopped after three of fifteen runs."""
    results = typical()
    first, second, third = results.points
    rows = (_with_runs(first, 2), _with_runs(second, 1), _unmeasured(third))
    return replace(results, points=rows, findings=(_missing(results, 3),))


def failed() -> StudyResults:
    """The point with four ranks died every time."""
    results = typical()
    failure = "Rank 3 on node-a was killed by signal 9 (SIGKILL) at step 41.\nIts log: runs/1/logs/rank-0003.log"
    last = replace(_unmeasured(results.points[-1]), failure=failure)
    return replace(results, points=(*results.points[:-1], last))


def oversubscribed() -> StudyResults:
    """Four ranks on two cores."""
    results = typical()
    last = replace(
        results.points[-1],
        oversubscribed=True,
        epoch_s=interval(9.87 / 2.05, 0.09),
        samples_per_s=interval(1215.8 * 2.05, 45),
        speedup=interval(2.05, 0.04),
        efficiency=interval(2.05 / 4, 0.01),
    )
    finding = Finding(
        code="more-ranks-than-cores",
        severity="warning",
        values={"cores": 2, "threads": (("4 ranks", 1),)},
        points=(last.point_id,),
    )
    rows = (*results.points[:-1], last)
    return replace(results, points=rows, findings=(finding,), machine=machine_of(cores=2))


def single_point() -> StudyResults:
    """One rank alone: nothing to compare with."""
    return typical(ranks=(1,))


def few_repeats() -> StudyResults:
    """Three repeats: ranges, no intervals."""
    results = typical(ranks=(1, 2), repeats=3)
    return replace(results, points=tuple(_without_coverage(point) for point in results.points))


def nothing_finished() -> StudyResults:
    """A study of which no run is finished, on a machine that said nothing."""
    results = typical()
    points = tuple(replace(_unmeasured(point), baseline=None) for point in results.points)
    return replace(results, baseline=None, points=points, machine=None, commit=None)


def unmeasured_everywhere() -> StudyResults:
    """Runs that are finished, and whose every figure, curve and ledger is missing."""
    results = typical()
    points = tuple(replace(_unmeasured(point), runs=5) for point in results.points)
    return replace(results, points=points, machine=None)


def diverged() -> StudyResults:
    """Losses and accuracies that are not numbers, and ledgers with gaps."""
    results = typical(ranks=(1, 2))
    nan = float("nan")
    points = []
    for point in results.points:
        curves = tuple(
            replace(curve, epochs=tuple(replace(e, train_loss=nan, validation_loss=float("inf")) for e in curve.epochs))
            for curve in point.curves
        )
        ledger = {**(point.ledger_s or {}), "comm-wait": None, "comm-transfer": None}
        spread = Spread(mean=nan, std=nan, n=5)
        rows = tuple({**row, "comm-wait": None, "comm-transfer": None} for row in point.rank_ledgers_s)
        points.append(
            replace(point, curves=curves, ledger_s=ledger, rank_ledgers_s=rows, test_loss=spread, lost_shares={})
        )
    return replace(results, points=tuple(points))


def hostile(text: str) -> StudyResults:
    """Results in which every string is `text`, those that name a kind of the ledger or a severity included."""
    results = replace(oversubscribed(), study=study_of((1, 2, 4), 5, 4, model=ModelSettings(options={"layers": "2"})))
    failing = replace(results.points[0], failure="it failed")
    return _rewritten(replace(results, points=(failing, *results.points[1:])), lambda _: text)


ALL: dict[str, Callable[[], StudyResults]] = {
    "typical": typical,
    "two-points": two_points,
    "many-points": many_points,
    "partial": partial,
    "failed": failed,
    "oversubscribed": oversubscribed,
    "single-point": single_point,
    "few-repeats": few_repeats,
    "nothing-finished": nothing_finished,
    "unmeasured": unmeasured_everywhere,
    "diverged": diverged,
}


def study_of(ranks: tuple[int, ...], repeats: int, epochs: int, model: ModelSettings | None = None) -> Study:
    return Study(
        name="mnist-scaling",
        title="Strong scaling of a small convolutional network",
        question="How much faster does a network of 690,590 parameters train on MNIST with more ranks?",
        data=DataSettings(dataset="mnist", train_samples=_TRAIN_SAMPLES, validation=2000),
        model=model or ModelSettings(name="cnn-690k"),
        train=TrainSettings(batch_global=128, epochs=epochs),
        run=RunSettings(ranks=ranks, repeats=repeats, scaling="strong"),
    )


def point_result(study: Study, ranks: int, repeats: int, epochs: int, *, first: int) -> PointResult:
    point = Point(
        data=study.data, data_digest="d" * 64, model=study.model, model_digest="", train=study.train, ranks=ranks
    )
    ratio = ranks / first
    # Seven per cent more lost with every doubling, as an exchange of gradients might cost.
    efficiency = 1.0 if ratio == 1 else 0.94 * 0.93 ** (int(ratio).bit_length() - 2)
    epoch_s = 9.87 / (ratio * efficiency)
    ledgers = tuple(rank_ledger(ratio, efficiency, rank, ranks, epochs) for rank in range(ranks))
    mean: dict[str, float | None] = {
        kind: sum(ledger[kind] or 0.0 for ledger in ledgers) / ranks for kind in LEDGER_KINDS
    }
    fixed = Interval(median=1.0, low=1.0, high=1.0, n=repeats, coverage=_coverage(repeats))
    return PointResult(
        point_id=point.point_id,
        point=point,
        label=counted(ranks, "rank"),
        runs=repeats,
        epoch_s=interval(epoch_s, 0.012 * epoch_s, repeats),
        total_s=interval(sum(value or 0.0 for value in mean.values()), 0.3, repeats),
        samples_per_s=interval(_TRAIN_SAMPLES / epoch_s, 0.012 * _TRAIN_SAMPLES / epoch_s, repeats),
        speedup=fixed if ratio == 1 else interval(ratio * efficiency, 0.025 * ratio, repeats),
        efficiency=fixed if ratio == 1 else interval(efficiency, 0.025, repeats),
        load_s=interval(0.05, 0.004, repeats),
        test_accuracy=Spread(mean=0.9782 - 0.0004 * ratio, std=0.0021, n=repeats),
        test_loss=Spread(mean=0.071, std=0.004, n=repeats),
        ledger_s=mean,
        rank_ledgers_s=ledgers,
        median_run=min(3, repeats),
        curves=tuple(curve(run, ranks, epochs, epoch_s) for run in range(1, repeats + 1)),
        parameters=690_590,
        oversubscribed=False,
    )


def rank_ledger(ratio: float, efficiency: float, rank: int, ranks: int, epochs: int) -> dict[str, float | None]:
    """Seconds of one rank, of which the loop loses 1 − efficiency: mostly to waiting, a third to transfer."""
    length = epochs / 2
    divided = {"input-wait", "forward", "backward", "optimizer", "evaluate"}
    ledger: dict[str, float | None] = {
        kind: value / ratio * length if kind in divided else value for kind, value in _SHARES.items()
    }
    if ranks > 1:
        loop_s = sum(_SHARES[kind] for kind in divided - {"evaluate"}) / ratio * length
        lost_s = loop_s / efficiency - loop_s
        uneven = 1.3 if rank % 2 else 0.7
        ledger["comm-wait"] = lost_s * 0.65 * uneven
        ledger["comm-transfer"] = lost_s * 0.35
        ledger["backward"] = (ledger["backward"] or 0.0) + lost_s * 0.65 * (1 - uneven)
    return ledger


def curve(run: int, ranks: int, epochs: int, epoch_s: float) -> Curve:
    noise = random.Random(100 * ranks + run)
    rows = []
    for epoch in range(1, epochs + 1):
        loss = 0.42 / epoch**0.9 + noise.uniform(-0.012, 0.012) / epoch
        rows.append(
            Epoch(
                epoch=epoch,
                step=94 * epoch,
                samples=_TRAIN_SAMPLES,
                train_loss=loss,
                train_accuracy=1 - loss * 0.3,
                validation_loss=loss * 0.9 + 0.03,
                validation_accuracy=1 - (loss * 0.9 + 0.03) * 0.3,
                epoch_s=epoch_s + noise.uniform(-0.05, 0.05),
                evaluate_s=0.7,
                whole=True,
            )
        )
    return Curve(run=run, seed=run - 1, epochs=tuple(rows))


def interval(median: float, half: float, n: int = 5) -> Interval:
    return Interval(median=median, low=median - half, high=median + 0.7 * half, n=n, coverage=_coverage(n))


def _coverage(n: int) -> float | None:
    return 1 - 2 / 2**n if n >= 5 else None


def machine_of(cores: int) -> Machine:
    return Machine(
        hosts=("node-a",),
        cpu="AMD EPYC 7763 64-Core Processor",
        cores=cores,
        logical_cores=2 * cores,
        memory_bytes=16_800_000_000,
        gpus=(),
        platform="Linux 6.1 x86_64",
        affinity=tuple((core,) for core in range(min(cores, 4))),
        threads=(1,) * min(cores, 4),
        devices=("cpu",) * min(cores, 4),
        backend="gloo",
        versions={"paceline": "0.1.0", "python": "3.11.7", "torch": "2.13.0"},
    )


def _with_runs(point: PointResult, runs: int) -> PointResult:
    """The same point when only so many of its runs are finished."""
    accuracy = Spread(mean=0.9774, std=0.0021 if runs > 1 else None, n=runs)
    figures = _without_coverage(point, runs)
    return replace(figures, runs=runs, curves=point.curves[:runs], median_run=1, test_accuracy=accuracy)


def _without_coverage(point: PointResult, runs: int = 3) -> PointResult:
    intervals: dict[str, Any] = {}
    for name in ("epoch_s", "total_s", "samples_per_s", "speedup", "efficiency", "load_s"):
        interval = replace(getattr(point, name), n=runs, coverage=None)
        intervals[name] = interval if runs > 1 else replace(interval, low=interval.median, high=interval.median)
    return replace(point, **intervals)


def _unmeasured(point: PointResult) -> PointResult:
    nothing = dict.fromkeys(
        ("epoch_s", "total_s", "samples_per_s", "speedup", "efficiency", "load_s", "test_accuracy", "test_loss")
    )
    return replace(
        point,
        **nothing,
        runs=0,
        ledger_s=None,
        rank_ledgers_s=(),
        median_run=None,
        curves=(),
        parameters=None,
        lost_shares={},
    )


def _missing(results: StudyResults, finished: int) -> Finding:
    return Finding(
        code="missing-runs",
        severity="warning",
        values={
            "finished": finished,
            "expected": results.expected_runs,
            "failures": (),
            "points": len(results.points),
        },
    )


def _rewritten(part: Any, change: Callable[[str], str]) -> Any:
    if isinstance(part, str):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_rewritten(item, change) for item in part)
    if isinstance(part, dict):
        # Keys of a ledger are ours; the names of options and versions are the user's.
        rewritable = not set(part) <= set(LEDGER_KINDS)
        return {change(key) if rewritable else key: _rewritten(value, change) for key, value in part.items()}
    if isinstance(part, Finding):  # its code and the names of its values are ours
        values = {name: _rewritten(value, change) for name, value in part.values.items()}
        points = tuple(map(change, part.points))
        return replace(part, severity=change(part.severity), values=values, points=points)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        changed = {field.name: _rewritten(getattr(part, field.name), change) for field in dataclasses.fields(part)}
        return replace(part, **changed)
    return part
