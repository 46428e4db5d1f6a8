"""What holds for speed-up and efficiency of any runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.analyze.study.study_results import study_results
from paceline.records.results import PointResult, StudyResults
from paceline.records.run import Epoch, RunResult
from paceline.records.settings import RunSettings, TrainSettings
from paceline.records.study import Point, Study
from samples.trace_samples import traces_of

SAMPLES = 12_000
thorough = settings(max_examples=100, deadline=None)

epoch_times = st.floats(0.01, 1000.0)
repeated = st.lists(epoch_times, min_size=1, max_size=7)


def point(ranks: int) -> Point:
    study = Study(name="any", train=TrainSettings(batch_global=128, epochs=2), run=RunSettings(ranks=(1, 2)))
    return Point(data=study.data, data_digest="d", model=study.model, model_digest="", train=study.train, ranks=ranks)


def run(of: Point, number: int, epoch_s: float) -> RunResult:
    # The first epoch is warm-up: its time must not show anywhere.
    epochs = tuple(
        Epoch(
            epoch=number,
            step=number * 94,
            samples=SAMPLES,
            train_loss=0.5,
            train_accuracy=0.8,
            validation_loss=None,
            validation_accuracy=None,
            epoch_s=seconds,
            evaluate_s=0.1,
            whole=True,
        )
        for number, seconds in ((1, 7 * epoch_s), (2, epoch_s))
    )
    return RunResult(
        point_id=of.point_id,
        run=number,
        seed=number - 1,
        ranks=of.ranks,
        attempt=1,
        launched_at="2030-01-01T00:00:00+00:00",
        launched_at_ns=10**12,
        total_s=10 * epoch_s,
        wall_s=10 * epoch_s,
        epochs=epochs,
        test_loss=0.1,
        test_accuracy=0.97,
        parameters=690_590,
        load_s=0.01,
        steps=188,
        weights_sha256="w",
        oversubscribed=False,
    )


def results(times_by_ranks: dict[int, list[float]]) -> StudyResults:
    points = [point(ranks) for ranks in times_by_ranks]
    runs = [
        run(of, number, epoch_s) for of in points for number, epoch_s in enumerate(times_by_ranks[of.ranks], start=1)
    ]
    return study_results(
        Study(name="any"), "folder", points, runs, traces=traces_of(()), machine=None, expected_runs=len(runs)
    )


def figures(row: PointResult) -> tuple[float, float, float, float, float, float]:
    assert row.speedup and row.efficiency
    up, of = row.speedup, row.efficiency
    return (up.median, up.low, up.high, of.median, of.low, of.high)


@thorough
@given(repeated, st.integers(1, 64))
def test_the_same_times_are_no_speed_up(times: list[float], ranks: int) -> None:
    for row in results({ranks: times, ranks + 1: times}).points:
        assert figures(row)[:3] == (1.0, 1.0, 1.0)


@thorough
@given(repeated)
def test_half_the_time_on_twice_the_ranks_is_perfect(times: list[float]) -> None:
    _, row = results({1: times, 2: [seconds / 2 for seconds in times]}).points
    assert figures(row) == (2.0, 2.0, 2.0, 1.0, 1.0, 1.0)


@thorough
@given(repeated, repeated, st.integers(1, 8), st.integers(9, 64))
def test_efficiency_is_speed_up_per_added_rank(
    base: list[float], times: list[float], base_ranks: int, ranks: int
) -> None:
    found = results({base_ranks: base, ranks: times})
    assert found.baseline == point(base_ranks).point_id
    for row in found.points:
        up, of = figures(row)[:3], figures(row)[3:]
        assert [value * row.point.ranks / base_ranks for value in of] == pytest.approx(up)


@thorough
@given(repeated, repeated)
def test_the_interval_contains_the_estimate(base: list[float], times: list[float]) -> None:
    for row in results({1: base, 2: times}).points:
        median, low, high = figures(row)[:3]
        assert low <= median <= high
        assert row.speedup and row.speedup.n == min(row.runs, len(base))


@thorough
@given(repeated, repeated, st.floats(0.01, 100.0))
def test_a_faster_clock_changes_no_speed_up(base: list[float], times: list[float], factor: float) -> None:
    as_measured = results({1: base, 4: times})
    scaled = results({1: [s * factor for s in base], 4: [s * factor for s in times]})
    for before, after in zip(as_measured.points, scaled.points, strict=True):
        assert figures(after) == pytest.approx(figures(before))
        assert before.epoch_s and after.epoch_s
        assert after.epoch_s.median == pytest.approx(before.epoch_s.median * factor)


@thorough
@given(repeated, repeated, st.randoms(use_true_random=False))
def test_the_order_of_runs_and_points_does_not_matter(base: list[float], times: list[float], random) -> None:
    points = [point(1), point(2)]
    runs = [run(points[0], n, s) for n, s in enumerate(base, 1)] + [
        run(points[1], n, s) for n, s in enumerate(times, 1)
    ]

    def rows(points: list[Point], runs: list[RunResult]) -> StudyResults:
        return study_results(
            Study(name="any"), "folder", points, runs, traces=traces_of(()), machine=None, expected_runs=len(runs)
        )

    assert rows(points[::-1], random.sample(runs, len(runs))) == rows(points, runs)


@thorough
@given(repeated, repeated)
def test_throughput_is_samples_over_epoch_time(base: list[float], times: list[float]) -> None:
    for row in results({1: base, 2: times}).points:
        if row.runs % 2:
            assert row.samples_per_s and row.epoch_s
            assert row.samples_per_s.median == pytest.approx(SAMPLES / row.epoch_s.median)


@thorough
@given(repeated, st.integers(2, 4))
def test_weak_scaling_that_keeps_its_pace_is_perfect(times: list[float], ranks: int) -> None:
    points = [point(1), point(ranks)]
    runs = [run(points[0], n, s) for n, s in enumerate(times, 1)]
    for number, seconds in enumerate(times, 1):
        grown = run(points[1], number, seconds)
        epochs = tuple(replace(epoch, samples=ranks * SAMPLES) for epoch in grown.epochs)
        runs.append(replace(grown, epochs=epochs))
    found = study_results(
        Study(name="any"), "folder", points, runs, traces=traces_of(()), machine=None, expected_runs=len(runs)
    )
    assert figures(found.points[1])[3:] == pytest.approx((1.0, 1.0, 1.0))
