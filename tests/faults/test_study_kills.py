"""A study is killed with SIGKILL, again and again, and started again: nothing finished is lost, doubled or mixed up."""

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import light_study
import psutil
import pytest
from light_study import Studies
from light_worker import weights_sha256

from paceline.records.run import Manifest, RunResult
from paceline.storage.codec import read_record
from paceline.studies.folder.bookkeeping import StudyPoints
from paceline.studies.folder.collect import Collected, collect

FAULTS = int(os.environ.get("FAULTS", "1"))
KILLS = 40 * FAULTS
STUDY = """
[study]
name = "light"
[data]
dataset = "synthetic"
shape = [2, 2, 1]
samples = 30
[model]
name = "mlp"
[train]
batch_global = 8
epochs = 1
[run]
ranks = [1, 2]
repeats = 2
"""
SETTINGS = (["train.lr=0.1"], ["train.lr=0.2", "run.ranks=2,1,3"])


@pytest.fixture(scope="module")
def studies():
    with Studies() as studies:
        yield studies


@pytest.fixture
def told(tmp_path: Path) -> dict:
    (tmp_path / "light.toml").write_text(STUDY)
    return {
        "study": tmp_path / "light.toml",
        "folder": tmp_path / "out",
        "cache": tmp_path / "cache",
        "ledger": tmp_path / "ledger",
    }


