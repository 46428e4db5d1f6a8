"""A learning-rate range test (Smith 2015, arXiv 1506.01186): one short training whose rate rises from step to step.

    rate of step k of n  =  first · (last / first) ^ (k / (n − 1))

All ranks train as they always do, at the run's global batch; the loss of every step is summed over them, so that all
stop at the same step when it runs away. What is left is `lr-range.csv`: the rate and the loss of every step.

It is asked for by `train.schedule = "range"`, which `paceline tune lr` alone sets: `lr` is then the first rate, and
`step_factor` what the last one is of it.
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
"""Of `train.schedule`."""

# Losses are averaged over about this part of the range, before they are judged.
_AVERAGED_FRACTION = 0.05
# A loss so many times its lowest has run away.
_DIVERGED_FACTOR = 4.0
# So has one that is back where it began, once it had fallen to this part of that.
_DROP_FACTOR = 0.9


class RisingRates(LrSchedule):
    """The rates of a range test."""

    def __init__(self, settings: TrainSettings, total_steps: int) -> None:
        self._first, self._factor = settings.lr, settings.step_factor
        self._last_step = max(1, total_steps - 1)
        self.peak = settings.lr * settings.step_factor

    def lr(self, step: float) -> float:
        """The rate of a step, counted from 0."""
        return self._first * self._factor ** (step / self._last_step)


class DivergenceDetector:
    """Says when a loss has run away, from an average over its last steps."""

    def __init__(self, total_steps: int) -> None:
        self._keep = math.exp(-1 / max(1.0, _AVERAGED_FRACTION * total_steps))
        self._sum = self._weight = 0.0
        self._first: float | None = None
        self._lowest = math.inf

    def diverges(self, loss: float) -> bool:
        """Whether it does with this loss, the next one."""
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
    """Take the steps of a range test, until the loss runs away or the rates end; rank 0 keeps rates and losses.

    Ranks that are told to leave stay: it lasts seconds, and a test that went on from a checkpoint would lack its first
    steps. One that is ended nevertheless starts over.
    """
    total, watch = rank.phase.steps, DivergenceDetector(rank.phase.steps)
    lr_schedule = RisingRates(rank.phase.settings, total)
    rank.optim = replace(rank.optim, lr_schedule=lr_schedule)
    found: list[tuple[int, float, float]] = []

    def on_step(step: int, part: torch.Tensor) -> None:
        whole = part.to(rank.objective.sums).reshape(1).clone()
        rank.optim.strategy.peers.sum(whole)
        found.append((step, lr_schedule.lr(step - 1), whole.item()))
        if watch.diverges(found[-1][2]):
            raise _Diverged

    rank.on_step = on_step
    rank.inputs = replace(rank.inputs, validation=rank.inputs.validation[:0])  # nobody asks for it
    rank.notice = TerminationNotice()
    try:
        train(rank)
    except _Diverged:
        rank.optim.strategy.settle()
    if rank.place.rank == 0:
        write_atomically(rank.place.folder.lr_range, csv_bytes(("step", "lr", "loss"), found))
