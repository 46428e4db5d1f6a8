"""Records made by hand: a study of 1, 2 and 4 ranks, its runs, their spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from paceline.records.rank_trace import RankTrace
from paceline.records.run import Epoch, Machine, RunResult
from paceline.records.settings import TrainSettings
from paceline.records.study import Point, Study
from samples.trace_samples import Row, allreduce, trace_of

SECOND = 1_000_000_000


def make_point(ranks: int = 1, strategy: str = "ddp") -> Point:
    study = Study(name="by-hand", train=TrainSettings(batch_global=128, epochs=3))
    return Point(
        data=study.data,
        data_digest="d",
        model=study.model,
        model_digest="",
        train=study.train,
        ranks=ranks,
        strategy=strategy,
    )


def make_epoch(
    number: int, epoch_s: float, *, samples: int = 12_000, whole: bool = True, resumed: bool = False
) -> Epoch:
    return Epoch(
        epoch=number,
        step=number * 94,
        samples=samples,
        train_loss=0.5,
        train_accuracy=0.8,
        validation_loss=None,
        validation_accuracy=None,
        epoch_s=epoch_s,
        evaluate_s=0.1,
        whole=whole,
        resumed=resumed,
    )


def make_run(point: Point, number: int = 1, epoch_s: float = 4.0, **changed: object) -> RunResult:
    fields: dict[str, object] = {
        "point_id": point.point_id,
        "run": number,
        "seed": number - 1,
        "ranks": point.ranks,
        "attempt": 1,
        "launched_at": "2030-01-01T00:00:00+00:00",
        "launched_at_ns": 100 * SECOND,
        "total_s": 10.0,
        "wall_s": 10.0,
        "epochs": (make_epoch(1, 3 * epoch_s), make_epoch(2, epoch_s)),
        "test_loss": 0.1,
        "test_accuracy": 0.97,
        "parameters": 690_590,
        "load_s": 0.01,
        "steps": 188,
        "weights_sha256": "w",
        "oversubscribed": False,
    }
    return RunResult(**(fields | changed))  # pyright: ignore[reportArgumentType]


def make_machine(**changed: object) -> Machine:
    fields: dict[str, object] = {
        "hosts": ("here",),
        "cpu": "a processor",
        "cores": 2,
        "logical_cores": 2,
        "memory_bytes": 8_000_000_000,
        "gpus": (),
        "platform": "Linux",
        "affinity": ((0,), (1,)),
        "threads": (1, 1),
        "devices": ("cpu", "cpu"),
        "backend": "gloo",
        "versions": {"torch": "2.13", "paceline": "0.1.0"},
    }
    return Machine(**(fields | changed))  # pyright: ignore[reportArgumentType]


def make_trace(spans: Sequence[tuple], rank: int = 0, *, truncated: bool = False) -> RankTrace:
    """From (kind, start, end) for a span of the main thread and ("collective", start, sequence) for a message."""
    rows = [allreduce(at, last) if kind == "collective" else Row(kind, at, last) for kind, at, last in spans]
    return trace_of(rows, rank, truncated=truncated)


@pytest.fixture
def point() -> Callable[..., Point]:
    return make_point


@pytest.fixture
def epoch() -> Callable[..., Epoch]:
    return make_epoch


@pytest.fixture
def run() -> Callable[..., RunResult]:
    return make_run


@pytest.fixture
def machine() -> Callable[..., Machine]:
    return make_machine


@pytest.fixture
def trace() -> Callable[..., RankTrace]:
    return make_trace
