"""What is said about phases: a table where there are two, a sentence about the gain, and one about cached features."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.records.results import Gain, Interval, PhaseResult, Spread, StudyResults
from paceline.records.run import CachedFeatures
from paceline.reporting.export.json_view import json_object
from paceline.reporting.html.report_page import render as html
from paceline.reporting.model import report_model
from paceline.reporting.tables.learning_tables import phase_table
from paceline.reporting.text.report_text import render
from paceline.reporting.wording.learning_words import features_sentences, gain_sentences
from samples.report_samples import typical

GAIN = Gain(mean=0.0123, low=0.0101, high=0.0145, n=5)


def with_phases(gain: Gain = GAIN) -> StudyResults:
    results = typical(ranks=(1, 2))
    times = Interval(median=30.0, low=29.0, high=31.0, n=5, coverage=0.9375)
    spread = Spread(mean=0.91, std=0.01, n=5)
    phases = (
        PhaseResult(name="train", epoch_s=None, test_accuracy=spread, test_loss=spread, gain=None),
        PhaseResult(name="finetune", epoch_s=times, test_accuracy=spread, test_loss=spread, gain=gain),
    )
    return replace(results, points=tuple(replace(point, phases=phases) for point in results.points))


def test_a_study_of_one_phase_says_nothing_about_phases():
    results = typical(ranks=(1, 2))
    assert phase_table(results).rows == ()
    assert gain_sentences(results) == features_sentences(results) == []


def test_every_phase_has_its_row():
    results = with_phases()
    table = phase_table(results)
    assert [(row[0].figure, row[1].figure) for row in table.rows] == [
        ("1", "base frozen"),
        ("1", "fine-tuned"),
        ("2", "base frozen"),
        ("2", "fine-tuned"),
    ]
    assert (table.rows[1][-1].figure, table.rows[1][-1].beside) == ("+1.23", "[+1.01, +1.45]")
    assert table.rows[0][-1].figure == "–"
    model = report_model(results)
    for text in (render(model, width=120), html(model)):
        assert "fine-tuned" in text and "+1.23" in text and "leaves out zero" in text
    shown = json_object(results, None)["points"][0]["phases"][1]
    assert shown["gain"] == {"mean": 0.0123, "low": 0.0101, "high": 0.0145, "n": 5}


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (GAIN, "+1.23 points [+1.01, +1.45]: better than before, since the interval leaves out zero."),
        (replace(GAIN, low=-0.001), "no clear difference."),
        (Gain(mean=-0.02, low=-0.03, high=-0.01, n=5), "−2.00 points [−3.00, −1.00]: worse than before"),
        (Gain(mean=0.02, low=None, high=None, n=4), "by +2.00 points: 4 repeats are too few for an interval."),
        (Gain(mean=0.02, low=None, high=None, n=1), "by +2.00 points: 1 repeat is too few for an interval."),
    ],
)
def test_a_gain_is_called_one_only_where_its_interval_leaves_out_zero(gain, said):
    (sentence,) = gain_sentences(with_phases(gain))
    assert said in sentence


def test_the_gain_that_is_spoken_of_has_the_most_repeats_and_the_fewest_ranks():
    one, two = with_phases().points
    assert "of 1 rank by" in gain_sentences(with_phases())[0]
    first = replace(one, phases=(one.phases[0], replace(one.phases[1], gain=replace(GAIN, n=4, low=None, high=None))))
    assert "of 2 ranks by" in gain_sentences(replace(with_phases(), points=(first, two)))[0]


def test_it_is_said_that_features_were_cached():
    results = typical(ranks=(1, 2))
    made = CachedFeatures(samples=12_000, size=1280, ready_s=83.0, found=False)
    points = (results.points[0], replace(results.points[1], features=made))
    (sentence,) = features_sentences(replace(results, points=points))
    assert "(1 point): 1,280 numbers of each of 12,000 images, by 2 ranks in" in sentence
    assert sentence in report_model(replace(results, points=points)).remarks
    found = tuple(replace(point, features=replace(made, found=True)) for point in points)
    assert "found in the cache" in features_sentences(replace(results, points=found))[0]
