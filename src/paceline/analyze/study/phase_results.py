"""Metrics of each phase of a training: epochs, test, and gain over the phase before.

    gain   mean over repeats of (test accuracy after the phase − before it), with the 95 % interval of Student's t

Both accuracies are of one run, so effects of the seed cancel in their difference. Failed runs are excluded if most runs
of their point learn. An interval requires five repeats. If several points have a gain, intervals are widened by Holm's
method: an interval excludes 0 if the corrected p-value of its point is below 5 %.

Speed-ups and other scaling metrics come from the first phase only: later phases train more of the model.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paceline.analyze.learning.faults import learning_runs
from paceline.analyze.points.timing import phase_epoch_s
from paceline.analyze.stats.equivalence import LEVEL, MARGIN, paired
from paceline.analyze.stats.intervals import FEWEST_FOR_INTERVAL, median_interval, spread
from paceline.analyze.stats.students_t import quantile
from paceline.analyze.stats.two_samples import holm
from paceline.records.results import Gain, PhaseResult
from paceline.records.run import CachedFeatures, RunResult

Phases = tuple[PhaseResult, ...]


def phase_results(runs: Mapping[str, Sequence[RunResult]]) -> dict[str, Phases]:
    """point_id -> the phases that all its runs completed."""
    found = {
        point_id: tuple(_phase(own, place) for place in range(min((len(run.phases) for run in own), default=0)))
        for point_id, own in runs.items()
    }
    tested = [
        (point_id, place, differences)
        for point_id, phases in found.items()
        for place in range(1, len(phases))
        if len(differences := _gained(runs[point_id], place)) >= FEWEST_FOR_INTERVAL
    ]
    for (point_id, place, _), gain in zip(tested, _gains([each for *_, each in tested]), strict=True):
        phases = list(found[point_id])
        phases[place] = replace(phases[place], gain=gain)
        found[point_id] = tuple(phases)
    return found


def slowest_features(runs: Sequence[RunResult]) -> CachedFeatures | None:
    """Cached features of the run that took longest to prepare them; None if runs trained on images."""
    return max((run.features for run in runs if run.features), key=lambda made: made.ready_s, default=None)


def _phase(runs: Sequence[RunResult], place: int) -> PhaseResult:
    """One phase of a point, without the interval of its gain."""
    own = [run.phases[place] for run in runs]
    epochs = [value for run in runs if (value := phase_epoch_s(run, own[0].name)) is not None]
    tests = [end.test_s for end in own if end.test_s is not None]
    gained = _gained(runs, place) if place else []
    return PhaseResult(
        name=own[0].name,
        epoch_s=median_interval(epochs) if epochs else None,
        test_accuracy=spread([end.test_accuracy for end in own]),
        test_loss=spread([end.test_loss for end in own]),
        test_s=median_interval(tests) if tests else None,
        trainable=own[0].trainable,
        gain=Gain(mean=statistics.fmean(gained), low=None, high=None, n=len(gained)) if gained else None,
    )


def _gained(runs: Sequence[RunResult], place: int) -> list[float]:
    """Gain of test accuracy in a phase, for each run that learned."""
    ends = [run.phases for run in learning_runs(runs)]
    return [phases[place].test_accuracy - phases[place - 1].test_accuracy for phases in ends]


def _gains(tested: Sequence[Sequence[float]]) -> list[Gain]:
    """Gains with intervals, widened as much as the correction raises their p-values."""
    found = [paired(differences, MARGIN) for differences in tested]
    ps = [one.p_different for one in found]
    gains = []
    for differences, one, p, corrected in zip(tested, found, ps, holm(ps), strict=True):
        level = LEVEL * p / corrected if p and corrected else LEVEL / len(found)
        error = statistics.stdev(differences) / math.sqrt(one.n)
        half = quantile(1 - level / 2, one.n - 1) * error
        gains.append(Gain(mean=one.mean, low=one.mean - half, high=one.mean + half, n=one.n))
    return gains
