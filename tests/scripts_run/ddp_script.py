"""A small training script as people write them: DDP over gloo, its own options, a module of its own beside it."""

import argparse
import atexit
import os
import sys
import time

import torch
import torch.distributed as dist
from beside import WIDTH
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

options = argparse.ArgumentParser()
options.add_argument("--steps", type=int, default=12)
options.add_argument("--raise-on", type=int, default=-1)
options.add_argument("--exit", type=int, default=0)
options.add_argument("--nap", type=float, default=0.0)
options.add_argument("--late", type=float, default=0.0)
told = options.parse_args()

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size}, {os.environ['LOCAL_RANK']} of {os.environ['LOCAL_WORLD_SIZE']} here", flush=True)
print(f"threads {torch.get_num_threads()}, argv {sys.argv[1:]}, main {__name__}", flush=True)
atexit.register(print, "the last words")

torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = DataLoader(TensorDataset(torch.randn(8 * told.steps, 16), torch.arange(8 * told.steps) % 4), batch_size=8)
for step, (inputs, labels) in enumerate(batches):
    if step == 5 and rank == told.raise_on:
        raise ValueError("told to fail")
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step}", flush=True)
    time.sleep(told.nap)
print(f"weights {sum(p.double().sum().item() for p in model.parameters()):.12f}", flush=True)
if rank == 1 and told.late:
    time.sleep(told.late)  # rank 0 is done by now, and its store is still needed
    dist.distributed_c10d._get_default_store().set("late", "word")
    print("the store still answers", flush=True)
dist.destroy_process_group()
sys.exit(told.exit)
