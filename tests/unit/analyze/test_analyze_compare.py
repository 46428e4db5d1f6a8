"""Series side by side: which is fastest, and when the repeats cannot tell."""

from __future__ import annotations

from dataclasses import replace

from paceline.analyze.study.study_results import study_results
from paceline.records.results import Comparison
from paceline.records.study import Study
from samples.trace_samples import traces_of

STEADY = (1.0, 1.01, 1.02, 1.0, 1.01)


def compared(point, run, seconds: dict[str, float], noise=STEADY, **changed) -> tuple[Comparison, ...]:
    """The comparisons of strategies at two ranks that take so many seconds; one rank was run once for all."""
    study = Study(name="by-hand", vary={"run.strategy": tuple(seconds)})
    points = [point(1), *(point(2, name) for name in seconds)]
    runs = [run(points[0], n, 8.0) for n in range(1, len(noise) + 1)]
    for name, own in seconds.items():
        told = changed.get(name.replace("-", "_"), {})
        runs += [run(point(2, name), n, own * factor, **told) for n, factor in enumerate(noise, 1)]
    return study_results(
        study, "folder", points, runs, traces=traces_of(()), machine=None, expected_runs=len(runs)
    ).comparisons


def test_only_where_there_is_something_to_compare(point, run) -> None:
    (found,) = compared(point, run, {"ddp": 4.0, "flat": 5.0})
    assert found.ranks == 2
    assert compared(point, run, {"ddp": 4.0}) == ()


def test_the_fastest_comes_first_and_the_others_have_a_ratio_to_it(point, run) -> None:
    (found,) = compared(point, run, {"ddp": 5.0, "flat": 4.0, "local-sgd": 8.0})
    ids = {name: point(2, name).point_id for name in ("ddp", "flat", "local-sgd")}
    assert found.points == (ids["flat"], ids["ddp"], ids["local-sgd"])
    assert [round(found.ratios[point_id].median, 6) for point_id in found.points] == [1.0, 0.8, 0.5]
    assert found.undecided == ()


def test_a_noise_that_both_share_does_not_hide_a_difference(point, run) -> None:
    """Repeats are paired: one minute that slows both by half says nothing about which is faster."""
    (found,) = compared(point, run, {"ddp": 4.0, "flat": 4.1}, noise=(1.0, 1.5, 1.0, 2.0, 1.2))
    assert found.undecided == ()


def test_an_interval_that_contains_one_tells_nothing(point, run) -> None:
    study = Study(name="by-hand", vary={"run.strategy": ("ddp", "flat")})
    points = [point(2), point(2, "flat")]
    runs = [run(points[0], n, s) for n, s in enumerate((4.0, 4.1, 3.9, 4.2, 4.0), 1)]
    runs += [run(points[1], n, s) for n, s in enumerate((4.1, 4.0, 4.2, 4.1, 4.1), 1)]
    found = study_results(study, "f", points, runs, traces=traces_of(()), machine=None, expected_runs=10)
    (comparison,) = found.comparisons
    assert comparison.undecided == (points[1].point_id,)


def test_few_repeats_tell_nothing(point, run) -> None:
    (found,) = compared(point, run, {"ddp": 4.0, "flat": 8.0}, noise=(1.0, 1.01, 1.02))
    assert found.undecided == (point(2, "flat").point_id,)


def test_points_that_share_cores_come_after_those_that_do_not(point, run) -> None:
    (found,) = compared(point, run, {"ddp": 4.0, "flat": 5.0}, ddp={"oversubscribed": True})
    assert found.points == (point(2, "flat").point_id, point(2).point_id)
    assert found.ratios[point(2).point_id].median > 1 and found.undecided == ()


def test_a_point_without_runs_is_last_and_has_no_ratio(point, run) -> None:
    study = Study(name="by-hand", vary={"run.strategy": ("ddp", "flat")})
    points = [point(2), point(2, "flat")]
    found = study_results(study, "f", points, [run(points[1])], traces=traces_of(()), machine=None, expected_runs=2)
    (comparison,) = found.comparisons
    assert comparison.points == (points[1].point_id, points[0].point_id)
    assert set(comparison.ratios) == {points[1].point_id} and comparison.undecided == ()
    nothing = study_results(study, "f", points, [], traces=traces_of(()), machine=None, expected_runs=2)
    assert nothing.comparisons[0].ratios == {}


def test_points_of_one_series_are_not_compared_with_each_other(point, run) -> None:
    """Two single ranks of a study that names no factor, as a folder of an older version may hold."""
    one, other = point(1), replace(point(1), threads=2)
    found = study_results(
        Study(name="by-hand"), "f", [one, other], [run(one)], traces=traces_of(()), machine=None, expected_runs=2
    )
    assert found.comparisons == ()
