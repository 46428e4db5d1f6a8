"""Learning of a whole study: effective speed-up, who is first and cheapest, which accuracies are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paceline.analyze.learning.verdicts import LearningOptions, references, with_learning
from paceline.analyze.points.speedups import ratio
from paceline.analyze.points.timing import throughputs
from paceline.analyze.study.study_results import study_results
from paceline.records.results import PointResult, StudyResults
from paceline.records.settings import ScriptSettings, TrainSettings
from paceline.records.study import Point, Study
from paceline.studies.expand.recipe import with_recipe
from samples.trace_samples import traces_of

TIMES = (1.0, 1.01, 0.99, 1.02, 0.98)
CURVE = (0.5, 0.8, 0.9, 0.94, 0.95, 0.95, 0.95, 0.95)


def with_train(point: Point, **changed: object) -> Point:
    return replace(point, train=replace(point.train, **changed))  # pyright: ignore[reportArgumentType]


@pytest.fixture
def learners(run, epoch):
    """Five runs of a point with one curve, an epoch of `epoch_s` seconds, and a test accuracy for each."""

    def learners(point: Point, curve=CURVE, epoch_s: float = 4.0, accuracies=(0.98,) * 5, **changed):
        return [
            run(
                point,
                number,
                epochs=tuple(
                    replace(epoch(at, epoch_s * factor), validation_accuracy=value, validation_loss=1 - value)
                    for at, value in enumerate(curve, 1)
                ),
                test_accuracy=accuracy,
                **changed,
            )
            for number, (factor, accuracy) in enumerate(zip(TIMES, accuracies, strict=True), 1)
        ]

    return learners


@pytest.fixture
def results(point, learners, trace):
    """1 rank, and 2 ranks that are 1.9 times as fast but take twice the epochs to 0.94."""
    slow = (0.4, 0.5, 0.65, 0.8, 0.85, 0.9, 0.92, 0.94)

    def results(study: Study | None = None, **asked) -> StudyResults:
        points = [point(1), point(2)]
        runs = learners(points[0]) + learners(points[1], slow, 4.0 / 1.9)
        at = 100_000_000_000
        whole = [("communicate", at, at + 5), ("collective", at, 0)]
        return study_results(
            study or Study(name="by-hand"),
            "folder",
            points,
            runs,
            traces=lambda chosen: traces_of(trace(whole, rank) for rank in range(chosen.ranks))(chosen),
            machine=None,
            expected_runs=10,
            **asked,
        )

    return results


def test_the_effective_speedup_is_the_ratio_of_times_to_the_target(results) -> None:
    base, two = results(target=0.94).points
    assert two.learning.statistical_efficiency.median == pytest.approx(4 / 8)
    assert two.speedup.median == pytest.approx(1.9)
    assert two.learning.effective_speedup.median == pytest.approx(1.9 * 0.5)
    times = [row.learning.target.time_s.median for row in (base, two)]
    assert two.learning.effective_speedup.median == pytest.approx(times[0] / times[1], rel=0.02)
    found = two.learning.effective_speedup
    assert found.low <= found.median <= found.high and found.n == 5 and found.coverage == pytest.approx(0.9375)
    assert base.learning.effective_speedup.median == 1


def test_samples_count_and_not_steps(point, run, epoch, learners, results) -> None:
    """A batch twice as large that takes half the steps has lost nothing: every epoch has the same samples."""
    weak = [with_train(point(ranks), batch_global=None, batch_per_rank=64) for ranks in (1, 2)]
    runs = learners(weak[0]) + [
        replace(one, epochs=tuple(replace(line, step=line.epoch * 47) for line in one.epochs))
        for one in learners(weak[1], epoch_s=2.0)
    ]
    found = learned_rows(weak, runs)
    assert found[1].learning.target.steps.median == pytest.approx(found[0].learning.target.steps.median / 2)
    assert found[1].learning.statistical_efficiency.median == pytest.approx(1)


def learned_rows(points, runs) -> Any:
    """Rows of `with_learning` alone, without traces: throughputs from the runs."""
    own = {point.point_id: [one for one in runs if one.point_id == point.point_id] for point in points}
    pace = {point_id: throughputs(each) for point_id, each in own.items()}
    rows = [row_of(point, points[0], pace) for point in points]
    return with_learning(rows, own, pace, LearningOptions(target=0.94, margin=0.005))[0]


def row_of(point, base, pace):
    nothing = dict.fromkeys(
        ("epoch_s", "total_s", "samples_per_s", "efficiency", "load_s", "test_accuracy", "test_loss")
    )
    return PointResult(
        point_id=point.point_id,
        point=point,
        label="",
        runs=5,
        speedup=ratio(pace[point.point_id], pace[base.point_id]),
        ledger_s=None,
        rank_ledgers_s=(),
        median_run=None,
        curves=(),
        parameters=None,
        oversubscribed=False,
        baseline=base.point_id,
        **nothing,  # pyright: ignore[reportArgumentType]
    )


def test_first_and_cheapest(results, point) -> None:
    lesson = results(target=0.94).lesson
    assert lesson.first == point(1).point_id, "twice the epochs at 1.9 times the pace come later"
    assert lesson.cheapest == point(1).point_id
    early = results(target=0.45).lesson
    assert (early.first, early.cheapest) == (point(2).point_id, point(1).point_id)


def test_a_target_that_nobody_gave_is_what_all_reached(results) -> None:
    lesson = results().lesson
    assert lesson.target == pytest.approx(0.94) and lesson.rule.startswith("the highest validation accuracy")


def test_the_studys_own_target_counts_and_an_option_goes_before_it(results) -> None:
    study = Study(name="by-hand", train=TrainSettings(target_accuracy=0.9))
    assert (results(study).lesson.target, results(study).lesson.rule) == (0.9, "given")
    assert results(study, target=0.8).lesson.target == 0.8


def test_a_target_beyond_all_is_not_reached(results) -> None:
    found = results(target=0.99)
    assert found.lesson.first is None and found.lesson.cheapest is None
    for row in found.points:
        assert row.learning.target.why == "99.0 % not reached in 8 epochs"
        assert row.learning.effective_speedup is None


def test_within_the_first_epoch_there_is_no_efficiency(results) -> None:
    for row in results(target=0.3).points:
        assert row.learning.target.at_most and row.learning.statistical_efficiency is None


def test_curves_have_bands_from_five_runs_on(results) -> None:
    row = results().points[0]
    band = next(band for band in row.learning.bands if (band.part, band.measure) == ("validation", "accuracy"))
    assert band.n == 5 and band.mean == pytest.approx(CURVE) and len(band.low) == 8
    assert row.learning.stable.epoch is not None


def test_each_point_is_compared_with_the_smallest_of_its_recipe(point) -> None:
    small, large = (with_train(point(1), batch_global=batch) for batch in (64, 2048))
    wide = with_train(point(4), batch_global=64)
    other, other_wide = (with_train(point(ranks), batch_global=64, lr=0.1) for ranks in (1, 4))
    points = {each.point_id: each for each in (large, wide, small, other_wide, other)}
    assert references(points) == {
        large.point_id: small.point_id,
        wide.point_id: small.point_id,
        other_wide.point_id: other.point_id,
        other.point_id: small.point_id,
    }


def test_what_a_recipe_chose_by_batch_or_ranks_is_the_same_recipe(point) -> None:
    """`scale` warms up at 2,048 and not at 64, `as-published` takes the rate for one rank's share."""
    points = {
        (recipe, batch, ranks): with_recipe(with_train(point(ranks), recipe=recipe, batch_global=batch))
        for recipe in ("as-published", "", "scale")
        for batch in (64, 2048)
        for ranks in (1, 4)
    }
    names = {each.point_id: name for name, each in points.items()}
    found = references({each.point_id: each for each in points.values()})
    for own, against in found.items():
        recipe, smallest = names[own][0], names[own][1:] == (64, 1)
        assert names[against] == ("as-published" if smallest else recipe, 64, 1), names[own]
    assert len(found) == len(points) - 1, "all but the first"


