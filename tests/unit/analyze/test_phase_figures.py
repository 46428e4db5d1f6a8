"""Figures of phases: times of the first alone, and the gain of the second within each repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.analyze.study.phases import phase_results, slowest_features
from paceline.analyze.study.results import study_results
from paceline.analyze.study.timing import epoch_s, phase_epoch_s, timed_epochs
from paceline.errors import StorageError
from paceline.records.run import CachedFeatures, PhaseEnd
from paceline.records.study import Study

TIMES_S = {"train": (9.0, 2.0, 2.2, 2.1), "finetune": (40.0, 30.0, 31.0)}


@pytest.fixture
def tuned(point, epoch, run):
    """A run of two phases, with the accuracies that its tests found."""

    def tuned(number: int = 1, before: float = 0.80, after: float = 0.90, **changed):
        names = [(name, time_s) for name, times in TIMES_S.items() for time_s in times]
        epochs = tuple(replace(epoch(i, time_s), phase=name) for i, (name, time_s) in enumerate(names, start=1))
        ends = [("train", 4, before), ("finetune", 3, after)]
        phases = tuple(PhaseEnd(name=n, steps=94 * s, test_loss=1 - a, test_accuracy=a) for n, s, a in ends)
        return run(point(), number, epochs=epochs, test_accuracy=after, phases=phases, **changed)

    return tuned


def test_times_are_those_of_the_first_phase_without_its_first_epoch(tuned, point, run):
    assert [epoch.epoch for epoch in timed_epochs(tuned())] == [2, 3, 4]
    assert epoch_s(tuned()) == 2.1
    assert phase_epoch_s(tuned(), "train") == 2.1
    assert phase_epoch_s(tuned(), "finetune") == 30.5
    assert phase_epoch_s(run(point()), "finetune") is None


def test_a_gain_is_taken_within_repeats(tuned):
    """The accuracies vary by ten points, what tuning adds by a tenth of one."""
    before, gains = [0.70, 0.75, 0.80, 0.72, 0.78], [0.010, 0.011, 0.012, 0.011, 0.011]
    runs = [tuned(n, b, b + g) for n, (b, g) in enumerate(zip(before, gains, strict=True), start=1)]
    first, second = phase_results(runs)
    assert (first.name, second.name, first.gain) == ("train", "finetune", None)
    gain = second.gain
    assert gain is not None and gain.low is not None and gain.high is not None
    # 2.776 is Student's t at 97.5 % with 4 degrees of freedom; the standard error is 0.000707 / √5.
    assert gain.mean == pytest.approx(0.011)
    assert (gain.low, gain.high) == pytest.approx((0.011 - 2.776 * 3.162e-4, 0.011 + 2.776 * 3.162e-4), rel=1e-3)
    assert second.test_accuracy.mean == pytest.approx(0.761)
    assert second.epoch_s is not None and second.epoch_s.median == 30.5


def test_two_repeats_have_a_gain_and_no_interval(tuned):
    gain = phase_results([tuned(1), tuned(2, 0.7, 0.9)])[1].gain
    assert gain is not None
    assert (gain.mean, gain.low, gain.high, gain.n) == (pytest.approx(0.15), None, None, 2)


def test_runs_from_before_there_were_phases_have_none(point, run):
    assert phase_results([run(point())]) == ()
    assert phase_results([]) == ()


def lost(run):
    raise StorageError("They were deleted.")


def test_results_know_the_phases_and_where_features_came_from(tuned, point):
    made = CachedFeatures(samples=10, size=3, ready_s=4.0, found=False)
    runs = [tuned(1, features=made), tuned(2, features=replace(made, ready_s=0.1, found=True))]
    results = study_results(Study(name="s"), "f", [point()], runs, traces=lost, machine=None, expected_runs=2)
    (row,) = results.points
    assert [phase.name for phase in row.phases] == ["train", "finetune"]
    assert row.features == made == slowest_features(runs)
    assert row.epoch_s is not None and row.epoch_s.median == 2.1
    assert row.test_accuracy is not None and row.test_accuracy.mean == pytest.approx(0.9)
