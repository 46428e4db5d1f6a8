"""Cleans up after a launcher that may be killed at any moment: python -m paceline.launch.sweeper FOLDER

Waits until its standard input closes, at the end of the launcher, however that ends. Then it kills all processes of
the session that FOLDER/session names, and removes FOLDER. It runs in a session of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil

SESSION_FILE = "session"
WITHIN_S = 10.0


def main() -> int:
    """Wait for the end, then clean up; 1 if something could not be removed."""
    folder = Path(sys.argv[1])
    while os.read(0, 1):
        pass
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        if end_session(_leader(folder / SESSION_FILE)):
            time.sleep(0.05)  # until the kernel has ended them
            continue
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return 0
    return 1


def end_session(leader: int | None) -> int:
    """Kill all processes of a session, in all its process groups; how many there were."""
    members = [process.pid for process in psutil.process_iter() if leader is not None and _session(process) == leader]
    for pid in members:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return len(members)


def _leader(file: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text())
    return None


def _session(process: psutil.Process) -> int | None:
    """The session of a running process; None for one that has ended, reaped or not."""
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else os.getsid(process.pid)
    except (psutil.Error, OSError):
        return None


if __name__ == "__main__":
    sys.exit(main())
