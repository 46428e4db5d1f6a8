"""A rank does not import torch.compile, which takes as long as the rest of torch, unless its model wants it."""

import os
import socket
import subprocess
import sys

import pytest

RANK = """
import copy
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from paceline import catalog
from paceline.records.settings import TrainSettings
from paceline.training.optim.build_optimizer import build_optimizer
from paceline.training.parallel.ddp import UncompiledDdp

dist.init_process_group("gloo")
torch.manual_seed(1)
plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
inputs, labels = torch.randn(16, 4), torch.arange(16) % 2

def trained(wrapped, optimizer_of):
    model = copy.deepcopy(plain)
    if sys.argv[1] == "compiled":
        model = torch.compile(model, backend="eager")
    parallel, optimizer = wrapped(model), optimizer_of(model.parameters())
    for _ in range(3):
        torch.nn.functional.cross_entropy(parallel(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])

settings = {name: TrainSettings(optimizer=name, lr=0.1) for name in ("sgd", "adam", "adamw")}
ours = {name: trained(UncompiledDdp, lambda p: build_optimizer(given, p)) for name, given in settings.items()}
print("torch._dynamo" in sys.modules, hasattr(torch, "_dynamo"))
for name, weights in ours.items():
    kind = catalog.load("optimizer", name)
    assert torch.equal(weights, trained(DistributedDataParallel, lambda p: kind(p, lr=0.1, fused=True))), name
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("model", "imported"), [("plain", "False True"), ("compiled", "True True")])
def test_a_rank_imports_the_compiler_only_for_a_compiled_model(model: str, imported: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RANK, model],
        env=os.environ | where | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == imported
