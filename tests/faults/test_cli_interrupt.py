"""The whole command with real ranks: run, interrupted by Ctrl-C, continued, reported."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from paceline.identity import PARENT_PID

PACELINE = [sys.executable, "-m", "paceline"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PACELINE_CACHE": str(tmp_path / "cache")}


def start(words: list[str], tmp_path: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PACELINE, *words],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ranks_of(pid: int) -> list[psutil.Process]:
    """Live ranks that this process has started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(PARENT_PID) == str(pid) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def test_a_study_with_real_ranks_stopped_by_ctrl_c_and_continued(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ["study", "digits", "--ranks", "1,2", "--repeats", "1", "--set", "train.epochs=2"]
    running = start(words, tmp_path, environment)
    assert running.stderr is not None
    try:
        told = next(line for line in running.stderr if "(1/2) 1 rank, run 1" in line)
        assert told.startswith("[ OK ]")
        deadline = time.monotonic() + 30
        while not ranks_of(running.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        asked_at = time.monotonic()
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the command and all that it started
        out, err = running.communicate(timeout=30)
        assert time.monotonic() - asked_at < 5
    finally:
        running.kill()
        running.communicate()
    assert (running.returncode, out) == (130, "")
    assert err.count("\n") == 1 and err.startswith("Interrupted: 1 of 2 runs are finished. Continue with: ")
    assert ranks_of(running.pid) == []

    kept = {path: path.read_bytes() for path in tmp_path.glob("runs/digits/points/*/runs/*/result.json")}
    again = shlex.split(err.partition("paceline ")[2])
    continued = start([*again, "--json"], tmp_path, environment)
    out, err = continued.communicate(timeout=120)
    assert continued.returncode == 0, err
    assert "1 of 2 runs are finished already" in err and "[ OK ] (2/2) 2 ranks, run 1" in err
    results = json.loads(out)
    assert [point["runs"] for point in results["points"]] == [1, 1]
    assert len(kept) == 1 and all(path.read_bytes() == data for path, data in kept.items())
    assert (tmp_path / results["report"]).is_file()
    for point in results["points"]:
        assert sum(value or 0 for value in point["ledger_s"].values()) == pytest.approx(point["total_s"]["median"])


def test_train_with_real_ranks_goes_on_from_its_checkpoint(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ["train", "digits", "--ranks", "1", "--set", "train.epochs=100", "--set", "train.checkpoint_every=200"]
    running = start(words, tmp_path, environment)
    assert running.stderr is not None
    try:
        first = next(line for line in running.stderr if "epoch" in line)
        assert first.startswith("  epoch 1: loss")
        next(line for line in running.stderr if "epoch 10:" in line)  # step 220, past the first checkpoint
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=30)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 130 and "Continue with: paceline train" in err
    again = [*shlex.split(err.strip().splitlines()[-1].partition("paceline ")[2]), "--json"]
    continued = start(again, tmp_path, environment)
    out, err = continued.communicate(timeout=120)
    assert continued.returncode == 0, err
    run = json.loads(out)["run"]
    assert run["resumed_from_step"] >= 200 and len(run["epochs"]) == 100
