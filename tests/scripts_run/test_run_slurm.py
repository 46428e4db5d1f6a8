"""`paceline run` on two hosts of a real SLURM: the script meets over the named interface; no warning kills it."""

from __future__ import annotations

import json
from pathlib import Path

from paceline.cli.app import main

SCRIPT = """
import os
import signal

import torch
import torch.distributed as dist

signal.raise_signal(signal.SIGUSR1)  # as a job's warning would: a script that knows nothing of it goes on
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
place = [os.environ[name] for name in ("GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
print("sum", total.item(), "place", *place, flush=True)
dist.destroy_process_group()
"""


def test_a_script_runs_on_two_hosts_of_a_scheduler(slurm, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sum.py").write_text(SCRIPT)
    settings = ["--set", "run.hosts=2", "--set", "launch.interface=lo", "--force"]
    assert main(["run", "-n", "2", "--launcher", "slurm", *settings, "--out", "out", "--json", "--", "sum.py"]) == 0
    out, err = capsys.readouterr()
    assert "sum 3 place 0 2 0 1" in err
    found = json.loads(out)["run"]
    assert (found["ranks"], found["steps"], found["emulated"]) == (2, 0, True)
    (folder,) = (tmp_path / "out").glob("points/*/runs/1")
    assert "sum 3 place 1 2 0 1" in (folder / "logs" / "rank-0001.log").read_text()
    reports = [json.loads((folder / "ranks" / f"rank-000{rank}.json").read_text()) for rank in (0, 1)]
    assert len({report["host"] for report in reports}) == 2
