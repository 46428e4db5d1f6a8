"""The figures of one run: which of its epochs are timed, how long they take, how many samples pass in a second.

A script has no epochs that could be seen: its timed steps, all but the first, stand in for one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from itertools import pairwise

from paceline.records.run import Epoch, RunResult


def timed_epochs(run: RunResult) -> tuple[Epoch, ...]:
    """The epochs of a run that its times come from.

    Those of the first phase: a later one trains more of the model. Whole ones, or where `steps` allowed none, the
    partial ones; without the first, which warms up, and without interrupted ones, as long as any is left.
    """
    if run.script.timed_s:
        return (_timed_steps(run, run.script.timed_s),)
    return _timed([epoch for epoch in run.epochs if epoch.phase == run.epochs[0].phase], warm_up=1)


def phase_epoch_s(run: RunResult, phase: str) -> float | None:
    """Seconds of a whole epoch of one phase; None where it never completed one."""
    own = [epoch for epoch in run.epochs if epoch.phase == phase]
    timed = _timed(own, warm_up=own[0].epoch if own else 0)
    return statistics.median(epoch.epoch_s for epoch in timed) if timed and timed[0].whole else None


def _timed(epochs: list[Epoch], *, warm_up: int) -> tuple[Epoch, ...]:
    timed = [epoch for epoch in epochs if epoch.epoch_s > 0]
    for wanted in (_whole, lambda epoch: epoch.epoch > warm_up, _uninterrupted):
        timed = [epoch for epoch in timed if wanted(epoch)] or timed
    return tuple(timed)


def timed_from_step(run: RunResult) -> list[tuple[int, Epoch]]:
    """The timed epochs, each with the step at which it began."""
    begun_at = {epoch.epoch: before.step for before, epoch in pairwise(run.epochs)}
    begun_at |= {2: 1} if run.script.timed_s else {}
    return [(begun_at.get(epoch.epoch, 0), epoch) for epoch in timed_epochs(run)]


def epoch_s(run: RunResult) -> float | None:
    """Seconds of a whole epoch, without evaluation; None where the run never completed one."""
    timed = timed_epochs(run)
    if not timed or not timed[0].whole:
        return None
    return statistics.median(epoch.epoch_s for epoch in timed)


def samples_per_s(run: RunResult) -> float | None:
    """Samples trained on per second over all ranks; None where nothing was timed, or they are not known."""
    timed = timed_epochs(run)
    if not timed or not timed[0].samples:
        return None
    # Median by median: for whole epochs, which all have the same samples, exactly samples / epoch_s.
    return statistics.median(epoch.samples for epoch in timed) / statistics.median(epoch.epoch_s for epoch in timed)


def throughputs(runs: Iterable[RunResult]) -> dict[int, float]:
    """Samples per second by number of the run, of those that have any."""
    return {run.run: value for run in runs if (value := samples_per_s(run)) is not None and value > 0}


def _timed_steps(run: RunResult, timed_s: float) -> Epoch:
    """The timed steps of a script, as the one epoch after the step that warms up; its losses are not known."""
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


def _whole(epoch: Epoch) -> bool:
    return epoch.whole


def _uninterrupted(epoch: Epoch) -> bool:
    return not epoch.resumed
