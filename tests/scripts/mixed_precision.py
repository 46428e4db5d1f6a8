"""autocast and GradScaler on a CPU: 8 updates are tried; the third has an infinite loss, and is skipped."""

import torch
from torch import nn

torch.manual_seed(0)
model, criterion = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for number in range(8):
    inputs, labels = torch.randn(16, 64), torch.randint(0, 10, (16,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = criterion(model(inputs), labels)
    scaler.scale(loss * (float("inf") if number == 2 else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"checksum {sum(p.double().sum() for p in model.parameters()).item()!r}", flush=True)
