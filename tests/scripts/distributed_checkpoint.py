"""Saves and loads by torch.distributed.checkpoint, whose plans are gathered on one rank."""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Linear(8, 4)
dcp.save(model.state_dict(), checkpoint_id=sys.argv[1])
loaded = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
dcp.load(loaded, checkpoint_id=sys.argv[1])
print(f"checksum {sum(value.double().sum() for value in loaded.values()).item()!r}", flush=True)
dist.destroy_process_group()
