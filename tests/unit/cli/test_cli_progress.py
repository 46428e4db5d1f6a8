"""The lines of a study as it runs, from its events."""

from __future__ import annotations

import io
from dataclasses import fields, replace
from pathlib import Path

import pytest

from paceline.cli.console import Console
from paceline.cli.progress import PLAIN_EVERY_S, StudyProgress, left_text
from paceline.cli.train import EpochProgress
from paceline.data.cache import Dataset
from paceline.data.store import Prepared
from paceline.records.run import Epoch, RunResult
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point, Run, Study
from paceline.storage.folder import StudyFolder
from paceline.studies.execute.events import (
    DataReady,
    Note,
    RunFailed,
    RunFinished,
    RunProgress,
    RunSkipped,
    RunStarted,
    StudyLoaded,
    StudyStarted,
    StudyStopped,
)
from samples.finished_study import epoch

POINT = Point(
    data=DataSettings(),
    data_digest="",
    model=ModelSettings(),
    model_digest="",
    train=TrainSettings(batch_global=8, epochs=2),
    ranks=2,
)
RUN = Run(point=POINT, number=2)
RESULT = RunResult(
    point_id=POINT.point_id,
    run=2,
    seed=1,
    ranks=2,
    attempt=1,
    launched_at="",
    launched_at_ns=0,
    total_s=9.0,
    wall_s=9.0,
    epochs=(replace(epoch(1, 6.0), samples=12_000), replace(epoch(2, 4.21), samples=12_000)),
    test_loss=0.1,
    test_accuracy=0.971,
    parameters=1,
    load_s=0.1,
    steps=16,
    weights_sha256="",
    oversubscribed=False,
)
PREPARED = Prepared(
    dataset=Dataset(
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
    ),
    folder=Path(),
    note="MNIST could not be had",
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def err() -> io.StringIO:
    return io.StringIO()


def progress_event(step: int, left_s: float | None = 75.0, total_steps: int = 188) -> RunProgress:
    fraction = step / total_steps if total_steps else 0.0
    return RunProgress(
        run=RUN,
        index=3,
        total=10,
        phase="startup",
        step=step,
        total_steps=total_steps,
        fraction=fraction,
        left_s=left_s,
    )


def lines(err: io.StringIO) -> list[str]:
    text = err.getvalue()
    err.truncate(0)
    err.seek(0)
    return text.splitlines()


def test_a_line_per_run_as_it_ends(err: io.StringIO) -> None:
    with StudyProgress(Console(io.StringIO(), err)) as progress:
        progress(RunFinished(run=RUN, result=RESULT, index=3, total=10))
        progress(RunFailed(run=RUN, index=4, total=10, message="Rank 1 died.\nIts log: x"))
        progress(RunSkipped(run=RUN, index=5, total=10, result=None))
        progress(RunSkipped(run=RUN, index=6, total=10, result=RESULT))
    assert lines(err) == [
        "[ OK ] (3/10) 2 ranks, run 2: epoch 4.21 s, 2,850 samples/s, test accuracy 97.1 %",
        "[FAIL] (4/10) 2 ranks, run 2: Rank 1 died.",
        "       Its log: x",
        "[SKIP] (5/10) 2 ranks, run 2: not run, because its point has failed",
    ]


def test_what_is_said_before_the_first_run(err: io.StringIO) -> None:
    progress = StudyProgress(Console(io.StringIO(), err))
    progress(Note(text="trying the official download"))
    progress(DataReady(prepared=PREPARED))
    progress(DataReady(prepared=replace(PREPARED, note=None)))
    started = {
        "study": Study(name="s"),
        "folder": Path(),
        "points": (POINT,),
        "placements": ("on core 0", "on cores 0 and 1"),
        "total": 10,
    }
    progress(StudyStarted(**started, finished=4))
    assert lines(err) == [
        "trying the official download",
        "[WARN] MNIST could not be had",
        "Placement  on core 0",
        "           on cores 0 and 1",
        "Resumed    4 of 10 runs are finished already",
    ]
    assert (progress.finished, progress.total) == (4, 10)
    progress(RunFinished(run=RUN, result=RESULT, index=5, total=10))
    assert progress.finished == 5


def test_points_are_named_by_what_the_study_varies(err: io.StringIO) -> None:
    progress = StudyProgress(Console(io.StringIO(), err))
    study = Study(name="s", vary={"run.strategy": ("ddp", "flat"), "run.threads": (1, 2)})
    placements = ("on core 0", "on core 0", "on cores 0 and 1")
    progress(StudyStarted(study=study, folder=Path(), points=(POINT,), placements=placements, total=10, finished=0))
    progress(RunFinished(run=RUN, result=RESULT, index=3, total=10))
    progress(StudyStopped(run=RUN, index=4, total=10, reason="Stopped: the budget is 1 rank-hours."))
    assert lines(err) == [
        "Placement  on core 0",
        "           on cores 0 and 1",
        "[ OK ] (3/10) 2 ranks, ddp, 1 thread, run 2: epoch 4.21 s, 2,850 samples/s, test accuracy 97.1 %",
        "[STOP] (4/10) 2 ranks, ddp, 1 thread, run 2: Stopped: the budget is 1 rank-hours.",
    ]


def test_a_run_that_waits_in_a_queue_says_so_and_why(err: io.StringIO) -> None:
    clock = Clock()
    progress = StudyProgress(Console(io.StringIO(), err), clock=clock)
    clock.now = 20.0
    progress(replace(progress_event(0, left_s=None, total_steps=0), phase="queued (Priority)"))
    assert lines(err) == ["[....] (3/10) 2 ranks, run 2: queued (Priority)"]


def test_without_a_terminal_a_line_comes_now_and_then(err: io.StringIO) -> None:
    clock = Clock()
    with StudyProgress(Console(io.StringIO(), err), clock=clock) as progress:
        progress(RunStarted(run=RUN, index=3, total=10, attempt=1))
        for second in range(100):
            clock.now = second / 2
            progress(progress_event(second))
    assert lines(err) == [f"[....] (3/10) 2 ranks, run 2: step {step} of 188, 1 min 15 s left" for step in (30, 60, 90)]
    assert PLAIN_EVERY_S == 15


def test_before_the_first_step_the_phase_is_shown(err: io.StringIO) -> None:
    clock = Clock()
    progress = StudyProgress(Console(io.StringIO(), err), clock=clock)
    clock.now = 20.0
    progress(progress_event(0, left_s=None, total_steps=0))
    assert lines(err) == ["[....] (3/10) 2 ranks, run 2: startup"]


def test_on_a_terminal_a_bar_shows_the_time_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    err = Terminal()
    with StudyProgress(Console(io.StringIO(), err)) as progress:
        progress(StudyLoaded(study=Study(name="s", train=TrainSettings(batch_global=8)), folder=tmp_path))
        progress(RunStarted(run=RUN, index=3, total=10, attempt=1))
        progress(progress_event(94))
        progress._bar.refresh()
        shown = err.getvalue()
        progress(RunFinished(run=RUN, result=RESULT, index=3, total=10))
    assert "(3/10) 2 ranks, run 2" in shown and "25 %" in shown and "1 min 15 s left" in shown
    assert "\x1b[?25h" in err.getvalue(), "the cursor has to come back"


@pytest.mark.parametrize(
    ("left_s", "text"), [(None, ""), (0.0, "1 s left"), (41.6, "42 s left"), (75.2, "1 min 15 s left")]
)
def test_time_left(left_s: float | None, text: str) -> None:
    assert left_text(left_s) == text


HEADER = ",".join(field.name for field in fields(Epoch)) + "\n"
FIRST = "1,8,12000,0.412,0.876,,,4.0,0.1,True,False\n"
SECOND = "2,16,12000,0.129,0.961,0.2,0.95,3.0,0.1,True,False\n"


def test_epochs_are_shown_as_they_come_and_once(tmp_path: Path, err: io.StringIO) -> None:
    curves = StudyFolder(tmp_path).run(POINT.point_id, 2).curves
    curves.parent.mkdir(parents=True)
    curves.write_text(HEADER + FIRST + SECOND)  # of an earlier attempt
    progress = EpochProgress(Console(io.StringIO(), err))
    progress(StudyStarted(study=Study(name="s"), folder=tmp_path, points=(POINT,), placements=(), total=1, finished=0))
    progress(RunStarted(run=RUN, index=1, total=1, attempt=2))
    progress(progress_event(1))
    assert lines(err) == []
    curves.unlink()
    progress(progress_event(2))
    curves.write_text(HEADER + FIRST)
    progress(progress_event(8))
    progress(progress_event(9))
    assert lines(err) == ["  epoch 1: loss 0.412, accuracy 87.6 %, 4.00 s, 3,000 samples/s"]
    curves.write_text(HEADER + FIRST + SECOND)
    progress(RunFinished(run=RUN, result=RESULT, index=1, total=1))
    shown = lines(err)
    assert shown[0] == "  epoch 2: loss 0.129, accuracy 96.1 %, validation accuracy 95.0 %, 3.00 s, 4,000 samples/s"
    assert len(shown) == 2 and shown[1].startswith("[ OK ]")
