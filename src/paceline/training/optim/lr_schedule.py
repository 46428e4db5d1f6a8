"""The learning rate of every step: scaling rule, warm-up and schedule.

    peak            lr · f        f = 1 (none), B / b (linear), √(B / b) (sqrt);  B the global batch, b = train.lr_batch
    warm-up         linear from lr at the first step to the peak, over the first W epochs; a peak below lr applies from
                    the first step on
    constant        1
    step            step_factor ^ (number of whole step_epochs since the start)
    cosine          (1 + cos(π · (e - W) / (E - W))) / 2 from the end of the warm-up on
    one-cycle       0.1 → 1 over 45 % of the epochs, 1 → 0.1 over 45 %, 0.1 → 0.001 over the rest, in straight lines

`e` is the step divided by the steps of an epoch and E the epochs of the run: settings do not depend on the batch size.
The rate of a step is that of its beginning.

Sources: linear rule, warm-up and steps: Goyal et al. 2017 (arXiv 1706.02677); square root for adaptive
optimizers: Malladi et al. 2022 (2205.10287), for SGD: Krizhevsky 2014 (1404.5997); cosine: Loshchilov and Hutter
2017 (1608.03983), after a warm-up: He et al. 2019 (1812.01187); one-cycle: Smith 2018 (1803.09820). With `adascale`
(Johnson et al. 2020) the peak is `lr`: the loop multiplies the rate by the measured gain.
"""

from __future__ import annotations

import math

from paceline.records.lr_rules import rule_factor
from paceline.records.settings import TrainSettings

_RISE_UNTIL, _FALL_UNTIL = 0.45, 0.9
_LOW, _LAST = 0.1, 0.001


def planned_steps(settings: TrainSettings, steps_per_epoch: int) -> int:
    """Optimizer steps of the settings."""
    return settings.steps if settings.steps is not None else (settings.epochs or 0) * steps_per_epoch


class LrSchedule:
    """Learning rate of every step of a run."""

    def __init__(
        self, settings: TrainSettings, *, batch_global: int, ranks: int, steps_per_epoch: int, total_steps: int
    ) -> None:
        self._settings = settings
        self._steps_per_epoch = steps_per_epoch
        self._epochs = total_steps / steps_per_epoch
        self.peak = settings.lr * rule_factor(settings, batch_global=batch_global, ranks=ranks)
        """Rate after the warm-up."""

    def lr(self, step: float) -> float:
        """Rate of a step, counted from 0; a fraction under AdaScale."""
        epoch = step / self._steps_per_epoch
        return self._warmed_up(epoch) * self._scheduled(epoch)

    def _warmed_up(self, epoch: float) -> float:
        start, warm_up = min(self._settings.lr, self.peak), self._settings.warmup_epochs
        return start + (self.peak - start) * epoch / warm_up if epoch < warm_up else self.peak

    def _scheduled(self, epoch: float) -> float:
        """Factor of the schedule."""
        settings = self._settings
        if settings.schedule == "step":
            assert settings.step_epochs is not None
            return settings.step_factor ** math.floor(epoch / settings.step_epochs)
        if settings.schedule == "cosine":
            left = self._epochs - settings.warmup_epochs
            done = (epoch - settings.warmup_epochs) / left if left > 0 else 0.0
            return (1 + math.cos(math.pi * min(max(done, 0.0), 1.0))) / 2
        if settings.schedule == "one-cycle":
            return _one_cycle(min(epoch / self._epochs, 1.0))
        return 1.0


def _one_cycle(done: float) -> float:
    """Factor of the one-cycle schedule at this fraction of the run."""
    if done < _RISE_UNTIL:
        return _LOW + (1 - _LOW) * done / _RISE_UNTIL
    if done < _FALL_UNTIL:
        return 1 - (1 - _LOW) * (done - _RISE_UNTIL) / (_FALL_UNTIL - _RISE_UNTIL)
    return _LOW - (_LOW - _LAST) * (done - _FALL_UNTIL) / (1 - _FALL_UNTIL)
