"""A study that asks for accuracy: its report opens with it, in words and as a plot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.records.finding import Note
from paceline.records.learning import Fault
from paceline.records.results import PointResult, Spread, StudyResults
from paceline.records.study import Point
from paceline.reporting.figures.report_figures import figures, main_figure
from paceline.reporting.html.report_page import render
from paceline.reporting.model import report_model
from paceline.reporting.wording.learning_words import EXCLUDED_RUNS_NOTE
from paceline.reporting.wording.next_commands import next_step
from paceline.reporting.wording.verdict_words import remarks, verdict
from samples import published_samples, report_samples, series_samples


def asking(results: StudyResults, what: str = "accuracy") -> StudyResults:
    return replace(results, study=replace(results.study, asks=what))


def untested(point: PointResult) -> PointResult:
    return replace(point, test_accuracy=None)


def test_the_answer_is_about_accuracy_and_says_what_the_repeats_show() -> None:
    results = published_samples.usual("mnist-batch-size")
    assert results.study.asks == "accuracy"
    said = verdict(results)
    assert said.startswith("Test accuracy is lowest with batch global 2048, ")
    assert "and highest with batch global 64, " in said and "Of 5 test accuracies" in said
    assert not any("Test accuracy is" in sentence for sentence in remarks(results)), "said twice"
    assert "accurac" not in verdict(asking(results, "time"))


def test_ranks_are_named_where_they_differ() -> None:
    said = verdict(asking(report_samples.typical()))
    assert said.startswith("Test accuracy is lowest with ") and " ranks, " in said and said.endswith(".")


def test_one_point_says_its_accuracy_and_one_without_a_test_its_throughput() -> None:
    one = asking(report_samples.single_point())
    assert verdict(one).startswith("Test accuracy is ") and "lowest" not in verdict(one)
    assert "samples/s" in verdict(replace(one, points=tuple(map(untested, one.points))))


def test_one_at_a_time_speaks_of_accuracy_alone() -> None:
    results = series_samples.one_at_a_time()
    assert "training time" in verdict(results)
    assert "training time" not in verdict(asking(results))


def test_its_plot_is_the_main_one_and_no_other_is_lost() -> None:
    plain = report_samples.typical()
    for what, first in (("time", "speedup"), ("accuracy", "test-accuracy")):
        model = report_model(asking(plain, what))
        drawn = figures(model)
        assert main_figure(drawn) == first
        page = render(model)
        for name in drawn:
            assert page.count(f'data-figure="{name}"') == 1, (what, name)


def test_the_plot_has_every_point_with_its_deviation_and_hollow_what_is_not_shown_to_differ() -> None:
    results = published_samples.usual("mnist-batch-size")
    plot = figures(report_model(results))["test-accuracy"]
    (trace,) = plot.data
    points = results.points
    assert trace["x"] == [pytest.approx(100 * p.test_accuracy.mean, rel=1e-4) for p in points if p.test_accuracy]
    assert trace["error_x"]["array"] == [
        pytest.approx(100 * p.test_accuracy.std, rel=1e-4) for p in points if p.test_accuracy
    ]
    called = {check.point_id: check.different for check in results.lesson.checks}
    filled = [colour == "var(--blue)" for colour in trace["marker"]["color"]]
    assert filled == [called.get(p.point_id, True) for p in points]
    assert plot.layout["shapes"][0]["x0"] == pytest.approx(trace["x"][0], rel=1e-4), "the smallest batch"
    assert plot.numbers is not None and [row[0] for row in plot.numbers.rows] == [p.series for p in points]


def test_bars_end_where_accuracies_do() -> None:
    results = report_samples.typical()
    wide = replace(results.points[0], test_accuracy=Spread(mean=0.79, std=0.38, n=5))
    (trace,) = figures(report_model(replace(results, points=(wide, *results.points[1:]))))["test-accuracy"].data
    assert (trace["error_x"]["array"][0], trace["error_x"]["arrayminus"][0]) == (21.0, 38.0)


def test_points_without_a_test_are_left_out_and_one_alone_is_no_plot() -> None:
    results = report_samples.typical()
    first, *others = results.points
    some = replace(results, points=(untested(first), *others))
    assert len(figures(report_model(some))["test-accuracy"].data[0]["x"]) == len(others)
    one = replace(results, points=(first, *map(untested, others)))
    assert "test-accuracy" not in figures(report_model(one))


def test_a_mean_of_nothing_and_equal_means_are_figures_too() -> None:
    results = asking(report_samples.typical())
    none = replace(
        results, points=tuple(replace(p, test_accuracy=Spread(mean=0.0, std=0.0, n=5)) for p in results.points)
    )
    assert verdict(none).startswith("Test accuracy is the same at all 3 points, 0.00 ± 0.00 %")
    (trace,) = figures(report_model(none))["test-accuracy"].data
    assert trace["x"] == [0.0, 0.0, 0.0]
    hollow = [colour == "var(--surface)" for colour in trace["marker"]["color"]]
    assert hollow.count(False) in (1, 3), "the reference alone, or all where there is none"


def test_points_that_share_cores_are_in_the_answer_and_not_said_to_be_left_out() -> None:
    results = report_samples.oversubscribed()
    assert any("leaves them out" in sentence for sentence in remarks(results))
    assert not any("leaves them out" in sentence for sentence in remarks(asking(results)))


def test_a_published_question_is_answered_first_and_the_tests_are_said_beside_it() -> None:
    model = published_samples.model_of(published_samples.usual("mnist-batch-size"))
    assert not model.verdict.startswith("Test accuracy is lowest")
    assert any(sentence.startswith("Of 5 test accuracies") for sentence in model.remarks)


def test_of_more_points_than_rows_there_is_no_plot() -> None:
    results = asking(report_samples.typical())
    many = replace(results, points=tuple(replace(results.points[0], point_id=f"p{n}") for n in range(25)))
    assert "test-accuracy" not in figures(report_model(many))


def test_a_dead_run_is_said_to_be_left_out_wherever_accuracies_are_compared() -> None:
    def accuracy(point: Point, run: int) -> float:
        return 0.1 if run == 1 and point.batch_global == 64 else 0.98 + 0.0001 * run - 1e-5 * point.batch_global

    results = published_samples.results_of("mnist-batch-size", accuracy=accuracy, repeats=6)
    assert not figures(report_model(results))["test-accuracy"].caption.endswith(EXCLUDED_RUNS_NOTE)
    fault = Fault(name="dead", run=1, epoch=1, why=Note(code="at-chance"))
    first, *others = results.points
    assert first.learning is not None
    faulty = replace(first, learning=replace(first.learning, faults=(fault,)))
    checks = tuple(replace(check, n=5) for check in results.lesson.checks)
    told = replace(results, points=(faulty, *others), lesson=replace(results.lesson, checks=checks))
    model = report_model(told)
    assert figures(model)["test-accuracy"].caption.endswith(EXCLUDED_RUNS_NOTE)
    assert model.verdict.endswith(EXCLUDED_RUNS_NOTE) and EXCLUDED_RUNS_NOTE in model.accuracies.footnotes


def test_next_are_more_repeats_and_not_a_speed_up() -> None:
    results = published_samples.usual("mnist-batch-size")
    whole = replace(results, study=replace(results.study, size="full"))
    assert "--repeats 10" in next_step(whole).command
    assert "--repeats 10" not in next_step(asking(whole, "time")).command
