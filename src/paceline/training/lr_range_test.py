"""Learning-rate range test (Smith 2015, arXiv 1506.01186): a short training whose rate rises with every step.

    rate of step k of n  =  first · (last / first) ^ (k / (n − 1))

Ranks train as usual, at the run's global batch. The loss of every step is summed over ranks, and all stop at the same
step when it diverges. The result is `lr-range.csv`: rate and loss of every step.

`paceline tune lr` sets `train.schedule = "range"`: `lr` is then the first rate, and `step_factor` the ratio of the
last to the first.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from paceline.records.settings import TrainSettings
from paceline.storage.codec import write_atomically
from paceline.training.loop import csv_bytes, train
from paceline.training.optim.lr_schedule import LrSchedule
from paceline.training.rank import Rank
from paceline.training.termination_notice import TerminationNotice

RANGE = "range"
"""Value of `train.schedule`."""

# Losses are averaged over about this fraction of the range.
_AVERAGED_FRACTION = 0.05
# A loss above this multiple of its minimum has diverged.
_DIVERGED_FACTOR = 4.0
# So has a loss that is back at its first value after a drop below this fraction of it.
_DROP_FACTOR = 0.9


class RisingRates(LrSchedule):
    """Rates of a range test."""

    def __init__(self, settings: TrainSettings, total_steps: int) -> None:
        self._first, self._factor = settings.lr, settings.step_factor
        self._last_step = max(1, total_steps - 1)
        self.peak = settings.lr * settings.step_factor

    def lr(self, step: float) -> float:
        """Rate of a step, counted from 0."""
        return self._first * self._factor ** (step / self._last_step)


class DivergenceDetector:
    """Detects divergence from an average over the last losses."""

    def __init__(self, total_steps: int) -> None:
        self._keep = math.exp(-1 / max(1.0, _AVERAGED_FRACTION * total_steps))
        self._sum = self._weight = 0.0
        self._first: float | None = None
        self._lowest = math.inf

    def diverges(self, loss: float) -> bool:
        """Whether training has diverged with this loss, the next one."""
        self._sum = self._keep * self._sum + loss
        self._weight = self._keep * self._weight + 1
        mean = self._sum / self._weight
        if not math.isfinite(mean):
            return True
        self._first = mean if self._first is None else self._first
        self._lowest = min(self._lowest, mean)
        back = self._lowest < _DROP_FACTOR * self._first <= self._first <= mean
        return back or mean > _DIVERGED_FACTOR * self._lowest


class _Diverged(Exception):
    """Ends the training, on every rank in the same step."""


def run_range_test(rank: Rank) -> None:
    """Train until the loss diverges or the rates end; rank 0 writes rates and losses.

    Termination notices are ignored: the test lasts seconds, and a resumed one would lack its first steps.
    An interrupted test starts over.
    """
    total, detector = rank.phase.steps, DivergenceDetector(rank.phase.steps)
    lr_schedule = RisingRates(rank.phase.settings, total)
    rank.optim = replace(rank.optim, lr_schedule=lr_schedule)
    found: list[tuple[int, float, float]] = []

    def on_step(step: int, part: torch.Tensor) -> None:
        whole = part.to(rank.objective.sums).reshape(1).clone()
        rank.optim.strategy.peers.sum(whole)
        found.append((step, lr_schedule.lr(step - 1), whole.item()))
        if detector.diverges(found[-1][2]):
            raise _Diverged

    rank.on_step = on_step
    rank.inputs = replace(rank.inputs, validation=rank.inputs.validation[:0])  # no validation
    rank.notice = TerminationNotice()
    try:
        train(rank)
    except _Diverged:
        rank.optim.strategy.settle()
    if rank.place.rank == 0:
        write_atomically(rank.place.folder.lr_range, csv_bytes(("step", "lr", "loss"), found))
