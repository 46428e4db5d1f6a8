"""What a report says about learning: tables, sentences, bands, JSON and columns, from results made up as real ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from paceline.records.learning import AccuracyCheck, Learning, LearningSummary, NoiseScale, Stable
from paceline.records.results import StudyResults
from paceline.reporting.export.json_view import json_object
from paceline.reporting.export.rows import rows
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from paceline.reporting.tables.point_tables import Cell, Table
from paceline.reporting.text.report_text import render
from paceline.reporting.wording.learning_words import (
    EXCLUDED_RUNS_NOTE,
    accuracy_checks_sentence,
    check_is_of_fewer,
    check_outcome,
    target_sentences,
)
from samples import report_samples as samples
from samples.series_samples import batches, strategies

CHECK = AccuracyCheck(
    point_id="own",
    against="other",
    difference=-0.0012,
    low=-0.0030,
    high=0.0006,
    n=5,
    margin=0.005,
    p_different=0.4,
    p_equal=0.01,
    different=False,
    equal=True,
)


def cells(table: Table, index: int = 0) -> dict[str, Cell]:
    return dict(zip(table.columns, table.rows[index], strict=True))


def checked(**changed) -> StudyResults:
    results = samples.two_points()
    one, two = results.points
    check = replace(CHECK, point_id=two.point_id, against=one.point_id, **changed)
    return replace(results, lesson=LearningSummary(checks=(check,)))


def test_effective_stands_beside_the_speedup() -> None:
    figures_table = report_model(batches()).figures
    at = figures_table.columns.index("speed-up")
    assert figures_table.columns[at + 1] == "effective speed-up"
    assert cells(figures_table, 2)["effective speed-up"].text == "1.88 [1.83, 1.91]"
    assert "effective speed-up" not in report_model(samples.typical()).figures.columns, "no target, no column"


def test_what_the_target_takes_is_in_table_text_and_page() -> None:
    model = report_model(strategies())
    row = cells(model.learning)
    assert row["epochs to 95.7 %"].text == "3.86 [3.81, 3.89]" and row["steps"].figure == "362.5"
    assert row["epochs to stable"].text == "–"
    assert "Epochs to stable: 4 epochs: a plateau can be told from 6 on." in model.learning.footnotes
    assert "Figures to the target are interpolated between two epochs." in model.learning.footnotes
    text, page = render(model, width=100), report_page.render(model)
    assert "is reached first with 4 ranks on 1 host, ddp, in 11.0 s" in " ".join(text.split())
    assert '<section id="learning" class="part"><h3>Learning</h3>' in page and "epochs to 95.7 %" in page
    assert {"effective speed-up", "statistical efficiency", "different, equal"} <= {f.label for f in model.definitions}


def test_stable_epochs_show_their_interval_and_an_open_end() -> None:
    results = samples.two_points()
    closed = Stable(epoch=6, low=5, high=8, epochs=12, plateau=0.9, tolerance=0.01, runs=5)
    open_ = replace(closed, high=None)
    noise = NoiseScale(samples=310.0, low=250.0, high=400.0, coverage=0.95, steps=40, efficiency=0.7)
    points = (
        replace(results.points[0], learning=Learning(stable=closed)),
        replace(results.points[1], learning=Learning(stable=open_, noise=noise)),
    )
    table = report_model(replace(results, points=points)).learning
    assert cells(table, 0)["epochs to stable"].text == "6 [5, 8]"
    assert cells(table, 1)["epochs to stable"].text == "6 [5, –]"
    assert any(note.startswith("[n, –] is open") for note in table.footnotes)
    assert cells(table, 0)["noise scale"].text == "–"
    assert cells(table, 1)["noise scale"].text == "310 [250, 400]"
    assert cells(table, 1)["sample efficiency"].text == "70 %"


@pytest.mark.parametrize(
    ("changed", "word", "sentence"),
    [
        ({}, "equal", "equal within 0.5 points: −0.12 points, interval −0.30 to +0.06."),
        ({"different": True, "equal": False}, "different", "Over the repeats they differ: −0.12 points"),
        ({"different": True}, "different, within the margin", "differ by less than 0.5 points"),
        ({"equal": False}, "neither shown", "neither a difference nor that they are equal within 0.5 points"),
        ({"n": 3, "low": None, "high": None, "p_different": None, "p_equal": None}, "too few", "3 repeats are too few"),
    ],
)
def test_accuracies_are_called_what_the_tests_say(changed, word: str, sentence: str) -> None:
    results = checked(**changed)
    assert check_outcome(results.lesson.checks[0]) == word
    assert sentence in accuracy_checks_sentence(results)
    row = cells(report_model(results).accuracies)
    assert row["called"] == Cell(word) and row["difference (points)"].figure == "−0.12"
    assert sentence in " ".join(render(report_model(results), width=200).split())
    (check,) = json_object(results, None)["learning"]["checks"]
    assert check["called"] == word and check["margin"] == 0.005


def test_what_was_compared_without_a_dead_run_says_so_and_is_called_equal_to_none() -> None:
    results = checked(p_equal=None, equal=False)
    (check,) = results.lesson.checks
    assert check_outcome(check) == "neither shown" and check_is_of_fewer(results, check)
    table = report_model(results).accuracies
    assert EXCLUDED_RUNS_NOTE in table.footnotes and cells(table)["p equal"].text == "–"
    assert "called equal to none" in EXCLUDED_RUNS_NOTE
    assert not check_is_of_fewer(checked(), checked().lesson.checks[0])


def test_several_accuracies_are_counted() -> None:
    sentence = accuracy_checks_sentence(strategies())
    assert sentence == (
        "Of 12 test accuracies that the repeats compare with a reference, 12 are equal to it within 0.5 points."
    )
    results = strategies()
    checks = results.lesson.checks
    lower = replace(checks[0], different=True, equal=False, difference=-0.05)
    mixed = replace(
        results, lesson=replace(results.lesson, checks=(lower, replace(checks[1], equal=False), *checks[2:]))
    )
    assert "1 is below it, 10 are equal" in accuracy_checks_sentence(mixed)
    assert "1 is neither shown to differ nor to be equal" in accuracy_checks_sentence(mixed)


def test_one_point_has_nobody_to_be_first_against() -> None:
    results = batches()
    assert len(target_sentences(results)) == 2
    assert target_sentences(replace(results, points=results.points[:1])) == []


def test_bands_are_drawn_around_means_of_five_runs() -> None:
    figure = figures(report_model(batches()))["accuracy"]
    band = next(trace for trace in figure.data if trace.get("fill") == "toself")
    assert band["x"] == [1, 2, 3, 4, 4, 3, 2, 1] and band["y"][0] >= band["y"][-1]
    assert "Bands are 95 % intervals of the means." in figure.caption
    plain = figures(report_model(samples.two_points()))["accuracy"]
    assert "Bands" not in plain.caption and all("fill" not in trace for trace in plain.data)


def test_every_table_of_results_has_the_same_figures() -> None:
    results = batches()
    view = json.loads(json.dumps(json_object(results, None), allow_nan=False))
    row, point = rows(results)[2], view["points"][2]["learning"]
    assert row["effective_speedup_median"] == pytest.approx(point["effective_speedup"]["median"])
    assert row["steps_to_target_median"] == pytest.approx(point["target"]["steps"]["median"])
    assert row["target_accuracy"] == pytest.approx(view["learning"]["target"]) and row["stable_epoch"] is None
    assert point["stable"]["why"].startswith("4 epochs") and view["learning"]["rule"].startswith("the highest")
    assert rows(samples.typical())[0]["effective_speedup_median"] is None
