"""Accelerate as its documentation shows it: prepare, accumulate, backward; 4 steps of 2 micro-batches on each rank."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
samples = 8 * 8 * accelerator.num_processes
data = TensorDataset(torch.randn(samples, 64), torch.randint(0, 10, (samples,)))
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=8))
for inputs, labels in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
print(f"checksum {sum(p.double().sum() for p in model.parameters()).item()!r}", flush=True)