class Witness:
    """Looks at a study folder after every kill, and holds it to what it saw before."""

    def __init__(self, told: dict) -> None:
        self.folder = Path(told["folder"])
        self.ledger = Path(told["ledger"])
        self.seen: dict[Path, tuple[bytes, int, int]] = {}

    def look(self) -> None:
        """No result that was there has changed, and none is anything but whole."""
        now = {}
        for path in self.folder.glob("points/*/runs/*/result.json"):
            status = path.stat()
            now[path] = (path.read_bytes(), status.st_mtime_ns, status.st_ino)
            assert read_record(path, RunResult).point_id == path.parts[-4]
        assert self.seen.items() <= now.items(), "a finished run was lost or changed"
        self.seen = now
        assert not list(self.folder.glob("points/*/runs/*.damaged-*")), "something was found half written"
        if (self.folder / "study.toml").exists() and (self.folder / "points.json").exists():
            shown = {run.folder.result for run in collect(self.folder).runs}
            points = {point.point_id for point in read_record(self.folder / "points.json", StudyPoints).points}
            assert shown == {path for path in now if path.parts[-4] in points}

    def attempts(self) -> Counter[tuple[str, int]]:
        """How often each run was begun."""
        lines = [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []
        return Counter((point_id, int(run)) for point_id, run, _ in lines)

    def check_finished(self, collected: Collected, expected: int) -> None:
        """Every run has one result, of its own settings, and was not begun again after it had one."""
        assert len(collected.runs) == expected and not collected.failures
        last: dict[tuple[str, int], int] = {}
        for line in self.ledger.read_text().splitlines():
            point_id, run, attempt = line.split()
            assert last.get((point_id, int(run)), 0) < int(attempt), "two attempts under one number"
            last[point_id, int(run)] = int(attempt)
        for run in collected.runs:
            result, manifest = run.result, run.manifest
            assert last[result.point_id, result.run] == result.attempt, "executed again after it was finished"
            assert result.weights_sha256 == weights_sha256(manifest.point, manifest.seed)
            assert result.epochs[0].train_loss == manifest.point.train.lr == collected.study.train.lr
            assert (manifest.point.point_id, result.seed) == (result.point_id, manifest.seed)
            assert run.machine is not None, "a result came before what belongs to it"


@pytest.mark.timeout(300 * FAULTS)
def test_kills_at_random_moments(studies: Studies, told: dict, tmp_path: Path) -> None:
    """Two studies of different settings share the folder and take turns, so that mixing them would be seen."""
    chance = random.Random(os.environ.get("FAULTS_SEED", "0"))
    began = time.monotonic()
    assert studies.execute(**told) == 0
    whole_s = time.monotonic() - began  # of one study that nobody kills, on this machine as it is now
    kills, rounds, finished_between = 0, 0, 0
    while kills < KILLS:
        rounds += 1
        here = told | {"folder": tmp_path / f"out-{rounds}", "ledger": tmp_path / f"ledger-{rounds}"}
        witness = Witness(here)
        ends: set[int] = set()
        while len(ends) < len(SETTINGS):
            which = chance.randrange(len(SETTINGS))
            patience_s = chance.uniform(0.0, 0.7 * whole_s) if kills < KILLS else 120.0
            before = len(witness.seen)
            code = studies.execute(**here, overrides=SETTINGS[which], kill_after_s=patience_s)
            witness.look()
            assert code in (0, -9)
            if code == 0:
                ends.add(which)
            else:
                kills += 1
                finished_between += len(witness.seen) - before
        for overrides, expected in zip(SETTINGS, (4, 6), strict=True):
            assert studies.execute(**here, overrides=overrides) == 0
            witness.check_finished(collect(Path(here["folder"])), expected)
            witness.look()
        assert not (Path(here["folder"]) / "lock").exists()
    assert finished_between >= KILLS // 8, "the kills came too early to have stopped anything"


def test_a_kill_at_every_change_of_a_name(studies: Studies, told: dict, tmp_path: Path) -> None:
    """Before and after each rename, link and removal: the moments at which a folder goes from one state to the next."""
    number, moments = 0, 0
    while True:
        number += 1
        here = told | {"folder": tmp_path / f"out-{number}", "ledger": tmp_path / f"ledger-{number}"}
        witness = Witness(here)
        few = ["run.ranks=1", "run.repeats=1"]
        code = studies.execute(**here, overrides=few, kill_at=number)
        witness.look()
        if code == 0:
            break
        assert code == -9
        moments += 1
        assert studies.execute(**here, overrides=few) == 0
        witness.look()
        witness.check_finished(collect(Path(here["folder"])), 1)
    # lock, study.toml, points.json, manifest, machine and result, each with its before and after, at the least
    assert moments >= 12


@pytest.mark.parametrize("target", ["result.json", "points.json"])
def test_without_the_safeguard_the_witness_sees_the_damage(studies: Studies, told: dict, target: str) -> None:
    """Files written in place: what the tests above look for is what would happen."""
    witness = Witness(told)
    assert studies.execute(**told, overrides=["run.repeats=1"]) == 0
    witness.look()
    assert studies.execute(**told, overrides=["run.repeats=2"], in_place=target) == -9
    with pytest.raises(Exception, match="is damaged"):
        witness.look()


def test_a_kill_leaves_no_rank_and_keeps_the_number_of_the_attempt(studies: Studies, told: dict) -> None:
    assert studies.execute(**told, seconds=60, kill_when=told["ledger"]) == -9
    deadline = time.monotonic() + 2
    while (left := ranks_of(told["ledger"])) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []
    (path,) = Path(told["folder"]).glob("points/*/runs/1/manifest.json")
    assert read_record(path, Manifest).attempt == 1
    assert studies.execute(**told) == 0
    assert read_record(path, Manifest).attempt == 2
    assert sorted(Witness(told).attempts().values()) == [1, 1, 1, 2]


def test_20_studies_at_once_all_finish_and_leave_nothing(told: dict, tmp_path: Path) -> None:
    """Each in its own folder, with one cache for all: they make the data once and no two get one address."""
    folders = [tmp_path / f"study-{number}" for number in range(20)]
    started = [
        subprocess.Popen([sys.executable, light_study.__file__, json.dumps(told | {"folder": folder}, default=str)])
        for folder in folders
    ]
    assert [process.wait(120) for process in started] == [0] * 20
    for folder in folders:
        assert len(list(folder.glob("points/*/runs/*/result.json"))) == 4
        assert not [path for path in folder.rglob("*") if path.name == "lock" or path.suffix in (".tmp", ".store")]
    assert not ranks_of(told["ledger"])


def ranks_of(ledger: Path) -> list[int]:
    """The processes that work for a ledger."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(ledger) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
