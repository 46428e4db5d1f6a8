"""Killed ranks, killed launchers, ranks that hang, interruptions: with real processes and real signals.

FAULTS=25 runs 25 times as many. Ranks are light ones, without torch. Moments and victims are random, with a seed that
is shown when a case fails. Under torchrun and mpiexec a launch costs more, and so there are fewer cases.
"""

import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from contract.launchers import LAUNCHERS, require
from light_ranks.light_launch import (
    ENDLESS,
    HOST,
    LIGHT_RANK,
    launch,
    light,
    manifest,
    point,
    running_processes,
    running_ranks,
    wait_for,
)
from paceline.errors import RankError
from paceline.launch.launcher import Launcher, Progress
from paceline.launch.local import LocalLauncher
from paceline.storage.folder import RunFolder

FAULTS = int(os.environ.get("FAULTS", "1"))
KEPT = ("torchrun", "mpich", "openmpi")
# launcher -> ranks to kill, launchers to kill
CASES = {"local": (20, 10), "torchrun": (1, 1), "mpich": (3, 3), "openmpi": (3, 2)}
TESTS = LIGHT_RANK.parents[1]


@pytest.fixture(autouse=True)
def no_process_is_left(tmp_path):
    yield
    assert not running_ranks(tmp_path)
    assert wait_for(lambda: not running_processes(tmp_path), 5), running_processes(tmp_path)


@pytest.fixture(params=CASES)
def kind(request) -> str:
    """Name of a launcher whose programs are there."""
    require(LAUNCHERS[request.param].needs)
    return request.param


def made(kind: str, *options: object) -> Launcher:
    return LAUNCHERS[kind].launcher(light(*options))


def ending_s(kind: str) -> float:
    """How long a run may take to be over after its first bad end: a program of someone else's has to leave too."""
    return 3 if kind == "local" else 15


class Strike(threading.Thread):
    """Sends a signal to a rank of a run, some time after it can be found."""

    def __init__(self, path: Path, rank: int, number: int, delay_s: float) -> None:
        super().__init__()
        self.path, self.rank, self.number, self.delay_s = path, rank, number, delay_s
        self.at = 0.0
        self.processes: dict[int, psutil.Process] = {}

    def run(self) -> None:
        wait_for(lambda: self.rank in running_ranks(self.path), 60, 0.005)
        time.sleep(self.delay_s)
        self.processes = running_ranks(self.path)
        self.at = time.monotonic()
        self.processes[self.rank].send_signal(self.number)


class StrikeAtStep:
    """Listens to progress, and sends a signal to a rank once all of them take steps."""

    def __init__(self, path: Path, rank: int, number: int, step: int = 3) -> None:
        self.path, self.rank, self.number, self.step = path, rank, number, step
        self.at = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.step >= self.step and not self.at:
            running_ranks(self.path)[self.rank].send_signal(self.number)
            self.at = time.monotonic()


@pytest.mark.timeout(120 + 600 * FAULTS)
def test_killed_ranks_are_named_in_seconds_and_none_is_left(kind, tmp_path):
    for case in range(CASES[kind][0] * FAULTS):
        chance, path = random.Random(case), tmp_path / str(case)
        ranks = chance.randint(1, 4)
        strike = Strike(path, chance.randrange(ranks), signal.SIGKILL, chance.uniform(0, 0.6))
        strike.start()
        with pytest.raises(RankError) as caught:
            launch(path, manifest(point(ranks)), made(kind, *ENDLESS))
        took_s = time.monotonic() - strike.at
        strike.join()
        expected = f"Rank {strike.rank} of {ranks} on {HOST} was killed by SIGKILL "
        assert caught.value.what.startswith(expected), (case, str(caught.value))
        assert f"rank-{strike.rank:04d}.log" in caught.value.next
        assert took_s < ending_s(kind), case
        assert not any(process.is_running() for process in strike.processes.values()), case
        assert not running_ranks(path), case


