"""Gradient noise, measured during training: how much of a step's gradient is random.

A step's gradient is the mean over its B samples. Each of its parts (a rank's share, or a micro-batch) has its own mean
gradient. If the gradient of one sample has the variance tr(Σ) around the true gradient G, then

    |mean gradient|²                                              is on average   |G|² + tr(Σ) / B
    Σ over parts of (samples of the part / B) · |its gradient|²   is on average   |G|² + tr(Σ) · parts / B

for parts of any size. A measured step gives both without another pass (McCandlish et al., 2018, appendix A):

    tr(Σ) = (second - first) · B / (parts - 1)          |G|² = first - tr(Σ) / B

Hooks on the parameters see local gradients during backward, before a strategy sums them. Ranks keep their results
until an epoch ends or a checkpoint is written, and then gather them in one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from paceline.records.run import NoiseEpoch
from paceline.records.study import Point
from paceline.training.batches import Batch
from paceline.training.parallel.strategy import Peers

_COLUMNS = 5
"""Step, samples, parts, weighted sum over parts, square of the mean gradient."""


@dataclass(frozen=True, slots=True)
class NoiseSample:
    """One measured step, over all ranks."""

    step: int
    samples: int
    """B: of all ranks."""
    parts: int
    """Parts that had samples."""
    local: float
    """Squared gradients of the parts, each weighted by its samples."""
    mean: float
    """Square of the mean gradient."""

    @property
    def variance(self) -> float:
        """Estimate of tr(Σ): never below 0."""
        return (self.local - self.mean) * self.samples / (self.parts - 1)

    @property
    def signal(self) -> float:
        """Estimate of |G|²: may be below 0 if noise dominates."""
        return self.mean - self.variance / self.samples


class GradientNoise:
    """Measures every so many steps: local sums of this rank, and results of all ranks."""

    def __init__(self, *, every: int, parts: int, batch: int) -> None:
        """`parts` of a step over all ranks, `batch` samples of a full step."""
        self._every = every if parts > 1 else 0  # a single part equals the mean
        self._least = batch / 2
        self._own = torch.zeros(2, dtype=torch.float64)
        self._pending: list[torch.Tensor] = []
        self.rows: list[NoiseSample] = []
        """Steps of this epoch, and the last step before it."""

    @property
    def on(self) -> bool:
        """Whether any step is measured."""
        return self._every > 0

    def due(self, step: int, samples_global: int) -> bool:
        """Whether a step is measured. A short last step of an epoch is not: its noise would dominate the mean."""
        return self.on and step % self._every == 0 and samples_global >= self._least

    @contextmanager
    def watching(self, model: nn.Module, step: int, part: Batch, loss_factor: float) -> Iterator[None]:
        """Context that measures the gradients of one backward pass, over a part of the samples of a step."""
        if not self.due(step, part.samples_global):
            yield
            return
        parameters = [p for p in model.parameters() if p.requires_grad]
        norms = [torch.zeros((), device=p.device, dtype=p.dtype) for p in parameters]
        hooks = [p.register_hook(_note(norms, index)) for index, p in enumerate(parameters)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
        if part.samples:
            # The loss was divided by the samples of all ranks: rescaled to the part's mean, times its weight.
            squared = _squared(norms) * (part.samples_global / part.samples / loss_factor**2)
            self._own = self._own.to(squared.device) + torch.stack((torch.ones_like(squared), squared))

    def exchanged(self, model: nn.Module, step: int, samples_global: int) -> None:
        """Measure the mean gradient after the exchange, without a message or device sync."""
        if not self.due(step, samples_global):
            return
        mean = _squared([torch.linalg.vector_norm(p.grad) for p in model.parameters() if p.grad is not None])
        about = torch.tensor([step, samples_global], dtype=torch.float64, device=mean.device)
        self._pending.append(torch.cat((about, self._own.to(mean.device), mean.unsqueeze(0))))
        self._own = torch.zeros(2, dtype=torch.float64)

    def gather(self, peers: Peers) -> list[NoiseSample]:
        """Newly measured steps, gathered from all ranks. A collective call."""
        if not self._pending:
            return []
        seen = peers.gather(torch.stack(self._pending)).cpu()
        self._pending.clear()
        # Summed in the order of ranks: a resumed run is bitwise equal.
        parts, local = seen[:, :, 2].sum(0).tolist(), sum(seen[1:, :, 3].unbind(), start=seen[0, :, 3]).tolist()
        new = [
            NoiseSample(int(row[0]), int(row[1]), int(num_parts), squared, row[4])
            for row, num_parts, squared in zip(seen[0].tolist(), parts, local, strict=True)
            if num_parts > 1
        ]
        self.rows += new
        return new

    def end_epoch(self, epoch: int, first_step: int, peers: Peers) -> NoiseEpoch | None:
        """Noise of the epoch that began with `first_step`; None if none of its steps was measured."""
        self.gather(peers)
        done = noise_epoch(epoch, first_step, self.rows)
        self.rows = self.rows[-1:]
        return done

    def state(self) -> torch.Tensor:
        """Tensor for a checkpoint, after `gather`."""
        assert not self._pending
        rows = [[row.step, row.samples, row.parts, row.local, row.mean] for row in self.rows]
        return torch.tensor(rows, dtype=torch.float64).reshape(-1, _COLUMNS)

    def restore(self, state: torch.Tensor) -> None:
        self._pending.clear()
        self.rows = [NoiseSample(int(r[0]), int(r[1]), int(r[2]), r[3], r[4]) for r in state.tolist()]


def gradient_noise(point: Point, steps_per_epoch: int, *, every_step: bool) -> GradientNoise:
    """Gradient noise as configured: every so many steps, or every step if the learning rate needs it."""
    return GradientNoise(
        every=1 if every_step else point.train.noise_every,
        parts=point.data_size * point.train.accumulate,
        # An epoch of one step has only full steps.
        batch=point.batch_global if steps_per_epoch > 1 else 1,
    )


def noise_epoch(epoch: int, first_step: int, rows: Sequence[NoiseSample]) -> NoiseEpoch | None:
    """Means over the measured steps from `first_step` on, and variances of single steps.

    Between two measured steps, training moves little and the noise is drawn anew: half the mean square of the
    differences is the variance of one step, independent of the drift over the epoch (von Neumann, 1941). `rows` may
    begin with the last step of the epoch before, for one more difference.
    """
    own = [row for row in rows if row.step >= first_step]
    if not own:
        return None
    pairs = np.array([(row.variance, row.signal) for row in rows])
    with np.errstate(invalid="ignore", over="ignore"):  # where training has diverged
        variance, signal = pairs[len(rows) - len(own) :].mean(0).tolist()
        steps = np.diff(pairs, axis=0)
        moments = (steps.T @ steps / (2 * len(steps))).tolist() if len(steps) else None
    return NoiseEpoch(
        epoch=epoch,
        step=own[-1].step,
        measured=len(own),
        noise_scale=variance / signal if signal > 0 else None,
        variance=variance,
        signal=signal,
        differences=len(steps),
        variance_var=moments[0][0] if moments else None,
        signal_var=moments[1][1] if moments else None,
        covariance=moments[0][1] if moments else None,
    )


def _note(norms: list[torch.Tensor], index: int) -> Callable[[torch.Tensor], None]:
    def hook(gradient: torch.Tensor) -> None:
        norms[index] = torch.linalg.vector_norm(gradient)

    return hook


def _squared(norms: Sequence[torch.Tensor]) -> torch.Tensor:
    """Square of the gradient norm, from the norms of its tensors."""
    return torch.stack([norm.double() for norm in norms]).square().sum()
