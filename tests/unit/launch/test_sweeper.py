"""What a killed program leaves behind is cleared up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from light_ranks.light_launch import wait_for
from paceline.launch.sweeper import SESSION_FILE, end_session

SLEEPERS = """
import subprocess, sys, time
subprocess.Popen(["sleep", "600"], process_group=0)  # a group of its own, in the same session
print("up", flush=True)
time.sleep(600)
"""


def session() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPERS], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    return process


def members(leader: int) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def test_a_session_and_a_folder_go_when_the_input_closes(tmp_path: Path) -> None:
    process = session()
    folder = tmp_path / "cluster"
    (folder / "deep").mkdir(parents=True)
    (folder / SESSION_FILE).write_text(str(process.pid))
    sweeper = subprocess.Popen(
        [sys.executable, "-P", "-m", "paceline.launch.sweeper", str(folder)], stdin=subprocess.PIPE
    )
    try:
        assert len(members(process.pid)) == 2
        assert sweeper.poll() is None and folder.exists()
        sweeper.communicate(timeout=60)
        assert sweeper.returncode == 0 and not folder.exists()
        assert wait_for(lambda: not members(process.pid), 10)
    finally:
        end_session(process.pid)
        process.communicate()


def test_a_folder_without_a_program_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "paceline.launch.sweeper", str(folder)], stdin=subprocess.DEVNULL, timeout=60
    )
    assert done.returncode == 0 and not folder.exists()


def test_no_session_is_nobodys() -> None:
    assert end_session(None) == 0
