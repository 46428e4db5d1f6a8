"""Gradient accumulation under DDP: 5 steps of 3 micro-batches, of which only the last is sent."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # made before the model is wrapped, as some do
model = DistributedDataParallel(model)
torch.manual_seed(dist.get_rank())
for _ in range(5):
    for micro in range(3):
        inputs, labels = torch.randn(4, 64), torch.randint(0, 10, (4,))
        with contextlib.nullcontext() if micro == 2 else model.no_sync():
            (nn.functional.cross_entropy(model(inputs), labels) / 3).backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"checksum {sum(p.double().sum() for p in model.parameters()).item()!r}", flush=True)