class Launching:
    """A launcher in a process of its own, and its ranks; ends them all by number in any case."""

    def __init__(self, kind: str, path: Path, ranks: int, *options: object) -> None:
        launch = [sys.executable, "-m", "light_ranks.light_launch"]
        command = [*launch, kind, str(path), str(ranks), *ENDLESS, *map(str, options)]
        self.path = path
        self.process = subprocess.Popen(command, cwd=TESTS, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        assert wait_for((self.path / "launching").exists, 60)
        return self

    def __exit__(self, *failure):
        for process in (*self.ranks().values(), *self.family()):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.kill()
        self.process.communicate()

    def ranks(self) -> dict[int, psutil.Process]:
        return running_ranks(self.path)

    def family(self) -> list[psutil.Process]:
        """All that the launcher started, and what that did."""
        with contextlib.suppress(psutil.Error):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def until_moving(self) -> None:
        """Wait until all ranks take steps."""
        moving = self.path / "progress"
        assert wait_for(lambda: moving.exists() and moving.read_text() not in ("", "0"), 60)


@pytest.mark.timeout(120 + 600 * FAULTS)
def test_ranks_of_killed_launchers_are_gone_in_seconds(kind, tmp_path):
    within_s = 2 if kind == "local" else 10
    cases, started = CASES[kind][1] * FAULTS, 0
    for case in range(cases):
        chance = random.Random(case)
        with Launching(kind, tmp_path / str(case), chance.randint(1, 4)) as launching:
            if kind != "local" and case % 2 == 0:
                launching.until_moving()
            time.sleep(chance.uniform(0, 0.8))
            started += len(launching.ranks())
            family = launching.family()
            launching.process.kill()
            killed_at = time.monotonic()
            # Twice: a rank that was being started at that moment may show itself a little later.
            for _ in range(2):
                assert wait_for(lambda launching=launching: not launching.ranks(), within_s), case
                time.sleep(0.1)
            assert time.monotonic() - killed_at < within_s + 0.5, case
            assert wait_for(lambda family=family: not any(map(is_alive, family)), within_s), (case, family)
            assert not session_folders(family), case
    assert started >= cases // 2, "the launchers were killed too soon for this to mean anything"


def is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def session_folders(processes: list[psutil.Process]) -> list[Path]:
    """What an mpiexec of Open MPI has left of its folder for temporary files; not one that had its number long ago."""
    began_s = {f"pid.{process.pid}": process.create_time() for process in processes}
    base = Path(tempfile.gettempdir()) / f"ompi.{HOST}.{os.geteuid()}"
    return [path for path in base.glob("pid.*") if path.stat().st_mtime > began_s.get(path.name, math.inf) - 1]


def test_without_the_tie_ranks_do_outlive_a_killed_launcher(tmp_path):
    """The safeguard is what ends them: without it the test above would fail."""
    with Launching("local", tmp_path / "run", 2, "--untied") as launching:
        launching.until_moving()
        launching.process.kill()
        time.sleep(2)
        assert sorted(launching.ranks()) == [0, 1]


STUBBORN = ("--who", 1, "--what", "stubborn", "--at", 2)


@pytest.mark.parametrize(
    ("kind", "number", "misbehaviour"),
    [
        *(("local", number, how) for number in (signal.SIGINT, signal.SIGTERM) for how in ((), STUBBORN)),
        *((kind, signal.SIGINT, STUBBORN) for kind in KEPT),
    ],
)
def test_an_interrupted_launcher_ends_its_ranks_in_seconds(tmp_path, kind, number, misbehaviour):
    require(LAUNCHERS[kind].needs)
    with Launching(kind, tmp_path / "run", 3, *misbehaviour) as launching:
        launching.until_moving()
        if misbehaviour:
            time.sleep(0.2)  # until the stubborn one ignores SIGTERM
        assert sorted(launching.ranks()) == [0, 1, 2]
        family, began = launching.family(), time.monotonic()
        launching.process.send_signal(number)
        launching.process.wait(30)
        assert time.monotonic() - began < (5 if kind == "local" else 20)
        assert launching.process.returncode == 130
        assert not launching.ranks()
        assert wait_for(lambda: not any(map(is_alive, family)), 5), family
        assert not session_folders(family)


def test_a_second_interruption_does_not_disturb_the_ending(tmp_path):
    with Launching("local", tmp_path / "run", 3, "--who", 1, "--what", "stubborn", "--at", 2) as launching:
        launching.until_moving()
        time.sleep(0.2)
        for _ in range(5):
            launching.process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        launching.process.wait(10)
        assert launching.process.returncode == 130
        assert not launching.ranks()


@pytest.mark.parametrize("at_s", [0.0, 0.05, 0.1, 0.2, 0.4])
def test_an_interruption_while_ranks_are_starting_leaves_none(tmp_path, at_s):
    with Launching("local", tmp_path / "run", 4) as launching:
        time.sleep(at_s)
        launching.process.send_signal(signal.SIGTERM)
        launching.process.wait(10)
        time.sleep(0.1)
        assert not launching.ranks()


@pytest.mark.parametrize(("kind", "who"), [("local", 0), ("local", 2), *((kind, 1) for kind in KEPT)])
def test_a_stopped_rank_is_found_within_the_heartbeat_and_a_second(tmp_path, kind, who):
    require(LAUNCHERS[kind].needs)
    strike = StrikeAtStep(tmp_path, who, signal.SIGSTOP)
    heartbeat_s = 1 if kind == "local" else 4  # ten times that for the start, and torchrun takes seconds to load
    with pytest.raises(RankError) as caught:
        launch(tmp_path, manifest(point(3)), made(kind, *ENDLESS), heartbeat_s=heartbeat_s, progress=strike)
    took_s = time.monotonic() - strike.at
    assert caught.value.what.startswith(f"Rank {who} of 3 on {HOST} hangs after step ")
    assert "stopped by a signal (state T)" in caught.value.what
    assert heartbeat_s <= took_s < heartbeat_s + (1 if kind == "local" else 15)  # a program takes longer to leave


@pytest.mark.parametrize("who", [0, 2])
def test_a_sleeping_rank_is_found_within_the_heartbeat_and_a_second(tmp_path, who):
    heard = []
    with pytest.raises(RankError) as caught:
        launch(
            tmp_path,
            manifest(point(3)),
            LocalLauncher(light("--who", who, "--what", "sleep", "--at", 7)),
            heartbeat_s=1,
            progress=lambda progress: heard.append(time.monotonic()),
        )
    took_s = time.monotonic() - heard[-1]
    assert caught.value.what.startswith(f"Rank {who} of 3 on {HOST} hangs after step 7 of 20")
    assert "in phase 'compute'" in caught.value.what
    assert took_s < 2


def test_a_rank_that_is_done_and_does_not_leave_is_found(tmp_path):
    with pytest.raises(RankError, match=r"Rank 1 of 2 .* hangs after step 20 of 20.*does not end"):
        launch(tmp_path, manifest(point(2)), LocalLauncher(light("--who", 1, "--what", "linger")), heartbeat_s=1)


def test_what_ranks_have_started_ends_with_them_when_one_is_killed(tmp_path):
    strike = StrikeAtStep(tmp_path, 0, signal.SIGKILL)
    launcher = LocalLauncher(light(*ENDLESS, "--who", 1, "--what", "child", "--at", 1))
    with pytest.raises(RankError, match="Rank 0 of 2"):
        launch(tmp_path, manifest(point(2)), launcher, progress=strike)
    child = int((tmp_path / "child-1").read_text())
    assert wait_for(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", 2)


@pytest.mark.timeout(300)
def test_20_launches_at_once_all_finish(tmp_path):
    """No port is chosen before it is taken: so none is lost, however many choose at the same moment."""
    kinds = ["local"] * 10 + ["mpich"] * 8 + ["torchrun"] * 2
    before = listening_ports()

    def run(case: int) -> int:
        launcher = made(kinds[case])
        return len(launch(tmp_path / str(case), manifest(point(2)), launcher, heartbeat_s=120).reports)

    with ThreadPoolExecutor(len(kinds)) as pool:
        assert list(pool.map(run, range(len(kinds)))) == [2] * len(kinds)
    for case in range(len(kinds)):
        assert not list(RunFolder(tmp_path / str(case)).ranks.glob("*.store")), "a temporary file was left"
    assert not listening_ports() - before


def listening_ports() -> set[int]:
    """Where this process and what it started listen."""
    found = set()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            found |= {c.laddr.port for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    return found
