"""`paceline run` on two hosts of a real SLURM: the script meets over the named interface; no warning kills it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from paceline.analyze.run.run_summary import run_analysis
from paceline.cli.app import main
from paceline.storage.folder import RunFolder
from paceline.storage.run_trace import read_run

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


TRAINING = """
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

os.environ |= {"RANK": os.environ["SLURM_PROCID"], "WORLD_SIZE": os.environ["SLURM_NTASKS"], "GLOO_SOCKET_IFNAME": "lo"}
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


def test_the_probe_is_attached_to_ranks_that_srun_started(slurm, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    watched = [sys.executable, "-m", "paceline.probe", "--out", "watched", "train.py"]
    done = subprocess.run(
        ["srun", "--nodes=2", "--ntasks=2", "--time=3", f"--chdir={tmp_path}", *watched],
        env=os.environ | place,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = read_run(RunFolder(tmp_path / "watched"))
    assert (run.ranks, len(set(run.hosts))) == (2, 2)
    messages = run_analysis(run).summary.messages
    gradients = [kind for kind in messages if (kind.operation, kind.payload_bytes) == ("allreduce_", 10 * 4)]
    assert [kind.count for kind in gradients] == [5], messages
