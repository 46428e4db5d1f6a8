"""A generator and a discriminator with an optimizer each: 6 steps, in each of which both take their turn."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
generator = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64)))
discriminator = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)))
of_generator = torch.optim.Adam(generator.parameters(), lr=0.01)
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=0.01)
criterion = nn.BCEWithLogitsLoss()
torch.manual_seed(dist.get_rank())
true, false = torch.ones(12, 1), torch.zeros(12, 1)
for _ in range(6):
    real, made = torch.randn(12, 64), generator(torch.randn(12, 8))
    of_discriminator.zero_grad()
    loss = criterion(discriminator(torch.cat((real, made.detach()))), torch.cat((true, false)))
    loss.backward()
    of_discriminator.step()
    of_generator.zero_grad()
    criterion(discriminator(made), true).backward()
    of_generator.step()
sums = [sum(p.double().sum() for p in model.parameters()).item() for model in (generator, discriminator)]
print(f"checksum {sums!r}", flush=True)
