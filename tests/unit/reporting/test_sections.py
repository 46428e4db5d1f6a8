"""The page by question: what stands where, what every figure means, and how its data is told to the page."""

from __future__ import annotations

import json
import re

import pytest

from paceline.reporting.figures.canvas import plain, two_lines
from paceline.reporting.figures.report_figures import figures, main_figure
from paceline.reporting.html import report_page, sections
from paceline.reporting.html.markup import fragment, slug
from paceline.reporting.html.sections import ACCURACY, QUESTIONS, SECTIONS, TIME, Section
from paceline.reporting.model import report_model
from paceline.reporting.wording.facts import Fact, meanings
from samples import published_samples, series_samples
from samples import report_samples as samples
from samples.series_samples import ALL
from samples.twelve_points import wide_model


def body_of(page: str) -> str:
    return page[page.index("<main>") : page.index("</main>")]


@pytest.mark.parametrize("name", ALL)
def test_questions_come_in_their_order_and_every_anchor_is_there_once(name: str) -> None:
    body = body_of(report_page.render(report_model(ALL[name]())))
    anchors = re.findall(r'<section id="([a-z]+)"', body)
    assert len(set(anchors)) == len(anchors)
    asked = [question.name for question in QUESTIONS if question.name in anchors]
    assert [anchor for anchor in anchors if anchor in asked] == asked
    assert {question.name for question in QUESTIONS if question.nothing} <= set(asked)
    assert re.findall(r'<a href="#([a-z]+)">', body[body.index("<nav") : body.index("</nav>")]) == asked


def test_a_question_without_an_answer_says_so() -> None:
    body = body_of(report_page.render(report_model(samples.nothing_finished())))
    assert TIME.nothing in body and ACCURACY.nothing in body
    assert TIME.nothing not in body_of(report_page.render(report_model(samples.typical())))


def test_a_section_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    added = Section("added", "Added", TIME, lambda model, drawn: f"<p>{model.name}</p>" if drawn else "")
    monkeypatch.setattr(sections, "SECTIONS", (*SECTIONS, added))
    body = body_of(report_page.render(report_model(samples.typical())))
    assert '<section id="added" class="part"><h3>Added</h3>\n<p>mnist-scaling</p></section>' in body
    assert body.index('id="time"') < body.index('id="added"') < body.index('id="cost"')
    assert 'id="added"' not in report_page.render(report_model(samples.nothing_finished()))


def test_the_answer_shows_its_figure() -> None:
    scaled = report_page.render(report_model(samples.two_points()))
    assert "2 ranks train <strong>1.88 times</strong> as fast" in scaled
    assert "<strong>" in report_page.render(report_model(samples.single_point()))
    page = report_page.render(published_samples.model_of(published_samples.usual("mnist-batch-size")))
    assert "with 64, <strong>-0.50 points [-0.50, -0.50]</strong>" in page
    page = report_page.render(published_samples.model_of(published_samples.usual("caltech256-gpus")))
    assert "<strong>4 ranks after 27.2 s [23.0, 29.5]</strong>" in page
    assert f"<h1>{samples.typical().study.question}</h1>" in report_page.render(report_model(samples.typical()))
    drawn = figures(report_model(series_samples.rivals()))
    assert main_figure(drawn) == "ranking" and main_figure({}) == ""


@pytest.mark.parametrize("name", ALL)
def test_every_figure_of_a_table_has_a_meaning(name: str) -> None:
    """But for what a study varies, whose columns are the names of settings."""
    results = ALL[name]()
    model = report_model(results)
    varied = {path.split(".", 1)[1].replace("_", " ") for path in results.study.vary}
    series = ", ".join(path.split(".", 1)[1].replace("_", " ") for path in results.study.vary) or "series"
    tables = (model.figures, model.extras, model.learning, model.accuracies, model.phases, model.ledger)
    tables += (model.effects, model.laws.table, *(part.table for part in model.side_by_side))
    for table in (table for table in tables if table.rows):
        unknown = {term for term in table.terms if not meanings((term,), model.definitions)}
        assert unknown <= varied | {series, "against", "repeats"}, table
    for figure in figures(model).values():
        assert meanings(figure.terms, model.definitions), figure.name


def test_a_studys_own_definition_comes_first_and_formulas_stay() -> None:
    (own,) = meanings(("speed-up", "speed-up"), (Fact("speed-up", "As it is here."),))
    assert (own.text, own.formula) == ("As it is here.", "samples/s ÷ samples/s of the baseline")
    (general,) = meanings(("epoch time (ms)", "epoch time"))
    assert general.term == "epoch time"
    assert meanings(("some factor",)) == ()


def test_the_fold_holds_the_meaning_and_the_data() -> None:
    fold = fragment("parts", "about", "Speed <of> it", ("efficiency",), figure="speed")
    assert '<summary aria-label="What it means, and its data: Speed &lt;of&gt; it">' in fold
    assert "= speed-up ÷ ideal" in fold and 'data-csv="speed" data-of="speed"' in fold and 'data-save="speed"' in fold
    table = fragment("parts", "about", "One row: per <point>", ())
    assert 'data-csv="one-row-per-point" data-of=""' in table and "data-save" not in table and "<dl>" not in table
    assert slug("../é<>") == "table" and len(slug("long " * 40)) <= 48


def test_plots_bring_their_numbers() -> None:
    model = report_model(samples.two_points())
    drawn = figures(model)
    speedup = drawn["speedup"].numbers
    assert speedup is not None and speedup.columns == ("series", "point", "ranks", "speed-up", "low", "high", "ideal")
    assert speedup.rows[1][1:] == ["2 ranks", 2, 1.88, 1.83, 1.915, 2.0]
    ledger = drawn["ledger"].numbers
    assert ledger is not None and len(ledger.rows) == 2
    assert sum(value for value in ledger.rows[0][2:] if isinstance(value, float)) == pytest.approx(
        ledger.rows[0][1], rel=1e-3
    )
    told = re.search(r'id="figures">(.*?)</script>', report_page.render(model), re.S)
    assert told is not None
    assert json.loads(told[1])["speedup"]["numbers"]["rows"][1][3] == 1.88


def test_names_are_plain_in_plots() -> None:
    assert plain("<a href='x'>&") == "&lt;a href='x'&gt;&amp;"
    assert two_lines("a<br>b<br>2 s") == "a&lt;br&gt;b<br>2 s" and two_lines("a<br>2 s", ", ") == "a, 2 s"
    drawn = figures(report_model(series_samples.hostile("<a href='x'>y</a>")))
    # `meta` is never drawn: it says which key a trace belongs to.
    traces = [{k: v for k, v in trace.items() if k != "meta"} for figure in drawn.values() for trace in figure.data]
    assert "<a" not in json.dumps(traces) and "&lt;a" in json.dumps(traces)


def test_many_points_keep_room_for_their_labels() -> None:
    drawn = figures(wide_model())
    shown = [trace["text"] for trace in drawn["speedup"].data if trace.get("text")]
    assert any(sum(map(bool, texts)) <= 7 < len(texts) for texts in shown), shown
    assert drawn["ledger"].layout["height"] <= 340 and "<br>" not in drawn["ledger"].data[0]["y"][0]
