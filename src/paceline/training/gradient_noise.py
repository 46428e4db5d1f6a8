"""Gradient noise, seen while ranks train: how much of a step's gradient is chance.

A step's gradient is the mean over its B samples; each of its parts (a rank's share, or what a rank computes at a time)
has a mean gradient of its own. If one sample's gradient varies by tr(Σ) around the true one, G, then

    |mean gradient|²                                              is on average   |G|² + tr(Σ) / B
    Σ over parts of (samples of the part / B) · |its gradient|²   is on average   |G|² + tr(Σ) · parts / B

for shares of any size, so that a measured step gives both without another pass (McCandlish et al., 2018, appendix A):

    tr(Σ) = (second - first) · B / (parts - 1)          |G|² = first - tr(Σ) / B

Local gradients are seen by hooks on the parameters, in the midst of backward and before any strategy adds them up.
What ranks saw stays with them until an epoch ends or a checkpoint is written, and is then gathered in one message.
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
"""Numbers of a measured step: step, samples, parts, the weighted sum over parts, the square of the mean gradient."""


@dataclass(frozen=True, slots=True)
class NoiseSample:
    """One step as all ranks together saw it."""

    step: int
    samples: int
    """B: those of all ranks."""
    parts: int
    """Parts that had samples."""
    local: float
    """Squared gradients of the parts, each weighted by its samples."""
    mean: float
    """Square of the mean gradient."""

    @property
    def variance(self) -> float:
        """tr(Σ), estimated: never below 0."""
        return (self.local - self.mean) * self.samples / (self.parts - 1)

    @property
    def signal(self) -> float:
        """|G|², estimated: below 0 at times, where noise is all there is."""
        return self.mean - self.variance / self.samples


class GradientNoise:
    """What this rank has seen of every so many steps, and what all ranks have."""

    def __init__(self, *, every: int, parts: int, batch: int) -> None:
        """`parts` of a step over all ranks, `batch` its samples where it is not the last of an epoch."""
        self._every = every if parts > 1 else 0  # a single part cannot be told from the mean
        self._least = batch / 2
        self._own = torch.zeros(2, dtype=torch.float64)
        self._pending: list[torch.Tensor] = []
        self.rows: list[NoiseSample] = []
        """Of this epoch, and the last one before it."""

    @property
    def on(self) -> bool:
        """Whether any step is measured."""
        return self._every > 0

    def due(self, step: int, samples_global: int) -> bool:
        """Whether a step is measured. What is left for an epoch's last one may be so little that it would drown all."""
        return self.on and step % self._every == 0 and samples_global >= self._least

    @contextmanager
    def watching(self, model: nn.Module, step: int, part: Batch, loss_factor: float) -> Iterator[None]:
        """Look at the gradients of one backward pass, which is over a part of the step's samples."""
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
            # The loss was divided by the samples of all ranks: undone for the part's mean, but for its weight.
            squared = _squared(norms) * (part.samples_global / part.samples / loss_factor**2)
            self._own = self._own.to(squared.device) + torch.stack((torch.ones_like(squared), squared))

    def exchanged(self, model: nn.Module, step: int, samples_global: int) -> None:
        """Look at the mean gradient, which is in place now; no message and no wait for a device."""
        if not self.due(step, samples_global):
            return
        mean = _squared([torch.linalg.vector_norm(p.grad) for p in model.parameters() if p.grad is not None])
        about = torch.tensor([step, samples_global], dtype=torch.float64, device=mean.device)
        self._pending.append(torch.cat((about, self._own.to(mean.device), mean.unsqueeze(0))))
        self._own = torch.zeros(2, dtype=torch.float64)

    def gather(self, peers: Peers) -> list[NoiseSample]:
        """Bring together what ranks have seen since the last time, the same steps on all of them; these steps."""
        if not self._pending:
            return []
        seen = peers.gather(torch.stack(self._pending)).cpu()
        self._pending.clear()
        # In the order of ranks, whatever came in one message: a resumed run repeats the bits.
        parts, local = seen[:, :, 2].sum(0).tolist(), sum(seen[1:, :, 3].unbind(), start=seen[0, :, 3]).tolist()
        new = [
            NoiseSample(int(row[0]), int(row[1]), int(num_parts), squared, row[4])
            for row, num_parts, squared in zip(seen[0].tolist(), parts, local, strict=True)
            if num_parts > 1
        ]
        self.rows += new
        return new

    def end_epoch(self, epoch: int, first_step: int, peers: Peers) -> NoiseEpoch | None:
        """The epoch that began with `first_step` and has just ended; None where none of its steps was measured."""
        self.gather(peers)
        done = noise_epoch(epoch, first_step, self.rows)
        self.rows = self.rows[-1:]
        return done

    def state(self) -> torch.Tensor:
        """What a checkpoint has to keep, once it is gathered."""
        assert not self._pending
        rows = [[row.step, row.samples, row.parts, row.local, row.mean] for row in self.rows]
        return torch.tensor(rows, dtype=torch.float64).reshape(-1, _COLUMNS)

    def restore(self, state: torch.Tensor) -> None:
        self._pending.clear()
        self.rows = [NoiseSample(int(r[0]), int(r[1]), int(r[2]), r[3], r[4]) for r in state.tolist()]


def gradient_noise(point: Point, steps_per_epoch: int, *, every_step: bool) -> GradientNoise:
    """The gradient noise as a point asks for it: of so many steps, or of every one where the learning rate needs it."""
    return GradientNoise(
        every=1 if every_step else point.train.noise_every,
        parts=point.data_size * point.train.accumulate,
        # The only step of an epoch is as large as any.
        batch=point.batch_global if steps_per_epoch > 1 else 1,
    )


def noise_epoch(epoch: int, first_step: int, rows: Sequence[NoiseSample]) -> NoiseEpoch | None:
    """Means over the measured steps from `first_step` on, and how far single steps are from them.

    From one measured step to the next, training moves little and chance is drawn anew: half the mean square of such
    differences is the variance of one step, whatever the drift over the epoch (von Neumann, 1941). `rows` may begin
    with the last step of the epoch before, for one difference more.
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
    """The square of a gradient out of the norms of its tensors."""
    return torch.stack([norm.double() for norm in norms]).square().sum()
