"""Cases of `cases.py` about a pretrained base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from paceline.training import loop
from paceline.training.models.transfer import Transfer
from paceline.training.parallel.strategy import Synchronous
from paceline.training.reading import load_data


def frozen_base(rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any]) -> dict:
    """Train a head; the losses, what of the base changed on this rank, and the buffers sent at every step."""
    import cases

    one, manifest = cases.session(rank, size, folder, data, settings)
    me = one.rank(load_data(Path(data), manifest.point, rank))
    assert isinstance(me.network.model, Transfer) and isinstance(me.optim.strategy, Synchronous)
    before = {name: tensor.clone() for name, tensor in me.network.model.base.state_dict().items()}
    head = me.network.model.head[0].weight.detach().clone()
    losses: list[float] = []
    me.on_step = lambda step, loss: losses.append(loss.item())
    loop.train(me)
    if size > 1:
        together = torch.tensor(losses, dtype=torch.float64)
        dist.all_reduce(together)
        losses = together.tolist()
    after = me.network.model.base.state_dict()
    return {
        "losses": losses,
        "changed": [name for name, tensor in before.items() if not torch.equal(after[name], tensor)],
        "learned": not torch.equal(me.network.model.head[0].weight, head),
        "sent": len(me.optim.strategy._buffers),
        "network": one._network,
    }
