"""Runs of several phases -> figures of each: its epochs, its test, and what it gained over the phase before.

    gain   mean over repeats of (test accuracy after the phase − before it), with the 95 % interval of Student's t

Both accuracies are of one run, on the same test set: what the seed does to a run cancels in their difference. Speed-ups
and all other figures of scaling come from the first phase alone: a phase that trains more is slower, and a median over
both would be of neither.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from paceline.analyze.learning.equivalence import MARGIN, paired
from paceline.analyze.study.stats import median_interval, spread
from paceline.analyze.study.timing import phase_epoch_s
from paceline.records.results import Gain, PhaseResult
from paceline.records.run import CachedFeatures, PhaseEnd, RunResult

FEWEST_FOR_GAIN = 3
"""Two differences have an interval, too, but one that is thirteen times their standard error."""


def phase_results(runs: Sequence[RunResult]) -> tuple[PhaseResult, ...]:
    """The phases that all these runs went through; empty where they know of none."""
    number = min((len(run.phases) for run in runs), default=0)
    return tuple(_phase([run.phases for run in runs], runs, place) for place in range(number))


def slowest_features(runs: Sequence[RunResult]) -> CachedFeatures | None:
    """How the features that runs trained on came to be, where that took longest; None where they had images."""
    return max((run.features for run in runs if run.features), key=lambda made: made.ready_s, default=None)


def _phase(ends: Sequence[tuple[PhaseEnd, ...]], runs: Sequence[RunResult], place: int) -> PhaseResult:
    own = [phases[place] for phases in ends]
    epochs = [value for run in runs if (value := phase_epoch_s(run, own[0].name)) is not None]
    return PhaseResult(
        name=own[0].name,
        epoch_s=median_interval(epochs) if epochs else None,
        test_accuracy=spread([end.test_accuracy for end in own]),
        test_loss=spread([end.test_loss for end in own]),
        gain=_gain([phases[place].test_accuracy - phases[place - 1].test_accuracy for phases in ends])
        if place
        else None,
    )


def _gain(differences: Sequence[float]) -> Gain:
    if len(differences) < FEWEST_FOR_GAIN:
        return Gain(mean=statistics.fmean(differences), low=None, high=None, n=len(differences))
    found = paired(differences, MARGIN)
    return Gain(mean=found.mean, low=found.low, high=found.high, n=found.n)
