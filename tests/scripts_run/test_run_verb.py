"""`paceline run` and `paceline study --script` with real ranks: scripts that train, fail, leave, are interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import paceline as paceline_package
from light_ranks.light_launch import running_processes, wait_for

HERE = Path(__file__).parent
SCRIPT = str(HERE / "ddp_script.py")
PACELINE = [sys.executable, "-m", "paceline"]


def paceline(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PACELINE, *words], cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def run_folder(study: Path) -> Path:
    (found,) = study.glob("points/*/runs/1")
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Two ranks of a script that trains, on this machine."""
    folder = tmp_path_factory.mktemp("done")
    words = ["run", "-n", "2", "--out", "out", "--", SCRIPT, "--steps", "12", "--late", "0.5"]
    return folder / "out", paceline(folder, *words)


def test_a_script_runs_as_it_would_under_torchrun(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, ended = done
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "rank 0 of 2, 0 of 2 here"
    assert lines[1] == "threads 1, argv ['--steps', '12', '--late', '0.5'], main __main__"
    assert lines[2:14] == [f"step {step}" for step in range(12)]
    assert lines[14].startswith("weights ")
    assert lines[15:] == ["the last words"]
    other = (run_folder(folder) / "logs" / "rank-0001.log").read_text()
    assert "rank 1 of 2, 1 of 2 here" in other and lines[14] in other
    assert "the store still answers" in other


def test_its_steps_samples_and_messages_are_reported(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, ended = done
    result = json.loads((run_folder(folder) / "result.json").read_text())
    assert (result["steps"], result["samples"]) == (12, 2 * 11 * 8)  # all steps but the first, over both ranks
    assert result["timed_s"] > 0 and {"DDP", "DataLoader"} <= set(result["found"])
    assert re.search(r"\[ OK \] \(1/1\) 2 ranks, run 1: 12 steps, [\d,]+ samples/s", ended.stderr)
    assert "Where the time went" in ended.stderr and "Next    paceline trace out" in ended.stderr
    assert (folder / "report.html").is_file()
    machine = json.loads((run_folder(folder) / "machine.json").read_text())
    assert [given["rank"] for given in machine["ranks"]] == [0, 1] and machine["links"]


def test_what_its_ranks_did_can_be_traced(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = done
    traced = paceline(folder, "trace", ".", "--json")
    assert traced.returncode == 0, traced.stderr
    assert '"allreduce_"' in traced.stdout


def test_another_launcher_runs_the_same_script(tmp_path: Path) -> None:
    ended = paceline(tmp_path, "run", "-n", "2", "--launcher", "torchrun", "--json", "--", SCRIPT, "--steps", "4")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["run"]["steps"], found["run"]["samples"]) == (4, 2 * 3 * 8)
    (point,) = found["points"]
    assert (point["launcher"], point["strategy"], point["ranks"]) == ("torchrun", "script", 2)
    assert sum(value or 0 for value in point["ledger_s"].values()) == pytest.approx(point["total_s"]["median"])
    assert "rank 0 of 2, 0 of 2 here" in ended.stderr


def test_a_study_of_a_script_measures_its_throughput(tmp_path: Path) -> None:
    words = ["study", "--script", SCRIPT, "--ranks", "1,2", "--repeats", "1", "--json", "--", "--steps", "6"]
    ended = paceline(tmp_path, *words)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    one, two = found["points"]
    assert (one["ranks"], two["ranks"], found["runs"]) == (1, 2, 2)
    for point in (one, two):
        assert point["samples_per_s"]["median"] > 0 and point["ledger_s"]["startup"] > 0
    ratio = two["samples_per_s"]["median"] / one["samples_per_s"]["median"]
    assert two["speedup"]["median"] == pytest.approx(ratio) and two["baseline"] == one["point"]
    assert (tmp_path / "runs" / "ddp_script" / "report.html").is_file()
    assert 'path = "' in (tmp_path / "runs" / "ddp_script" / "study.toml").read_text()


def test_a_rank_that_raises_is_named_with_the_scripts_own_place(tmp_path: Path) -> None:
    ended = paceline(tmp_path, "run", "-n", "2", "--out", "out", "--", SCRIPT, "--raise-on", "1")
    assert ended.returncode == 1
    assert re.search(r"Rank 1 of 2 on \S+ failed after step 5.*: ValueError: told to fail", ended.stderr)
    assert f'File "{SCRIPT}", line ' in ended.stderr
    (log,) = re.findall(r"Its log: (\S+)", ended.stderr)
    text = Path(log).read_text()
    assert text.count("ValueError: told to fail") == 1
    assert str(Path(paceline_package.__file__).parent) not in text.partition("Traceback")[2]
    assert f"paceline trace out/{run_folder(tmp_path / 'out').relative_to(tmp_path / 'out')}" in ended.stderr
    assert not (run_folder(tmp_path / "out") / "result.json").exists()


def test_a_script_that_leaves_with_a_code_of_its_own_has_failed(tmp_path: Path) -> None:
    ended = paceline(tmp_path, "run", "--", SCRIPT, "--steps", "2", "--exit", "3")
    assert ended.returncode == 1
    assert re.search(r"Rank 0 of 1 on \S+ failed after step 2.*: The script ended with exit code 3\.", ended.stderr)
    assert ended.stdout.endswith("the last words\n")


def test_a_script_without_steps_has_a_ledger_and_a_note(tmp_path: Path) -> None:
    ended = paceline(tmp_path, "run", "--out", "out", "--", str(HERE / "no_steps.py"), "--", "-x")
    assert (ended.returncode, ended.stdout) == (0, "nothing to do -- -x\n"), ended.stderr
    assert "run 1: 0 steps" in ended.stderr and "Where the time went" in ended.stderr
    (note,) = json.loads((run_folder(tmp_path / "out") / "result.json").read_text())["notes"]
    assert "step" in note and f"Note       {note}" in ended.stderr


def test_ctrl_c_ends_every_rank(tmp_path: Path) -> None:
    words = ["run", "-n", "2", "--out", "out", "--", SCRIPT, "--steps", "100000", "--nap", "0.05"]
    running = subprocess.Popen(
        [*PACELINE, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert running.stdout is not None
        assert any(line == "step 3\n" for line in running.stdout)  # rank 0's output comes while it runs
        ranks = running_processes(tmp_path)
        assert len(ranks) == 2
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        _, err = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 130, err
    assert "Interrupted: the run was not finished" in err and "Traceback" not in err
    assert wait_for(lambda: not running_processes(tmp_path), 20), [p.cmdline() for p in running_processes(tmp_path)]
    assert not [rank for rank in ranks if rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE]
