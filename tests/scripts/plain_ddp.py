"""Data parallel training as torch's documentation shows it: 12 steps of a small network on made-up digits.

Prints a checksum of the weights, so that two runs can be compared.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(192, 64), torch.randint(0, 10, (192,)))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=workers)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(data.tensors[0])
    if rank == 0:
        torch.save(model.state_dict(), sys.argv[2] if len(sys.argv) > 2 else "/dev/null")
    checksum = sum(parameter.double().sum() for parameter in model.parameters()).item()
    print(f"checksum {checksum!r}", flush=True)


if __name__ == "__main__":
    main()
