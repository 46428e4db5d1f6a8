"""Time, steps and samples to a target: on the line between two epochs, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.analyze.learning.targets import chosen_target, samples_to, target, target_crossing
from paceline.records.run import RunResult


@pytest.fixture
def learner(point, run, epoch):
    """A run with these validation accuracies: 94 steps, 12,000 samples and `epoch_s` seconds an epoch."""

    def learner(accuracies, number: int = 1, epoch_s: float = 2.0) -> RunResult:
        epochs = tuple(replace(epoch(at, epoch_s), validation_accuracy=value) for at, value in enumerate(accuracies, 1))
        return run(point(1), number, epochs=epochs)

    return learner


def test_between_two_epochs_it_lies_on_their_line(learner) -> None:
    found = target_crossing(learner([0.5, 0.8, 0.9]), 0.85)
    assert found is not None
    assert (found.epochs, found.steps, found.samples, found.time_s) == pytest.approx((2.5, 235, 30_000, 5.0))
    assert found.interpolated and not found.at_most


def test_at_an_epoch_nothing_is_interpolated(learner) -> None:
    found = target_crossing(learner([0.5, 0.8, 0.9]), 0.8)
    assert found is not None and found.epochs == pytest.approx(2) and not found.interpolated


def test_within_the_first_epoch_it_is_an_upper_bound(learner) -> None:
    found = target_crossing(learner([0.5, 0.8]), 0.3)
    assert found is not None and found.at_most and found.steps == 94
    assert samples_to([learner([0.5, 0.8])], 0.3) == {}, "a ratio of two bounds says nothing"


def test_the_first_time_counts_and_a_later_fall_does_not(learner) -> None:
    found = target_crossing(learner([0.5, 0.9, 0.4, 0.9]), 0.9)
    assert found is not None and found.epochs == pytest.approx(2)


def test_fine_tuning_does_not_count(learner) -> None:
    """Its epochs take longer and its accuracies are higher: times to a target are those of the first phase."""
    whole = learner([0.5, 0.8, 0.9, 0.95])
    run = replace(whole, epochs=(*whole.epochs[:2], *(replace(late, phase="finetune") for late in whole.epochs[2:])))
    assert target_crossing(run, 0.8) == target_crossing(whole, 0.8)
    assert target_crossing(run, 0.85) is None and samples_to([run], 0.85) == {}
    assert chosen_target({"a": [run]}, {}) == pytest.approx(0.8)
    found = target([run], 0.85, processes=1)
    assert found is not None and found.why == "85.0 % not reached in 2 epochs"


def test_what_only_some_runs_reach_has_no_figures(learner) -> None:
    runs = [learner([0.5, 0.8, 0.9], 1), learner([0.5, 0.6, 0.7], 2)]
    found = target(runs, 0.85, processes=4)
    assert found is not None and found.steps is None and (found.reached, found.runs) == (1, 2)
    assert found.why == "85.0 % not reached in 3 epochs by 1 of 2 runs"
    none = target(runs, 0.95, processes=4)
    assert none is not None and none.why == "95.0 % not reached in 3 epochs"
    assert samples_to(runs, 0.85) == {}


def test_medians_over_runs_and_hours_of_all_processes(learner) -> None:
    runs = [learner([0.5, 0.8, 0.9], n, epoch_s=n * 10.0) for n in range(1, 6)]
    found = target(runs, 0.9, processes=3)
    assert found is not None and found.time_s is not None and found.rank_hours is not None
    assert (found.time_s.median, found.time_s.low, found.time_s.high) == pytest.approx((90, 30, 150))
    assert found.time_s.coverage == pytest.approx(0.9375)
    assert found.rank_hours.median == pytest.approx(90 * 3 / 3600)
    one = target(runs[:1], 0.9, processes=1)
    assert one is not None and one.steps is not None and one.steps.coverage is None, "one run has no interval"


def test_without_validation_there_is_nothing(learner) -> None:
    runs = [learner([None, None])]
    assert target(runs, 0.5, processes=1) is None and chosen_target({"a": runs}, {}) is None


def test_a_chosen_target_is_what_every_run_that_learned_reached(learner) -> None:
    runs = {"a": [learner([0.5, 0.9764], 1), learner([0.5, 0.95, 0.94], 2)], "b": [learner([0.1, 0.1], 1)]}
    assert chosen_target(runs, {"b": {1}}) == pytest.approx(0.95)
    assert chosen_target(runs, {}) == pytest.approx(0.1)
    assert chosen_target({"a": [learner([0.9764])]}, {}) == pytest.approx(0.976), "rounded down"
    assert chosen_target({"a": [learner([float("nan"), 0.7])]}, {}) == pytest.approx(0.7)


def test_a_resumed_run_has_steps_to_a_target_and_no_time(learner) -> None:
    runs = [learner([0.5, 0.8, 0.9], n, epoch_s=n * 10.0) for n in range(1, 4)]
    runs[2] = replace(runs[2], resumed_from_step=94)
    again = target_crossing(runs[2], 0.9)
    assert again is not None and again.time_s is None and again.steps == 282
    found = target(runs, 0.9, processes=1)
    assert found is not None and found.steps is not None and found.time_s is not None and found.rank_hours is not None
    assert (
        (found.steps.n, found.time_s.n, found.rank_hours.n) == (3, 2, 2) and found.time_s.high == 60 and not found.why
    )
    every = target([replace(run, resumed_from_step=94) for run in runs], 0.9, processes=1)
    assert every is not None and every.time_s is None and every.steps is not None
    assert every.why == "the time to 90.0 % is not known: every run was resumed"


# The fixture makes records and keeps none: it may be shared by examples.
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
curves = st.lists(st.floats(0, 1), min_size=2, max_size=12)


@shared
@given(curves, st.floats(0.01, 0.99))
def test_it_is_reached_at_an_epoch_that_has_it_and_after_one_that_has_not(learner, accuracies, wanted) -> None:
    found = target_crossing(learner(accuracies), wanted)
    if found is None:
        assert max(accuracies) < wanted
        return
    first = next(index for index, value in enumerate(accuracies) if value >= wanted)
    assert first - 1e-9 <= found.epochs <= first + 1
    assert found.steps == pytest.approx(94 * found.epochs) and found.time_s == pytest.approx(2 * found.epochs)


@shared
@given(st.integers(0, 1000).map(lambda tenths: tenths / 1000) | st.floats(0, 1))
def test_a_run_reaches_the_target_that_was_chosen_by_it(learner, accuracy) -> None:
    run = learner([0.0, accuracy])
    chosen = chosen_target({"a": [run]}, {})
    assert chosen is not None and accuracy - 0.001 < chosen <= accuracy
    assert target_crossing(run, chosen) is not None


def test_a_target_is_no_ulp_above_the_accuracy_it_came_from(learner) -> None:
    assert chosen_target({"a": [learner([0.563])]}, {}) == 0.563


@shared
@given(curves, st.floats(0.01, 0.98))
def test_a_higher_target_is_never_reached_earlier(learner, accuracies, wanted) -> None:
    run = learner(accuracies)
    lower, higher = target_crossing(run, wanted), target_crossing(run, wanted + 0.01)
    assert higher is None or (lower is not None and lower.epochs <= higher.epochs + 1e-9)
