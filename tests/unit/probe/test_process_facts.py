"""What a process says of itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

from light_ranks.light_launch import manifest, point
from paceline import host
from paceline.identity import this_rank
from paceline.preflight.process_facts import PACKAGE, code_sha256, process_facts, settings_sha256


def here(**changed):
    told = replace(manifest(point(1)), **changed)
    return process_facts(this_rank(), told, threads=1, device="cpu", gpus=())


def test_a_process_knows_where_it_is() -> None:
    own = here()
    assert own.host == this_rank().host and own.place == own.host
    assert own.affinity == tuple(sorted(os.sched_getaffinity(0)))
    assert 1 <= own.physical_cores <= own.cores
    assert own.numa_nodes == host.numa_nodes(own.affinity)
    assert own.interface == "lo" and own.addresses[0] == "127.0.0.1"
    assert own.memory_bytes > 0 and own.versions["python"] == sys.version.split()[0]
    assert abs(own.wall_ns - time.time_ns()) < 60e9 and abs(own.monotonic_ns - time.monotonic_ns()) < 60e9


def test_the_node_of_a_scheduler_and_its_variables_are_told(monkeypatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    own = here()
    assert own.place == "n7" and own.host == this_rank().host
    assert own.variables == {"SLURMD_NODENAME": "n7", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}


def test_any_change_of_code_is_another_digest(tmp_path) -> None:
    made = {}
    for name, files in {
        "a": {"x.py": "1", "sub/y.py": "2"},
        "same": {"x.py": "1", "sub/y.py": "2", "notes.txt": "3"},
        "changed": {"x.py": "1", "sub/y.py": "3"},
        "moved": {"x.py": "1", "y.py": "2"},
        "more": {"x.py": "1", "sub/y.py": "2", "z.py": ""},
    }.items():
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
        made[name] = code_sha256(tmp_path / name)
    assert made["a"] == made["same"]
    assert len(set(made.values())) == 4


def test_the_digest_of_our_own_code_is_quick_and_kept() -> None:
    first = code_sha256(PACKAGE)
    began = time.perf_counter()
    assert code_sha256(PACKAGE) == first
    assert time.perf_counter() - began < 0.001
    # Another process finds the same. A cold one takes 10 ms on an idle machine; here five times 20 ms is allowed.
    code = (
        "import time; from paceline.preflight.process_facts import PACKAGE, code_sha256; a = time.process_time();"
        "print(code_sha256(PACKAGE), time.process_time() - a)"
    )
    digest, took_s = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert digest == first and float(took_s) < 0.1


def test_any_change_of_settings_is_another_digest() -> None:
    told = manifest(point(2))
    others = (replace(told, seed=1), replace(told, attempt=2), replace(told, point=replace(told.point, threads=2)))
    assert len({settings_sha256(one) for one in (told, *others)}) == 4
    assert settings_sha256(told) == settings_sha256(replace(told))


def test_a_model_file_is_told_by_its_contents(tmp_path) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    found = here(model_file=str(tmp_path / "model.py")).model_sha256
    assert len(found) == 64
    assert here(model_file=str(tmp_path / "none.py")).model_sha256 == "missing"
    assert here().model_sha256 == ""


def test_no_torch_is_needed() -> None:
    modules = "sys, paceline.preflight.process_facts, paceline.preflight.allocation_checks"
    code = f"import {modules}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
