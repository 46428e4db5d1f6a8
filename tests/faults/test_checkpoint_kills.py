"""Kills while a checkpoint is written: always loadable, never older than the last acknowledged one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FAULTS = int(os.environ.get("FAULTS", "1"))


def killed_writers(folder: Path, count: int, *how: str) -> str:
    script = Path(__file__).parent / "checkpoint_writers.py"
    command = [sys.executable, str(script), str(folder), str(count), *how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 5 * count)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_kills_while_a_checkpoint_is_written_lose_nothing_acknowledged(tmp_path):
    count = 100 * FAULTS
    assert killed_writers(tmp_path, count) == f"0 of {count} lost"


def test_without_the_rename_kills_do_lose_checkpoints(tmp_path):
    assert killed_writers(tmp_path, 30, "in-place") != "0 of 30 lost"
