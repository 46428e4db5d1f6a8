"""Times of one run: its timed epochs, their duration, samples per second.

The epochs of a script are unknown: its timed steps, all but the first, count as one epoch.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from itertools import pairwise

from paceline.records.run import Epoch, RunResult


def timed_epochs(run: RunResult) -> tuple[Epoch, ...]:
    """The timed epochs of a run, all of the first phase: later phases train more of the model.

    Whole epochs, or partial ones if there are none; without the first, which warms up, and without interrupted ones,
    unless there are no others.
    """
    if run.script.timed_s:
        return (_timed_steps(run, run.script.timed_s),)
    return _timed([epoch for epoch in run.epochs if epoch.phase == run.epochs[0].phase], warm_up=1)


def phase_epoch_s(run: RunResult, phase: str) -> float | None:
    """Median seconds of a whole epoch of one phase; None if it completed none."""
    own = [epoch for epoch in run.epochs if epoch.phase == phase]
    timed = _timed(own, warm_up=own[0].epoch if own else 0)
    return statistics.median(epoch.epoch_s for epoch in timed) if timed and timed[0].whole else None


def _timed(epochs: list[Epoch], *, warm_up: int) -> tuple[Epoch, ...]:
    timed = [epoch for epoch in epochs if epoch.epoch_s > 0]
    timed = [epoch for epoch in timed if epoch.whole] or timed
    timed = [epoch for epoch in timed if epoch.epoch > warm_up] or timed
    return tuple([epoch for epoch in timed if not epoch.resumed] or timed)


def timed_from_step(run: RunResult) -> list[tuple[int, Epoch]]:
    """The timed epochs, each with its first step."""
    begun_at = {epoch.epoch: before.step for before, epoch in pairwise(run.epochs)}
    begun_at |= {2: 1} if run.script.timed_s else {}
    return [(begun_at.get(epoch.epoch, 0), epoch) for epoch in timed_epochs(run)]


def epoch_s(run: RunResult) -> float | None:
    """Median seconds of a whole epoch, without evaluation; None if the run completed none."""
    timed = timed_epochs(run)
    if not timed or not timed[0].whole:
        return None
    return statistics.median(epoch.epoch_s for epoch in timed)


def samples_per_s(run: RunResult) -> float | None:
    """Training samples per second over all ranks; None if no epoch was timed, or the samples are unknown."""
    timed = timed_epochs(run)
    if not timed or not timed[0].samples:
        return None
    return statistics.median(epoch.samples for epoch in timed) / statistics.median(epoch.epoch_s for epoch in timed)


def throughputs(runs: Iterable[RunResult]) -> dict[int, float]:
    """Samples per second by number of the run, of the timed runs."""
    return {run.run: value for run in runs if (value := samples_per_s(run)) is not None and value > 0}


def _timed_steps(run: RunResult, timed_s: float) -> Epoch:
    """The timed steps of a script as one epoch, after the first step, which warms up."""
    return Epoch(
        epoch=2,
        step=run.steps,
        samples=run.script.samples or 0,
        train_loss=math.nan,
        train_accuracy=math.nan,
        validation_loss=None,
        validation_accuracy=None,
        epoch_s=timed_s,
        evaluate_s=0.0,
        whole=False,
    )
