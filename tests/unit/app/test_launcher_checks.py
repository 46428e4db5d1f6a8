"""Which launchers the doctor finds, by what their programs answer."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from paceline import catalog
from paceline.app.launcher_checks import LauncherState, Query, launcher_states


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def by_name(**told) -> dict[str, LauncherState]:
    return {starter.name: starter for starter in launcher_states(**told)}


def test_every_launcher_of_the_catalog_is_looked_at() -> None:
    found = by_name(answer_s=30)
    assert tuple(found) == catalog.names("launcher")
    assert found["local"].works and found["torchrun"].works
    assert "torch 2" in found["torchrun"].text


@pytest.mark.parametrize(
    ("said", "whose"),
    [
        ("mpiexec (OpenRTE) 4.1.4", "Open MPI 4.1.4"),
        ("mpiexec (Open MPI) 5.0.3", "Open MPI 5.0.3"),
        ("HYDRA build details:\n    Version:                                 5.0.2", "MPICH 5.0.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.13", "Intel MPI 2021.13"),
    ],
)
def test_whose_mpiexec_it_is(tmp_path: Path, said: str, whose: str) -> None:
    mpiexec = program(tmp_path / "bin", "mpiexec", f"cat <<'END'\n{said}\nEND")
    assert by_name(mpiexec=str(mpiexec), answer_s=30)["mpi"].text.startswith(whose)


def test_what_is_missing_is_said_with_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ray", None)
    found = by_name(mpiexec="mpiexec.nosuch")
    assert not found["mpi"].works and "paceline[mpi]" in found["mpi"].text
    assert not found["slurm"].works and "needs SLURM" in found["slurm"].text
    assert not found["ray"].works and "paceline[ray]" in found["ray"].text


def test_a_scheduler_that_does_not_answer_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "sinfo", "exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    began = time.monotonic()
    slurm = by_name(answer_s=0.5)["slurm"]
    assert time.monotonic() - began < 10
    assert not slurm.works and "does not answer" in slurm.text


def test_partitions_are_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "sinfo", "echo short; echo long; echo short")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert by_name(answer_s=30)["slurm"].text == "partitions short, long"


def test_a_program_that_is_given_up_on_is_ended() -> None:
    asked = Query("sleep", "60")
    assert asked.there and asked.answer(time.monotonic()) is None
    assert asked._process is not None and asked._process.poll() is not None
    assert not Query("no-such-program").there


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys; from paceline.app.launcher_checks import launcher_states; launcher_states(answer_s=30); "
        "print([name for name in ('torch', 'ray', 'mpi4py') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
