"""Real ranks, killed for real: what is resumed, what is said, what is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from paceline.analyze.run.ledger import ledgers
from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.run import RankReport, RunResult
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import pulse
from paceline.storage.span_stream import read_spans

FAULTS = int(os.environ.get("FAULTS", "1"))
STUDY = """
[study]
name = "faults"
[data]
dataset = "digits"
validation = 0.1
[model]
name = "{model}"
[train]
batch_global = 48
epochs = {epochs}
checkpoint_every = 7
[run]
ranks = [{ranks}]
repeats = 1
strategy = "{strategy}"
"""
SLOW_MODEL = """
import time
from torch import nn
from paceline.identity import this_rank

RANK = this_rank().rank

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Dropout(0.2), nn.Linear(32, 10))
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        {act}
        return self.layers(x)

def build():
    return Slow()
"""


class Study:
    """A study as a user runs it, in a process of its own."""

    def __init__(self, folder: Path, *, ranks: int, strategy: str = "ddp", epochs: int = 3, act: str = "pass") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "slow.py").write_text(SLOW_MODEL.format(act=act))
        (folder / "study.toml").write_text(
            STUDY.format(model="slow.py:build", epochs=epochs, ranks=ranks, strategy=strategy)
        )
        self.out = folder / "out"
        self.command = [sys.executable, "-m", "paceline", "study", str(folder / "study.toml"), "--out", str(self.out)]

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self) -> tuple[int, str]:
        process = self.start()
        out, err = process.communicate(timeout=120)
        return process.returncode, out + err

    @property
    def folder(self) -> RunFolder:
        found = list(self.out.glob("points/*/runs/1"))
        return RunFolder(found[0] if found else self.out / "not yet")

    def result(self) -> RunResult:
        return read_record(self.folder.result, RunResult)

    def wait_for_step(self, step: int) -> None:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            now = pulse(self.folder.rank_pulse(0))
            if now is not None and now.step >= step:
                return
            time.sleep(0.01)
        pytest.fail(f"step {step} was not reached")

    def ranks(self) -> list[psutil.Process]:
        return ranks_of(self.out)


def ranks_of(folder: Path) -> list[psutil.Process]:
    """Live workers whose run folder lies in `folder`."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "paceline.training.worker" in words and words[-1].startswith(str(folder)):
            found.append(process)
    return found


