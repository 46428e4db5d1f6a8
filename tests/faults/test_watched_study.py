"""A real study, watched from outside while it runs, and killed under the eyes of who watches it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paceline.app.live_view import LiveView
from paceline.errors import FolderError
from paceline.records.live_study import KILLED, RUNNING, Watched
from paceline.studies.folder.lock_holder import read_holder

LIMIT_S = 120
WORDS = ["study", "digits", "--ranks", "1", "--repeats", "2", "--set", "train.epochs=20000", "--out", "runs/watched"]


@pytest.fixture
def study(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A study that would take an hour."""
    environment = {**os.environ, "PACELINE_CACHE": str(tmp_path / "cache")}
    with (tmp_path / "study.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline", *WORDS], cwd=tmp_path, env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def opened(folder: Path) -> LiveView:
    """A view of a study that has begun."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            view = LiveView(folder)
            view.look()
            return view
        except FolderError as error:
            assert "paceline study NAME --out" in error.next
            assert time.monotonic() < deadline, (folder.parent.parent / "study.log").read_text()
            time.sleep(0.2)


def watched(view: LiveView, until: Callable[[Watched], bool]) -> Watched:
    deadline = time.monotonic() + LIMIT_S
    while not until(seen := view.look()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.3)
    return seen


def test_a_study_is_watched_while_it_runs_and_when_it_is_killed(tmp_path: Path, study: subprocess.Popen[bytes]) -> None:
    folder = tmp_path / "runs" / "watched"
    view = opened(folder)
    lock = read_holder(folder / "lock")
    seen = watched(view, lambda seen: seen.run is not None and seen.run.ledger_s is not None)
    run = seen.run
    assert run is not None and run.ledger_s is not None and seen.state == RUNNING
    assert (seen.done, seen.of, run.label, run.run) == (0, 2, "1 rank", 1)
    assert f"process {study.pid} on" in seen.told
    (rank,) = run.ranks
    assert rank.samples_per_s and rank.step and run.total_steps and rank.step < run.total_steps
    assert run.epochs and run.epochs[0].train_loss > 0 and run.epochs[0].validation_accuracy is not None
    assert run.ledger_step is not None and 0 < run.ledger_step <= rank.step
    assert sum(value or 0.0 for value in run.ledger_s.values()) == pytest.approx(run.ledger_reaches_s)
    assert run.ledger_s["forward"] and run.ledger_s["comm-wait"] == 0, "it communicates with nobody"
    assert seen.left_s is not None and seen.left_s > 60

    later = watched(view, lambda later: later.run is not None and (later.run.step or 0) > (rank.step or 0))
    assert later.state == RUNNING and study.poll() is None
    assert read_holder(folder / "lock") == lock, "who watches takes nothing"

    study.send_signal(signal.SIGKILL)
    study.wait()
    seen = watched(view, lambda seen: seen.state != RUNNING)
    assert seen.state == KILLED and f"process {study.pid}" in seen.told
    assert seen.next == f"paceline study {folder / 'study.toml'} --out {folder}"
    assert seen.left_s is None and seen.run is not None and seen.run.step
    done = subprocess.run([sys.executable, "-m", "paceline", "watch", str(folder)], capture_output=True, text=True)
    assert done.returncode == 1 and "It was killed" in done.stdout and "\x1b" not in done.stdout