def test_epochs_that_are_divided_by_ranks_are_the_same_recipe(point) -> None:
    rule = {"epochs": 8, "epochs_rule": "divide-by-ranks"}
    one, four = (with_recipe(with_train(point(ranks), **rule)) for ranks in (1, 4))
    other = with_train(point(4), epochs=2)
    points = {each.point_id: each for each in (other, one, four)}
    assert references(points) == {one.point_id: other.point_id, four.point_id: one.point_id}


def test_a_script_has_no_learning(point, run) -> None:
    script = replace(point(1), script=ScriptSettings(path="train.py"), train=TrainSettings())
    runs = {script.point_id: [run(script, epochs=(), test_accuracy=None, test_loss=None)]}
    rows, lesson = with_learning(
        [row_of(script, script, {script.point_id: {1: 1.0}})], runs, {}, LearningOptions(target=None, margin=0.005)
    )
    assert rows[0].learning is None and lesson.target is None and lesson.checks == ()


def test_a_point_with_a_dead_run_is_called_equal_to_none(point, learners, epoch) -> None:
    points = [point(1), with_train(point(1), batch_global=2048)]
    high = (0.98, 0.981, 0.982, 0.983, 0.984)
    runs = learners(points[0], accuracies=high) + learners(points[1], accuracies=high)
    dead = replace(epoch(8, 4.0), validation_loss=2.31, validation_accuracy=0.1)
    sixth = [
        replace(runs[0], run=6, classes=10),
        replace(runs[5], run=6, classes=10, epochs=(*runs[5].epochs[:-1], dead), test_accuracy=0.1),
    ]
    assert checked(points, runs).equal
    found = checked(points, [*runs, *sixth])
    assert not found.equal and found.p_equal is None and (found.n, found.difference) == (5, 0.0)


def checked(points, runs):
    rows = [row_of(each, each, {each.point_id: {1: 1.0}}) for each in points]
    own = {each.point_id: [one for one in runs if one.point_id == each.point_id] for each in points}
    (check,) = with_learning(
        rows, own, {each.point_id: {} for each in points}, LearningOptions(target=None, margin=0.005)
    )[1].checks
    return check


def test_accuracies_are_checked_over_repeats(point, learners) -> None:
    points = [point(1), with_train(point(1), batch_global=2048)]
    rng = np.random.default_rng(0)
    high, low = (mean + rng.normal(0, 0.001, 5) for mean in (0.99, 0.931))
    check = checked(points, learners(points[0], accuracies=high) + learners(points[1], accuracies=low))
    assert check.different and not check.equal and check.batch_ratio == pytest.approx(16)
    assert check.difference == pytest.approx(-0.059, abs=0.002)
    assert check.low is not None and check.high is not None
    assert check.low < check.difference < check.high < 0
