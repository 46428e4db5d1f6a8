"""The wrapper of a rank in a job that is warned: it passes the warning on, and says how the rank left."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from light_ranks.light_launch import manifest, point, wait_for
from paceline.launch.wrapper.wrapped_ranks import wrapper_command
from paceline.records.run import STOPPED, RankEnd, RankStart
from paceline.records.settings import LaunchSettings
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

# A rank that listens late, as one does that has to load torch first, and leaves when it is told to.
RANK = """
import signal, sys, time
from pathlib import Path
folder = Path(sys.argv[-1])
(folder / "loading").touch()
while not (folder / "go").exists():
    time.sleep(0.02)
told = []
signal.signal(signal.SIGUSR1, lambda number, frame: told.append(number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGUSR1,))
while not told:
    time.sleep(0.02)
sys.exit(75)
"""


@pytest.fixture
def wrapper(tmp_path):
    """Starts the wrapper of one rank, as srun would."""
    started = []

    def start(launcher, grace_s=60.0):
        folder = RunFolder(tmp_path)
        for place in (folder.ranks, folder.logs):
            place.mkdir(exist_ok=True)
        where = replace(point(1, pin=False), launcher=launcher)
        write_record(folder.manifest, manifest(where, settings=LaunchSettings(grace_s=grace_s)))
        (tmp_path / "rank.py").write_text(RANK)
        command = wrapper_command(folder, (sys.executable, str(tmp_path / "rank.py")))
        told = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "1"}
        started.append(subprocess.Popen(command, env=os.environ | told, stderr=subprocess.PIPE))
        assert wait_for((tmp_path / "loading").exists, 30)
        return started[-1], folder

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["SIGUSR1", "SIGTERM", "file"])
def test_a_warning_reaches_the_rank_however_early(wrapper, tmp_path, how):
    process, folder = wrapper("slurm")
    started = read_record(folder.rank_start(0), RankStart) if wait_for(folder.rank_start(0).exists, 20) else None
    assert started is not None and started.started_at_ns is not None
    if how == "file":
        folder.notice.touch()
    else:
        process.send_signal(signal.Signals[how])
        os.kill(started.pid, signal.Signals[how])  # a scheduler signals every process of a job
    assert process.poll() is None
    (tmp_path / "go").touch()
    assert process.wait(20) == STOPPED
    end = read_record(folder.rank_end(0), RankEnd)
    assert (end.code, end.ended_at_ns > started.started_at_ns) == (STOPPED, True)


@pytest.mark.parametrize(("launcher", "grace_s"), [("mpi", 60.0), ("slurm", 0.0)])
def test_without_warnings_a_signal_ends_the_rank(wrapper, launcher, grace_s):
    process, folder = wrapper(launcher, grace_s)
    assert wait_for(folder.rank_start(0).exists, 20)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 128 + signal.SIGTERM
    assert read_record(folder.rank_end(0), RankEnd).code == -signal.SIGTERM


def test_a_warned_rank_is_ended_all_the_same_when_the_run_is_stopped(wrapper):
    process, folder = wrapper("slurm")
    assert wait_for(folder.rank_start(0).exists, 20)
    folder.stop.touch()
    assert process.wait(20) == 128 + signal.SIGKILL
    assert Path(folder.rank_end(0)).exists()
