"""LAMB: Adam with layer-wise step lengths (You et al. 2020, arXiv 1904.00962, algorithm 2).

    m ← β₁ · m + (1 - β₁) · ∇               v ← β₂ · v + (1 - β₂) · ∇²
    r = (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)
    u = r + λ · w                           λ the weight decay
    w ← w - γ · |w| / |u| · u               γ the learning rate

β₁ = 0.9, β₂ = 0.999. Parameters with a single dimension (biases and normalisation) use Adam's step: no decay, and 1
instead of |w| / |u|, as is usual. It is also 1 if |w| or |u| is 0: a layer can then leave zero.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.optim import Optimizer


class Lamb(Optimizer):
    """Each layer's step is a fixed fraction of the norm of its weights, in Adam's direction."""

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  as the loop calls it
        """Update all parameters with a gradient."""
        for group in self.param_groups:
            moved = [p for p in group["params"] if p.grad is not None]
            if not moved:
                continue
            updates = dict(zip(map(id, moved), self._adam(moved, group["betas"], group["eps"]), strict=True))
            layers = [p for p in moved if p.dim() > 1]
            if layers:
                _adapt(layers, [updates[id(p)] for p in layers], group["weight_decay"])
            torch._foreach_add_(moved, list(updates.values()), alpha=-group["lr"])

    def _adam(self, parameters: list[torch.Tensor], betas: tuple[float, float], eps: float) -> list[torch.Tensor]:
        """Adam's step of every parameter at a rate of 1, in new tensors."""
        for p in parameters:
            if not self.state[p]:
                # On the CPU, as in PyTorch's optimizers: reading it needs no device sync.
                self.state[p]["step"] = torch.tensor(0.0)
                self.state[p]["exp_avg"] = torch.zeros_like(p)
                self.state[p]["exp_avg_sq"] = torch.zeros_like(p)
            self.state[p]["step"] += 1
        gradients = [p.grad for p in parameters if p.grad is not None]
        first = [self.state[p]["exp_avg"] for p in parameters]
        second = [self.state[p]["exp_avg_sq"] for p in parameters]
        torch._foreach_lerp_(first, gradients, 1 - betas[0])
        torch._foreach_mul_(second, betas[1])
        torch._foreach_addcmul_(second, gradients, gradients, 1 - betas[1])
        times = [self.state[p]["step"].item() for p in parameters]
        below = torch._foreach_div(second, [1 - betas[1] ** t for t in times])
        torch._foreach_sqrt_(below)
        torch._foreach_add_(below, eps)
        updates = torch._foreach_div(first, [1 - betas[0] ** t for t in times])
        torch._foreach_div_(updates, below)
        return list(updates)


def _adapt(layers: list[torch.Tensor], updates: list[torch.Tensor], decay: float) -> None:
    """Add the decay to the updates and scale each to the norm of its layer's weights."""
    torch._foreach_add_(updates, layers, alpha=decay)
    lengths, steps = torch._foreach_norm(layers), torch._foreach_norm(updates)
    ratios = [torch.where((w > 0) & (u > 0), w / u, 1.0) for w, u in zip(lengths, steps, strict=True)]
    torch._foreach_mul_(updates, ratios)
