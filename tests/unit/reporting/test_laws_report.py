"""Scaling laws as a reader meets them: sentences, a table, curves in the plot, JSON, and the reasons of refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from paceline.records.laws import Fitted
from paceline.records.results import StudyResults
from paceline.reporting.export.json_view import json_object
from paceline.reporting.figures.canvas import Figure
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from paceline.reporting.tables.law_tables import shown_laws
from paceline.reporting.text import report_text
from samples import law_samples as samples
from samples.report_samples import HOSTILE


def sentences(results: StudyResults) -> str:
    return " ".join(sentence for series in shown_laws(results).sentences for sentence in series.sentences)


def with_law(results: StudyResults, **changed: object) -> StudyResults:
    """The same with figures of its first law changed."""
    (own,) = results.laws
    return replace(results, laws=(replace(own, laws=(replace(own.laws[0], **changed), *own.laws[1:])),))


def speedup(results: StudyResults) -> Figure:
    return figures(report_model(results))["speedup"]


def test_amdahls_law_in_words() -> None:
    results = with_law(
        samples.study(samples.amdahl(), ranks=(1, 2, 4)),
        parameters={"serial": Fitted(value=0.031, low=0.020, high=0.044)},
        limit=Fitted(value=32.26, low=22.7, high=50.0),
    )
    assert sentences(results).startswith(
        "3.1 % [2.0, 4.4] of the work does not get faster with ranks; "
        "by Amdahl's law no number of ranks is faster than 32 × one rank. The Universal Scalability Law is not fitted"
    )


def test_no_limit_is_claimed_where_the_interval_reaches_none() -> None:
    maybe = with_law(
        samples.study(samples.amdahl(), ranks=(1, 2, 4)),
        parameters={"serial": Fitted(value=0.01, low=0.0, high=0.03)},
        limit=Fitted(value=100.0, low=33.0, high=float("inf")),
    )
    assert "there may be no such limit" in sentences(maybe)
    assert ("100 ×", "[33.0, ∞]") in [(cell.figure, cell.beside) for cell in shown_laws(maybe).table.rows[0]]
    none = sentences(samples.study(lambda n: n**1.05, ranks=(1, 2, 4)))
    assert "No part of the work is seen" in none or "nothing limits" in none


def test_the_usl_in_words() -> None:
    told = sentences(samples.study(samples.usl()))
    assert "ranks are fastest" in told and "That is extrapolated: at most 16 were measured." in told
    assert "The points speak for coherency (p < 0.001)" in told
    far = sentences(samples.study(samples.usl(0.03, 0.0002), noise=0.0005))
    assert "take it for a hint" in far
    flat = sentences(samples.study(samples.amdahl()))
    assert "no peak within reach" in flat and "do not tell the two laws apart" in flat


def test_weak_scaling_in_words() -> None:
    told = sentences(samples.study(samples.gustafson(), weak=True))
    assert "by Gustafson's law every rank more adds 0.96" in told and "Amdahl" not in told


def test_points_further_off_than_noise_are_marked_and_said() -> None:
    shown = shown_laws(samples.study(lambda n: n**0.8 if n < 8 else n**0.5, ranks=samples.RANKS))
    assert any(row[0].figure.endswith(" *") for row in shown.table.rows)
    assert shown.table.footnotes[-1] == "* points are further from the law than noise explains."
    assert "further from" in shown.sentences[0].sentences[-1]


def test_refusals_are_sentences_in_the_page_and_in_the_terminal_and_in_json() -> None:
    results = samples.study(samples.usl(), ranks=(1, 2))
    why = "they need 3 and 4 numbers of ranks, and there are 2 (1, 2)."
    model = report_model(results)
    assert why in report_page.render(model) and why in " ".join(report_text.render(model).split())
    assert json_object(results, None)["laws"][0]["refusals"]["amdahl"].endswith(why)
    assert not model.laws.table.rows and not model.laws.definitions and not model.speedup.laws


def test_the_same_refusal_is_not_said_once_for_every_series() -> None:
    results = samples.study({"ddp": samples.usl(), "flat": samples.amdahl()}, ranks=(1, 2))
    (told,) = shown_laws(results).sentences
    assert told.series == "" and len(told.sentences) == 1
    some = samples.study(
        {name: samples.amdahl() for name in ("a", "b", "c")},
        ranks=(1, 2, 4),
        told=lambda point: {"oversubscribed": point.strategy != "a" and point.ranks > 2},
    )
    *_, usl, both = shown_laws(some).sentences
    assert usl.series == "a" and "it needs 4" in usl.sentences[0]
    assert both.series == "b and c" and "they need 3 and 4" in both.sentences[0]


def test_a_study_of_one_size_says_nothing_of_laws() -> None:
    model = report_model(samples.study(samples.usl(), ranks=(2,)))
    assert not model.laws.sentences and 'id="laws"' not in report_page.render(model)


def test_table_and_definitions_of_what_was_fitted() -> None:
    model = report_model(samples.study({"ddp": samples.usl(), "flat": samples.amdahl(0.1)}))
    assert [row[0].figure for row in model.laws.table.rows] == ["ddp", "ddp", "flat", "flat"]
    assert set(model.laws.table.columns) - {"series"} <= {fact.label for fact in model.definitions}
    assert 'id="laws"' in report_page.render(model) and "Scaling laws" in report_text.render(model)


def test_json_holds_parameters_curve_and_comparison_and_no_infinity() -> None:
    view = json.loads(json.dumps(json_object(samples.study(samples.amdahl(0.0)), None), allow_nan=False))
    (own,) = view["laws"]
    assert own["ranks"] == [1, 2, 4, 8, 16] and own["preferred"] == "amdahl" and own["coherency_p"] > 0.05
    law = own["laws"][0]
    assert set(law["parameters"]["serial"]) == {"value", "low", "high"} and law["limit"]["high"] is None
    assert len(law["curve"]["ranks"]) == len(law["curve"]["low"]) and law["curve"]["measured_to"] == 16


def test_the_preferred_law_is_drawn_and_the_other_one_waits_for_its_key() -> None:
    figure = speedup(samples.study(samples.usl()))
    keys = {key.label: key for key in figure.keys}
    assert not keys["Universal Scalability Law, fitted"].off and keys["Amdahl's law, fitted"].off
    dashes = {key.label: key.dash for key in figure.keys}
    assert len({dashes[label] for label in dashes if label != "measured"}) == 3, "colour would stand alone"


def test_every_part_of_a_law_is_hidden_with_its_key() -> None:
    figure = speedup(samples.study(samples.usl()))
    own = [trace for trace in figure.data if trace.get("meta") == "Universal Scalability Law, fitted"]
    band, within, beyond = own
    assert band["fill"] == "toself" and within["x"][-1] == beyond["x"][0] == 16 and beyond["x"][-1] == 32
    assert within["line"]["width"] > beyond["line"]["width"] and "extrapolated" in beyond["hovertemplate"]
    assert "extrapolated" in figure.layout["annotations"][0]["text"]
    assert figure.layout["xaxis"]["tickvals"] == [1, 2, 4, 8, 16, 32]


def test_data_of_the_plot_hold_the_curves() -> None:
    numbers = speedup(samples.study(samples.usl())).numbers
    assert numbers is not None
    kinds = {str(row[1]) for row in numbers.rows if str(row[0]).endswith("fitted")}
    assert kinds == {"fitted", "extrapolated"} and all(len(row) == len(numbers.columns) for row in numbers.rows)


def test_with_many_series_no_law_is_drawn_before_it_is_asked_for() -> None:
    paces = {name: samples.amdahl(0.05 * (1 + index)) for index, name in enumerate(("a", "b", "c"))}
    figure = speedup(samples.study(paces))
    assert [key.off for key in figure.keys if "law" in key.label] == [True] * 3
    assert figure.layout["xaxis"]["tickvals"] == [1, 2, 4, 8, 16] and "annotations" not in figure.layout


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_series_stay_text(name: str) -> None:
    results = samples.study({"ddp": samples.usl(), "flat": samples.amdahl(0.1)})
    points = tuple(replace(point, series=f"{name} {point.series}") for point in results.points)
    laws = tuple(replace(own, series=f"{name} {own.series}") for own in results.laws)
    page = report_page.render(report_model(replace(results, points=points, laws=laws)))
    assert "<script>document" not in page and "<img src=x" not in page and "<svg/onload" not in page
