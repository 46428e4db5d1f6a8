"""Training objective: cross-entropy summed over samples, and its sums over the epoch so far."""

from __future__ import annotations

import torch
from torch.nn import functional

from paceline.training.batches import Batch


class Objective:
    """Loss of a batch, and loss sum and correct predictions of this rank in the epoch so far."""

    def __init__(self, *, label_smoothing: float, device: torch.device) -> None:
        self._label_smoothing = label_smoothing
        self.sums = torch.zeros(2, dtype=torch.float64, device=device)
        """Loss sum and correct predictions."""

    def loss_sum(self, scores: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Sum of the losses of the counted samples: zero for a rank without any."""
        loss = functional.cross_entropy(scores, batch.labels, reduction="sum", label_smoothing=self._label_smoothing)
        return loss if batch.samples else loss * 0.0

    def count(self, scores: torch.Tensor, loss_sum: torch.Tensor, batch: Batch) -> None:
        """Add a batch to the sums of the epoch."""
        if batch.samples:
            correct = (scores.argmax(1) == batch.labels).sum()
            self.sums += torch.stack((loss_sum.double(), correct.double()))
