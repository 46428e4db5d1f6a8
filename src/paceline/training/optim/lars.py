"""LARS: SGD with momentum and layer-wise step lengths (You, Gitman, Ginsburg 2017, arXiv 1708.03888).

    λ = η · |w| / (|∇| + β · |w| + ε)      for a layer's weights w, with weight decay β and η = 0.001
    v ← m · v + γ · λ · (∇ + β · w)        γ the learning rate, m the momentum
    w ← w - v

As in the paper, the rate is part of the momentum: momentum of a higher rate keeps its length when the rate falls.
Parameters with a single dimension (biases and normalisation) have no trust ratio and no decay, as is usual: λ = η and
β = 0. (Some programs use λ = 1 for them. LARS rates assume steps that η makes a thousand times shorter: biases of a
network without normalisation then diverge.) If |w| or |∇| is 0, λ is η too: a layer can then leave zero.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.optim import Optimizer

TRUST = 0.001
"""η of the paper."""


class Lars(Optimizer):
    """Each layer's step is a fixed fraction of the norm of its weights, independent of the norm of its gradient."""

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 1.0,
        momentum: float = 0.0,
        weight_decay: float = 0.0005,
        eps: float = 1e-9,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "eps": eps})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  as the loop calls it
        """Update all parameters with a gradient."""
        for group in self.param_groups:
            moved = [p for p in group["params"] if p.grad is not None]
            layers = [p for p in moved if p.dim() > 1]
            others = [p for p in moved if p.dim() <= 1]
            if layers:
                self._move(layers, *_adapted(layers, group["weight_decay"], group["eps"]), group)
            if others:
                self._move(others, [p.grad for p in others], [TRUST] * len(others), group)

    def _move(
        self,
        parameters: list[torch.Tensor],
        directions: list[torch.Tensor],
        ratios: list[torch.Tensor] | list[float],
        group: dict[str, float],
    ) -> None:
        steps = torch._foreach_mul(directions, ratios)
        torch._foreach_mul_(steps, group["lr"])
        if group["momentum"]:
            for p in parameters:
                if "momentum_buffer" not in self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
            gathered = [self.state[p]["momentum_buffer"] for p in parameters]
            torch._foreach_mul_(gathered, group["momentum"])
            torch._foreach_add_(gathered, steps)
            steps = gathered
        torch._foreach_sub_(parameters, steps)


def _adapted(layers: list[torch.Tensor], decay: float, eps: float) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Direction and trust ratio of every layer."""
    gradients = [p.grad for p in layers if p.grad is not None]
    lengths, slopes = torch._foreach_norm(layers), torch._foreach_norm(gradients)
    ratios = [
        torch.where((w > 0) & (g > 0), TRUST * w / (g + decay * w + eps), TRUST)
        for w, g in zip(lengths, slopes, strict=True)
    ]
    return list(torch._foreach_add(gradients, layers, alpha=decay)), ratios
