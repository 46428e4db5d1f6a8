"""Messages between two ranks, blocking and not: rank 0 sends 3, one of them later than it is waited for."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, value = dist.get_rank(), torch.full((1000,), float(dist.get_rank()))
if rank == 0:
    dist.send(value, dst=1)
    dist.isend(value, dst=1).wait()
    time.sleep(0.3)
    dist.send(value, dst=1)
else:
    dist.recv(value, src=0)
    waiting = dist.irecv(value, src=0)
    waiting.wait()
    dist.recv(value, src=0)
scattered = torch.zeros(2)
dist.reduce_scatter_single(scattered, torch.ones(4))
print(f"checksum {value.double().sum().item() + scattered.double().sum().item()!r}", flush=True)
