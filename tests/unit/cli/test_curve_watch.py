"""Faults of a run are said while it runs, each once, as the line of its epoch appears."""

from __future__ import annotations

import csv
import io
import math
import os
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from paceline.cli.console import Console
from paceline.cli.curve_watch import CurveWatch
from paceline.cli.progress import StudyProgress
from paceline.data.cache import Dataset
from paceline.data.store import Prepared
from paceline.records.run import Epoch, RunResult
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point, Run, Study
from paceline.storage.folder import StudyFolder
from paceline.studies.execute.events import DataReady, RunFinished, RunProgress, RunStarted, StudyStarted
from samples.finished_study import epoch

AT_CHANCE = {"validation_loss": math.log(10), "validation_accuracy": 0.1}
LEARNS = {"validation_loss": 0.3, "validation_accuracy": 0.9}


def write(path: Path, *epochs: Epoch) -> None:
    """A curves file as a rank writes it, newer than the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat().st_mtime_ns if path.exists() else 0
    with path.open("w", newline="") as file:
        lines = csv.DictWriter(file, [field.name for field in fields(Epoch)])
        lines.writeheader()
        lines.writerows(asdict(each) for each in epochs)
    at = max(path.stat().st_mtime_ns, before + 1_000_000)
    os.utime(path, ns=(at, at))


def test_each_fault_is_said_once_when_its_line_appears(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    watch = CurveWatch(path, classes=10)
    assert watch.look() == []
    first = replace(epoch(1, 1.0), **AT_CHANCE)
    write(path, first)
    (said,) = watch.look()
    assert said.startswith("after epoch 1 it is at chance: loss 2.30 (guessing: 2.30), accuracy 10.0 %")
    assert watch.look() == []
    lost = replace(epoch(2, 1.0), train_loss=math.nan, **AT_CHANCE)
    write(path, first, lost)
    assert watch.look() == ["the training loss is nan in epoch 2: it diverged"], "what was said is not said again"


def test_a_run_that_learns_has_nothing_to_say(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    watch = CurveWatch(path, classes=10)
    write(path, replace(epoch(1, 1.0), **LEARNS))
    assert watch.look() == []


def test_lines_of_an_earlier_attempt_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    write(path, replace(epoch(1, 1.0), train_loss=math.nan))
    watch = CurveWatch(path, classes=10)
    assert watch.look() == []
    write(path, replace(epoch(1, 1.0), **LEARNS))
    assert watch.look() == []


@pytest.mark.parametrize("text", ["", "epoch\nseven\n", "\x00\xff", "epoch,step\n1,2\n"])
def test_a_damaged_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "curves.csv"
    watch = CurveWatch(path, classes=10)
    path.write_text(text)
    assert watch.look() == []


def test_the_end_of_a_short_run_is_looked_at_too(tmp_path: Path) -> None:
    watch = CurveWatch(tmp_path / "curves.csv", classes=10)
    assert watch.faults([replace(epoch(1, 1.0), train_loss=math.inf)]) == [
        "the training loss is inf in epoch 1: it diverged"
    ]


def test_a_study_warns_while_the_run_is_on(tmp_path: Path) -> None:
    point = Point(
        data=DataSettings(),
        data_digest="",
        model=ModelSettings(),
        model_digest="",
        train=TrainSettings(batch_global=8, epochs=2),
        ranks=2,
    )
    run, err = Run(point=point, number=2), io.StringIO()
    dataset = Dataset(
        name="digits",
        digest="",
        shape=(8, 8, 1),
        classes=10,
        train=1,
        test=1,
        dtype="uint8",
        mean=(0.0,),
        std=(1.0,),
        source="",
    )
    curves = StudyFolder(tmp_path).run(point.point_id, 2).curves
    where = {"run": run, "index": 3, "total": 10}
    moved = RunProgress(**where, phase="compute", step=9, total_steps=16, fraction=0.5, left_s=None)
    with StudyProgress(Console(io.StringIO(), err)) as progress:
        progress(DataReady(prepared=Prepared(dataset=dataset, folder=Path(), note=None)))
        started = {"study": Study(name="s"), "folder": tmp_path, "points": (point,), "placements": ()}
        progress(StudyStarted(**started, total=10, finished=2))
        progress(RunStarted(**where, attempt=1))
        progress(moved)
        assert "WARN" not in err.getvalue()
        first = replace(epoch(1, 1.0), **AT_CHANCE)
        write(curves, first)
        progress(moved)
        assert "[WARN] (3/10) 2 ranks, run 2: after epoch 1 it is at chance" in err.getvalue()
        last = replace(epoch(2, 1.0), train_loss=math.nan)
        progress(RunFinished(**where, result=result(point, (first, last))))
    said = [line for line in err.getvalue().splitlines() if "WARN" in line]
    assert len(said) == 2 and said[1].endswith("the training loss is nan in epoch 2: it diverged")


def result(point: Point, epochs: tuple[Epoch, ...]) -> RunResult:
    return RunResult(
        point_id=point.point_id,
        run=2,
        seed=1,
        ranks=2,
        attempt=1,
        launched_at="",
        launched_at_ns=0,
        total_s=9.0,
        wall_s=9.0,
        epochs=epochs,
        test_loss=math.nan,
        test_accuracy=0.1,
        parameters=1,
        load_s=0.1,
        steps=16,
        weights_sha256="",
        oversubscribed=False,
    )
