"""Workers of a DataLoader that are spawned: each imports this file again, and must find what it defines."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((4,), float(index))


print("imported as", __name__, flush=True)
if __name__ == "__main__":
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for batch in DataLoader(Squares(), batch_size=5, num_workers=1, multiprocessing_context="spawn"):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
