"""Compiled models: as a wrapper, in place, and inside a compiled function; 4 steps each.

Prints how many graphs were compiled and how often one broke: the probe must not change that.
"""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(inputs).relu())


how = sys.argv[1]
torch.manual_seed(0)
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
called = model
if how == "wrapped":
    called = torch.compile(model, backend="eager")
elif how == "in-place":
    model.compile(backend="eager")


def loss_of(inputs, labels):
    return criterion(called(inputs), labels)


if how == "function":
    loss_of = torch.compile(loss_of, backend="eager")
for _ in range(4):
    inputs, labels = torch.randn(16, 64), torch.randint(0, 10, (16,))
    optimizer.zero_grad()
    loss_of(inputs, labels).backward()
    optimizer.step()
counters = torch._dynamo.utils.counters
print(f"checksum {sum(p.double().sum() for p in model.parameters()).item()!r}", flush=True)
print("graphs", counters["stats"]["unique_graphs"], "frames", dict(counters["frames"]), flush=True)
print("breaks", dict(counters["graph_break"]), "recompiled", len(counters["recompiles"]), flush=True)
