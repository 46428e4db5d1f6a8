"""Figures of phases: times of the first alone, and the gain of the second within each repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.analyze.points.timing import epoch_s, phase_epoch_s, timed_epochs
from paceline.analyze.study.phase_results import phase_results, slowest_features
from paceline.analyze.study.study_results import study_results
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
        phases = tuple(
            PhaseEnd(name=n, steps=94 * s, test_loss=1 - a, test_accuracy=a, test_s=2.0 * s + number)
            for n, s, a in ends
        )
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
    first, second = phase_results({"a": runs})["a"]
    assert (first.name, second.name, first.gain) == ("train", "finetune", None)
    gain = second.gain
    assert gain is not None and gain.low is not None and gain.high is not None
    # 2.776 is Student's t at 97.5 % with 4 degrees of freedom; the standard error is 0.000707 / √5.
    assert gain.mean == pytest.approx(0.011)
    assert (gain.low, gain.high) == pytest.approx((0.011 - 2.776 * 3.162e-4, 0.011 + 2.776 * 3.162e-4), rel=1e-3)
    assert second.test_accuracy.mean == pytest.approx(0.761)
    assert second.epoch_s is not None and second.epoch_s.median == 30.5
    assert first.test_s is not None and second.test_s is not None
    assert (first.test_s.low, first.test_s.median, first.test_s.high) == (9.0, 11.0, 13.0)
    assert second.test_s.median == 9.0


def test_results_from_before_the_test_was_timed_have_no_time_for_it(tuned):
    runs = [tuned(n) for n in range(1, 6)]
    old = [replace(run, phases=tuple(replace(end, test_s=None) for end in run.phases)) for run in runs]
    assert [phase.test_s for phase in phase_results({"a": old})["a"]] == [None, None]


@pytest.mark.parametrize("repeats", [2, 4])
def test_fewer_than_five_repeats_have_a_gain_and_no_interval(tuned, repeats):
    runs = [tuned(n, 0.7 + 0.1 * (n % 2), 0.9) for n in range(1, repeats + 1)]
    gain = phase_results({"a": runs})["a"][1].gain
    assert gain is not None
    assert (gain.mean, gain.low, gain.high, gain.n) == (pytest.approx(0.15), None, None, repeats)


def test_a_run_that_learned_nothing_gained_nothing_that_counts(tuned):
    runs = [tuned(n, 0.70 + n / 100, 0.72 + n / 100 + n / 1e4) for n in range(1, 7)]
    dead = tuned(7, 0.1, 0.1, classes=10)
    last = replace(dead.epochs[-1], train_loss=2.31, train_accuracy=0.1)
    dead = replace(dead, epochs=(*dead.epochs[:-1], last))
    gain = phase_results({"a": [*runs, dead]})["a"][1].gain
    assert gain == phase_results({"a": runs})["a"][1].gain and gain.n == 6
    whole = phase_results({"a": [*runs, dead]})["a"][1].test_accuracy
    assert whole.n == 7, "the accuracy beside it is of all runs"


def gained(tuned, *means):
    """Points with these mean gains and one spread, five repeats each."""
    away = (-0.002, -0.001, 0.0, 0.001, 0.002)
    runs = {
        f"point {number}": [tuned(n, 0.7, 0.7 + mean + each) for n, each in enumerate(away, start=1)]
        for number, mean in enumerate(means)
    }
    return [phases[1].gain for phases in phase_results(runs).values()]


def test_gains_of_several_points_are_corrected_for_their_number(tuned):
    """A mean of 0.0022 with an error of 0.000707 has p = 0.036: one alone is called, of two or more none."""
    (alone,) = gained(tuned, 0.0022)
    assert alone.low > 0
    among = gained(tuned, 0.0022, 0.0, 0.0)
    assert among[0].low < 0 < among[0].high and among[0].mean == pytest.approx(alone.mean)
    sure = gained(tuned, 0.0022, 0.02)
    assert sure[0].low == pytest.approx(alone.low) and sure[1].low > 0, "after the surer one it is the last, by Holm"


def test_runs_from_before_there_were_phases_have_none(point, run):
    assert phase_results({"a": [run(point())], "b": []}) == {"a": (), "b": ()}


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
