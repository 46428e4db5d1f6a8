"""Cases of `cases.py` about gradient noise, which single samples' gradients have to bear out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import func
from torch.nn import functional

from paceline.training import loop
from paceline.training.batches import share
from paceline.training.rank import Rank
from paceline.training.reading import load_data
from paceline.training.resume import resume
from paceline.training.session import weights_sha256


def noise(
    rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any], look: str = "", stop_at: int = 0
) -> dict:
    """Train and measure gradient noise; `look` at every step, too, as the gradients of single samples show it.

    exact   samples, parts, Σ of weighted squares of the parts' gradients, square of the mean one
    true    tr(Σ) and |G|² over all samples of an epoch, which is drawn without putting any back
    """
    import cases

    one, manifest = cases.session(rank, size, folder, data, settings)
    me = one.rank(load_data(Path(data), manifest.point, rank))
    resumed = resume(me)
    seen, exact, true, rates, losses = [], [], [], [], []

    def look_at(step: int) -> None:
        if rank or step == me.total_steps:
            return
        if look == "exact":
            exact.append(_exact(me, step, size))
        if look == "true":
            true.append(_true(me, step))

    def on_step(step: int, loss: torch.Tensor) -> None:
        if step == stop_at:
            raise cases.Stopped
        if look:
            me.optim.noise.gather(me.optim.strategy.peers)
            seen.extend((r.samples, r.parts, r.local, r.mean) for r in me.optim.noise.rows if r.step == step - 1)
        losses.append(loss.item())
        progress = me.optim.adascale.progress if me.optim.adascale else step
        rates.append((me.optim.optimizer.param_groups[0]["lr"], me.optim.gain, progress))
        look_at(step)

    me.on_step = on_step
    look_at(me.progress.step)
    try:
        loop.train(me)
    except cases.Stopped:
        me.optim.strategy.peers.barrier()
        return {"stopped": me.progress.step}
    together = torch.tensor(losses, dtype=torch.float64)
    me.optim.strategy.peers.sum(together)
    return {
        "seen": seen,
        "exact": exact,
        "true": true,
        "rates": rates,
        "losses": together.tolist(),
        "epochs": [asdict(epoch) for epoch in me.progress.noise_epochs],
        "weights": weights_sha256(me.network.model),
        "resumed_from": resumed.step if resumed else None,
        "adascale": me.optim.adascale.state().tolist() if me.optim.adascale else None,
    }


def _exact(me: Rank, step: int, size: int) -> tuple[int, int, float, float]:
    """What the step that comes will show, from the gradients of its samples one by one."""
    epoch, number = divmod(step, me.inputs.batches.steps_per_epoch)
    batches = me.inputs.batches
    order = batches.order(epoch).samples
    each = _sample_gradients(me, order[batches.samples_until(number) : batches.samples_until(number + 1)])
    accumulate = me.place.manifest.point.train.accumulate
    parts = [part for own in _split(each, size) for part in _split(own, min(accumulate, max(len(own), 1))) if len(part)]
    local = sum(len(part) * part.mean(0).square().sum().item() for part in parts) / len(each)
    return len(each), len(parts), local, each.mean(0).square().sum().item()


def _true(me: Rank, step: int) -> tuple[float, float]:
    each = _sample_gradients(me, me.inputs.batches.order(step // me.inputs.batches.steps_per_epoch).samples)
    variance = each.var(0).sum().item()
    return variance, each.mean(0).square().sum().item() - variance / len(each)


def _split(items: torch.Tensor, size: int) -> list[torch.Tensor]:
    return [items[slice(*share(len(items), part, size))] for part in range(size)]


def _sample_gradients(me: Rank, indices: torch.Tensor) -> torch.Tensor:
    """One row per sample: the gradient of its own loss."""
    inputs, labels = me.inputs.samples.gather(indices)
    weights = {name: parameter.detach() for name, parameter in me.network.model.named_parameters()}

    def loss(weights: dict[str, torch.Tensor], one: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        scores = func.functional_call(me.network.model, weights, (one.unsqueeze(0),))
        return functional.cross_entropy(scores, label.unsqueeze(0))

    found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(weights, inputs, labels)
    return torch.cat([gradient.reshape(len(indices), -1) for gradient in found.values()], dim=1)