def gone(folder: Path, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while ranks_of(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not ranks_of(folder)


RESUMES = [(2, "flat", 0), (4, "ddp", 1)]
RESUMES += [(1 + n % 4, ("ddp", "flat")[n // 4 % 2], n) for n in range(2, 2 * FAULTS)]
KILLS = [(2, 0), (3, 1), (4, 3)] * FAULTS


@pytest.mark.parametrize(("ranks", "strategy", "seed"), RESUMES)
def test_a_study_killed_with_its_ranks_resumes_to_the_same_bits(tmp_path, ranks, strategy, seed):
    slow = "time.sleep(0.01)"
    whole = Study(tmp_path / "whole", ranks=ranks, strategy=strategy, act=slow)
    code, said = whole.run()
    assert code == 0, said
    killed = Study(tmp_path / "killed", ranks=ranks, strategy=strategy, act=slow)
    process = killed.start()
    killed.wait_for_step(random.Random(seed).randrange(15, 60))
    process.kill()
    process.communicate()
    assert gone(killed.out, 2.0), "ranks outlived their launcher"
    assert not killed.folder.result.exists()
    code, said = killed.run()
    assert code == 0, said
    before, after = whole.result(), killed.result()
    assert after.resumed_from_step is not None and after.resumed_from_step >= 14
    assert after.total_s is None, "only a part of a resumed run was seen"
    assert after.weights_sha256 == before.weights_sha256
    assert (after.test_loss, after.test_accuracy) == (before.test_loss, before.test_accuracy)
    for one, other in zip(before.epochs, after.epochs, strict=True):
        assert (one.train_loss, one.train_accuracy, one.validation_loss) == (
            other.train_loss,
            other.train_accuracy,
            other.validation_loss,
        )


@pytest.mark.parametrize(("ranks", "victim"), KILLS)
def test_a_killed_rank_is_named_and_not_those_that_lost_it(tmp_path, ranks, victim):
    study = Study(tmp_path, ranks=ranks, act="time.sleep(0.02)", epochs=20)
    process = study.start()
    study.wait_for_step(10)
    alive = {p.environ()["PACELINE_RANK"]: p for p in study.ranks()}
    assert len(alive) == ranks
    alive[str(victim)].kill()
    killed_at = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - killed_at < 5, "named within 3 s, and the report written"
    assert process.returncode == 1
    said = out + err
    assert f"Rank {victim}" in said and "SIGKILL" in said and f"rank-000{victim}.log" in said, said
    assert "Traceback" not in out + err
    assert gone(study.out, 1.0)


def test_the_rank_whose_model_raises_is_named_and_not_those_that_lost_it(tmp_path):
    raising = "assert RANK != 1 or self.calls < 10, 'mine'"
    study = Study(tmp_path, ranks=2, act=raising)
    code, said = study.run()
    assert code == 1
    assert "Rank 1" in said and "AssertionError: mine" in said, said
    assert "Traceback" not in said
    assert read_record(study.folder.rank_report(1), RankReport).error_kind == "own"


def test_nothing_listens_beyond_loopback(tmp_path):
    study = Study(tmp_path, ranks=2, act="time.sleep(0.02)", epochs=20)
    process = study.start()
    try:
        study.wait_for_step(5)
        everyone = [*study.ranks(), psutil.Process(process.pid)]
        listening = [c for p in everyone for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]
        assert listening, "the ranks meet somewhere"
        assert {c.laddr.ip for c in listening} <= {"127.0.0.1", "::1"}
    finally:
        process.send_signal(signal.SIGINT)
        interrupted_at = time.monotonic()
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - interrupted_at < 5
    assert process.returncode == 130, out + err
    assert gone(study.out, 0.5)


@pytest.mark.parametrize("strategy", ["ddp", "flat"])
def test_the_ledger_of_a_real_run_sums_to_its_wall_time_and_shows_a_delay_as_waiting(tmp_path, strategy):
    delayed = "time.sleep(0.02 * RANK)"
    study = Study(tmp_path, ranks=2, strategy=strategy, act=delayed, epochs=2)
    code, said = study.run()
    assert code == 0, said
    result = study.result()
    traces = [read_spans(study.folder.rank_spans(rank), rank) for rank in range(2)]
    ended_ns = result.launched_at_ns + round(result.wall_s * 1e9)
    books = ledgers(traces, started_at_ns=result.launched_at_ns, ended_at_ns=ended_ns)
    for book in books:
        assert None not in book.values()
        assert sum(book.values()) == pytest.approx(result.wall_s, rel=1e-9)
    delay_s = 0.02 * result.steps
    assert books[0]["comm-wait"] > 0.6 * delay_s, "the prompt rank waits for the delayed one"
    assert books[1]["forward"] > 0.9 * delay_s
    # In the median: what else a busy machine does to a rank, a slow disk at a checkpoint first of all, is waiting too.
    prompt, late = (_issued_in_steps(trace) for trace in traces)
    assert statistics.median(late[which] - prompt[which] for which in late) > 0.6 * 0.02e9


def _issued_in_steps(trace):
    """When a rank issued each collective of its steps, by group and number."""
    of_steps = np.flatnonzero((trace.kind == SPAN_KINDS.index("collective")) & (trace.step >= 0))
    return {(trace.group[at], int(trace.sequence[at])): int(trace.start_ns[at]) for at in of_steps}


def test_json_is_one_object_and_nothing_else(tmp_path):
    study = Study(tmp_path, ranks=1)
    done = subprocess.run([*study.command, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (point,) = answer["points"]
    assert sum(v for v in point["ledger_s"].values() if v) == pytest.approx(point["total_s"]["median"], rel=1e-6)
