"""Killed ranks, killed launchers, ranks that hang, interruptions: with real processes and real signals.

FAULTS=25 runs 25 times as many. Ranks are light ones, without torch. Moments and victims are random, with a seed that
is shown when a case fails.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from light_launch import ENDLESS, HOST, LIGHT_RANK, launch, light, manifest, point, running_ranks, wait_for
from paceline.errors import RankError
from paceline.launch.base import Progress
from paceline.launch.local import LocalLauncher

FAULTS = int(os.environ.get("FAULTS", "1"))
KILLED_RANKS, KILLED_LAUNCHERS = 20 * FAULTS, 10 * FAULTS
LAUNCH = LIGHT_RANK.with_name("light_launch.py")


@pytest.fixture(autouse=True)
def no_rank_is_left():
    yield
    assert not running_ranks(os.getpid())


class Strike(threading.Thread):
    """Sends a signal to one of this process's ranks, some time after it can be found."""

    def __init__(self, rank: int, number: int, delay_s: float) -> None:
        super().__init__()
        self.rank, self.number, self.delay_s = rank, number, delay_s
        self.at = 0.0
        self.processes: dict[int, psutil.Process] = {}

    def run(self) -> None:
        children = psutil.Process().children
        wait_for(lambda: self.rank in running_ranks(os.getpid(), children()), 10, 0.005)
        time.sleep(self.delay_s)
        self.processes = running_ranks(os.getpid(), children())
        self.at = time.monotonic()
        self.processes[self.rank].send_signal(self.number)


class StrikeAtStep:
    """Listens to progress, and sends a signal to a rank once all of them take steps."""

    def __init__(self, rank: int, number: int, step: int = 3) -> None:
        self.rank, self.number, self.step = rank, number, step
        self.at = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.step >= self.step and not self.at:
            running_ranks(os.getpid(), psutil.Process().children())[self.rank].send_signal(self.number)
            self.at = time.monotonic()


@pytest.mark.timeout(60 + 30 * KILLED_RANKS)
def test_killed_ranks_are_named_within_3_s_and_none_is_left(tmp_path):
    for case in range(KILLED_RANKS):
        chance = random.Random(case)
        ranks = chance.randint(1, 4)
        strike = Strike(chance.randrange(ranks), signal.SIGKILL, chance.uniform(0, 0.6))
        strike.start()
        with pytest.raises(RankError) as caught:
            launch(tmp_path / str(case), manifest(point(ranks)), LocalLauncher(light(*ENDLESS)))
        took_s = time.monotonic() - strike.at
        strike.join()
        expected = f"Rank {strike.rank} of {ranks} on {HOST} was killed by SIGKILL "
        assert caught.value.what.startswith(expected), (case, str(caught.value))
        assert f"rank-{strike.rank:04d}.log" in caught.value.next
        assert took_s < 3, case
        assert not any(process.is_running() for process in strike.processes.values()), case
        assert not running_ranks(os.getpid()), case


class Launching:
    """A launcher in a process of its own, and its ranks; ends them all by number in any case."""

    def __init__(self, path: Path, ranks: int, *options: object) -> None:
        command = [sys.executable, str(LAUNCH), str(path), str(ranks), *ENDLESS, *map(str, options)]
        self.path = path
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        assert wait_for((self.path / "launching").exists, 20)
        return self

    def __exit__(self, *failure):
        for rank in self.ranks().values():
            rank.kill()
        self.process.kill()
        self.process.communicate()

    def ranks(self) -> dict[int, psutil.Process]:
        return running_ranks(self.process.pid)

    def until_moving(self) -> None:
        """Wait until all ranks take steps."""
        moving = self.path / "progress"
        assert wait_for(lambda: moving.exists() and moving.read_text() not in ("", "0"), 20)


@pytest.mark.timeout(60 + 30 * KILLED_LAUNCHERS)
def test_ranks_of_killed_launchers_are_gone_within_2_s(tmp_path):
    started = 0
    for case in range(KILLED_LAUNCHERS):
        chance = random.Random(case)
        with Launching(tmp_path / str(case), chance.randint(1, 4)) as launching:
            time.sleep(chance.uniform(0, 0.8))
            started += len(launching.ranks())
            launching.process.kill()
            killed_at = time.monotonic()
            # Twice: a rank that was being started at that moment may show itself a little later.
            for _ in range(2):
                assert wait_for(lambda launching=launching: not launching.ranks(), 2), case
                time.sleep(0.1)
            assert time.monotonic() - killed_at < 2.5, case
    assert started >= KILLED_LAUNCHERS // 2, "the launchers were killed too soon for this to mean anything"


def test_without_the_tie_ranks_do_outlive_a_killed_launcher(tmp_path):
    """The safeguard is what ends them: without it the test above would fail."""
    with Launching(tmp_path / "run", 2, "--untied") as launching:
        launching.until_moving()
        launching.process.kill()
        time.sleep(2)
        assert sorted(launching.ranks()) == [0, 1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("misbehaviour", [(), ("--who", 1, "--what", "stubborn", "--at", 2)])
def test_an_interrupted_launcher_ends_its_ranks_within_5_s(tmp_path, number, misbehaviour):
    with Launching(tmp_path / "run", 3, *misbehaviour) as launching:
        launching.until_moving()
        if misbehaviour:
            time.sleep(0.2)  # until the stubborn one ignores SIGTERM
        ranks = launching.ranks()
        assert sorted(ranks) == [0, 1, 2]
        began = time.monotonic()
        launching.process.send_signal(number)
        launching.process.wait(10)
        assert time.monotonic() - began < 5
        assert launching.process.returncode == 130
        assert not launching.ranks()


def test_a_second_interruption_does_not_disturb_the_ending(tmp_path):
    with Launching(tmp_path / "run", 3, "--who", 1, "--what", "stubborn", "--at", 2) as launching:
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
    with Launching(tmp_path / "run", 4) as launching:
        time.sleep(at_s)
        launching.process.send_signal(signal.SIGTERM)
        launching.process.wait(10)
        time.sleep(0.1)
        assert not launching.ranks()


@pytest.mark.parametrize("who", [0, 2])
def test_a_stopped_rank_is_found_within_the_heartbeat_and_a_second(tmp_path, who):
    strike = StrikeAtStep(who, signal.SIGSTOP)
    with pytest.raises(RankError) as caught:
        launch(tmp_path, manifest(point(3)), LocalLauncher(light(*ENDLESS)), heartbeat_s=1, progress=strike)
    took_s = time.monotonic() - strike.at
    assert caught.value.what.startswith(f"Rank {who} of 3 on {HOST} hangs after step ")
    assert "stopped by a signal (state T)" in caught.value.what
    assert 1 <= took_s < 2


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
    strike = StrikeAtStep(0, signal.SIGKILL)
    launcher = LocalLauncher(light(*ENDLESS, "--who", 1, "--what", "child", "--at", 1))
    with pytest.raises(RankError, match="Rank 0 of 2"):
        launch(tmp_path, manifest(point(2)), launcher, progress=strike)
    child = int((tmp_path / "child-1").read_text())
    assert wait_for(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", 2)
