"""What the doctor makes of a machine where something is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from light_ranks.light_launch import wait_for
from paceline.app import machine_checks as health

TORCH: dict[str, Any] = {
    "version": "2.13.0",
    "threads": 2,
    "blas": "mkl",
    "capability": "AVX2",
    "cuda": None,
    "gpus": [],
    "backends": ["gloo"],
    "gloo_error": None,
}


def asked(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def by_name(facts: dict[str, Any]) -> dict[str, health.Check]:
    return {check.name: check for check in health._torch(facts, "")}


def test_a_torch_that_does_not_import_is_an_error_with_its_reason() -> None:
    facts, reason = health.torch_facts(asked("raise ImportError('libgomp.so.1 is missing')"))
    assert facts is None and reason == "does not work: ImportError: libgomp.so.1 is missing"
    (check,) = health._torch(facts, reason)
    assert (check.name, check.status) == ("PyTorch", "error") and check.remedy


def test_a_torch_that_hangs_is_given_up_on_and_ended() -> None:
    process = asked("import time; time.sleep(60)")
    facts, reason = health.torch_facts(process, timeout_s=0.2)
    assert facts is None and "did not answer" in reason
    assert process.poll() is not None


def test_a_sound_torch_has_nothing_wrong() -> None:
    assert {check.status for check in health._torch(TORCH, "")} == {"ok"}


@pytest.mark.parametrize(
    ("changes", "name", "status"),
    [
        ({"backends": []}, "Backends", "error"),
        ({"gloo_error": "no route"}, "Backends", "error"),
        ({"gpus": ["H100"], "backends": ["gloo", "nccl"]}, "GPUs", "ok"),
    ],
)
def test_what_torch_lacks(changes: dict[str, Any], name: str, status: str) -> None:
    check = by_name({**TORCH, **changes})[name]
    assert check.status == status
    assert bool(check.remedy) == (status != "ok")


def test_a_folder_is_judged_by_the_nearest_one_that_exists(tmp_path: Path) -> None:
    check = health._folder("Runs", tmp_path / "a" / "b", "Choose another.")
    assert check.status == "ok" and check.facts["writable"] and check.facts["free_bytes"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = health._folder("Cache", tmp_path / "file", "Choose another.")
    assert (check.status, check.remedy, check.facts["writable"]) == ("error", "Choose another.", False)


def test_shared_memory_that_is_not_there_is_no_fault(tmp_path: Path) -> None:
    assert health._shared_memory(tmp_path / "shm").status == "ok"


def test_the_torch_process_does_not_outlive_a_doctor_that_is_stopped(tmp_path: Path, monkeypatch) -> None:
    process = asked("import time; time.sleep(60)")
    monkeypatch.setattr(health, "start_torch", lambda: process)
    looking = health.checks(tmp_path)
    next(looking)
    looking.close()
    assert process.wait(timeout=5) is not None
    process.communicate()


def test_torch_is_asked_as_a_rank_is_started() -> None:
    process = health.start_torch()
    try:
        # Empty until the system has put it into the new process.
        environment = wait_for(Path(f"/proc/{process.pid}/environ").read_bytes, 10).split(b"\0")
        assert process.args[:2] == (sys.executable, "-P")  # pyright: ignore[reportIndexIssue]
        assert b"GLOO_SOCKET_IFNAME=lo" in environment
    finally:
        process.kill()
        process.communicate()
