"""A study that asks for accuracy: its report opens with it, in words and as a plot."""

from __future__ import annotations

from dataclasses import replace

import pytest

import published_samples
import report_samples
import series_samples
from paceline.records.results import PointResult, StudyResults
from paceline.report.figures import figures
from paceline.report.first_screen import main_figure
from paceline.report.html import render
from paceline.report.model import report_model
from paceline.report.steps import next_step
from paceline.report.words import remarks, verdict


def asking(results: StudyResults, what: str = "accuracy") -> StudyResults:
    return replace(results, study=replace(results.study, asks=what))


def own_words(results: StudyResults) -> StudyResults:
    """Without the published study, whose questions have answers of their own."""
    return replace(results, published=None)


def untested(point: PointResult) -> PointResult:
    return replace(point, test_accuracy=None)


def test_the_answer_is_about_accuracy_and_says_what_the_repeats_show() -> None:
    results = own_words(published_samples.usual("mnist-batch-size"))
    assert results.study.asks == "accuracy"
    said = verdict(results)
    assert said.startswith("Test accuracy is lowest with batch global 2048, ")
    assert "and highest with batch global 64, " in said and "Of 5 test accuracies" in said
    assert not any("Test accuracy is" in sentence for sentence in remarks(results)), "said twice"
    assert "samples/s" in verdict(asking(results, "time")) or "times" in verdict(asking(results, "time"))


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
    results = own_words(published_samples.usual("mnist-batch-size"))
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


def test_points_without_a_test_are_left_out_and_one_alone_is_no_plot() -> None:
    results = report_samples.typical()
    first, *others = results.points
    some = replace(results, points=(untested(first), *others))
    assert len(figures(report_model(some))["test-accuracy"].data[0]["x"]) == len(others)
    one = replace(results, points=(first, *map(untested, others)))
    assert "test-accuracy" not in figures(report_model(one))


def test_next_are_more_repeats_and_not_a_speed_up() -> None:
    results = own_words(published_samples.usual("mnist-batch-size"))
    whole = replace(results, study=replace(results.study, size="full"))
    assert "--repeats 10" in next_step(whole).command
    assert "--repeats 10" not in next_step(asking(whole, "time")).command
