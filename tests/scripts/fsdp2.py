"""Fully sharded training on CPUs: 6 steps; the layers are sharded, then the model."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
for layer in model:
    if isinstance(layer, nn.Linear):
        fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
for _ in range(6):
    inputs, labels = torch.randn(16, 64), torch.randint(0, 10, (16,))
    loss = functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
total = sum(parameter.full_tensor().double().sum() for parameter in model.parameters())
print(f"checksum {total.item()!r}", flush=True)
