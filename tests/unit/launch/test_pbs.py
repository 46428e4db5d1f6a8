"""PBS: the script is written, its ranks' results are collected. A shell stands in for PBS: directives are comments."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from light_ranks.light_launch import launch, light, manifest, point
from paceline.errors import RankError, RunError
from paceline.launch.pbs import PbsLauncher
from paceline.records.run import Job
from paceline.records.settings import LaunchSettings
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder

MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
SETTINGS = LaunchSettings(mpiexec=MPIEXEC)


def submit(folder):
    return subprocess.run(["bash", str(folder.job_script)], capture_output=True, text=True, timeout=60, check=False)


def test_a_run_is_written_submitted_by_hand_and_collected(tmp_path):
    folder, told = RunFolder(tmp_path), manifest(replace(point(2), launcher="pbs"), settings=SETTINGS)
    launcher = PbsLauncher(light(), SETTINGS)
    assert launcher.pending(folder) is None
    with pytest.raises(RunError, match=f"qsub {folder.job_script}"):
        launch(tmp_path, told, launcher)
    assert launcher.pending(folder) == told
    with pytest.raises(RunError, match=f"qsub {folder.job_script}"):
        launcher.run(folder, told, heartbeat_s=20.0)
    if not Path(MPIEXEC).exists():
        pytest.skip(f"there is no {MPIEXEC}")
    done = submit(folder)
    assert done.returncode == 0, done.stderr
    outcome = launcher.run(folder, told, heartbeat_s=20.0)
    assert [(report.rank, report.status) for report in outcome.reports] == [(0, "done"), (1, "done")]
    assert told.launched_at_ns < outcome.started_at_ns < outcome.ended_at_ns


@pytest.mark.skipif(not Path(MPIEXEC).exists(), reason="no mpiexec in this environment")
def test_a_rank_that_failed_is_named_and_the_next_attempt_has_a_script_of_its_own(tmp_path):
    folder, told = RunFolder(tmp_path), manifest(replace(point(2), launcher="pbs"), settings=SETTINGS)
    launcher = PbsLauncher(light("--who", 1, "--what", "raise"), SETTINGS)
    with pytest.raises(RunError):
        launch(tmp_path, told, launcher)
    submit(folder)
    with pytest.raises(RankError, match=r"^Rank 1 of 2 .*ValueError: told to fail"):
        launcher.run(folder, told, heartbeat_s=20.0)
    assert read_record(folder.job, Job).over
    assert launcher.pending(folder) is None
