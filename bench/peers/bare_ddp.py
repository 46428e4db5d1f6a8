"""Peer: a DDP script with every trick of our loop in it and nothing else: no probe, no records.

    python bare_ddp.py RANK SIZE PORT DATA_FOLDER SAMPLES BATCH EPOCHS CORE

Prints the seconds of each epoch. The same tricks: mapped uint8 batches, channels_last, fused Adam,
pooling before ReLU, gradients as views of DDP's buckets.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
rank, size, port = (int(word) for word in sys.argv[1:4])
data = Path(sys.argv[4])
num_samples, batch_global, epochs, core = (int(word) for word in sys.argv[5:9])
os.sched_setaffinity(0, {core})

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

torch.set_num_threads(1)
torch.set_num_interop_threads(1)
torch.manual_seed(1)
store = dist.TCPStore("127.0.0.1", port, size, is_master=rank == 0)
dist.init_process_group("gloo", store=store, rank=rank, world_size=size)

images = torch.from_numpy(np.load(data / "train-images.npy", mmap_mode="c"))
labels = torch.from_numpy(np.load(data / "train-labels.npy", mmap_mode="c"))
model = nn.Sequential(
    nn.Conv2d(1, 32, 3),
    nn.MaxPool2d(2),
    nn.ReLU(inplace=True),
    nn.Conv2d(32, 128, 3),
    nn.MaxPool2d(2),
    nn.ReLU(inplace=True),
    nn.Conv2d(128, 256, 3),
    nn.MaxPool2d(2),
    nn.ReLU(inplace=True),
    nn.Flatten(),
    nn.Dropout(0.25),
    nn.Linear(256, 1000),
    nn.ReLU(inplace=True),
    nn.Linear(1000, 100),
    nn.ReLU(inplace=True),
    nn.Linear(100, 10),
).to(memory_format=torch.channels_last)
ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
per_rank = batch_global // size

for epoch in range(epochs):
    order = torch.from_numpy(np.random.default_rng(epoch).permutation(num_samples))
    dist.barrier()
    started = time.perf_counter()
    for first in range(0, num_samples - batch_global + 1, batch_global):
        mine = order[first + rank * per_rank : first + (rank + 1) * per_rank]
        x = images.index_select(0, mine).float().mul_(1 / 255 / 0.3081).add_(-0.1307 / 0.3081).permute(0, 3, 1, 2)
        y = labels.index_select(0, mine)
        functional.cross_entropy(ddp(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    trained = (num_samples // batch_global) * batch_global
    # Scaled to the samples that our loop trains on, which leaves no remainder out.
    print((time.perf_counter() - started) * num_samples / trained, flush=True)
dist.destroy_process_group()
