"""The pages on scaling laws and on notebooks name what is there, and show what is printed."""

from __future__ import annotations

import ast
import dataclasses

import pytest
from doc_pages import ROOT, blocks, names, section, table

from paceline.app.results_view import Results
from paceline.errors import RequestError
from paceline.records.laws import Fitted, Law, LawCurve, SeriesLaws
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html.notebook import shown_table
from paceline.reporting.model import report_model
from paceline.reporting.text.report_text import render
from samples import law_samples, report_samples, series_samples

PLOTTED = (report_samples.typical, series_samples.strategies, series_samples.ALL["one-at-a-time"])


def test_every_field_of_the_laws_is_documented_and_no_other() -> None:
    told = set(names(section("scaling-laws.md", "For programs"))) - {"--json"}
    fields = {field.name for record in (Fitted, Law, LawCurve, SeriesLaws) for field in dataclasses.fields(record)}
    assert told == fields | {"laws", "amdahl", "gustafson", "usl"}


def test_the_example_is_what_is_printed() -> None:
    shown = render(report_model(law_samples.study(law_samples.usl())), width=101)
    page = (ROOT / "docs" / "scaling-laws.md").read_text()
    example = page[page.index("Scaling laws, fitted") : page.index("* points are further")]
    assert example in shown


def test_the_refusal_is_what_is_said() -> None:
    results = law_samples.study(law_samples.usl(), ranks=(1, 2))
    page = (ROOT / "docs" / "scaling-laws.md").read_text()
    assert results.laws[0].refusals["usl"] in page


def test_plots_and_tables_of_notebooks_are_those_that_there_are() -> None:
    rows = {names(row[0])[0]: names(row[1]) for row in table((ROOT / "docs" / "notebooks.md").read_text()) if row[1:]}
    models = [report_model(made()) for made in PLOTTED]
    drawn = {name for model in models for name in figures(model)}
    assert {name for name in drawn if not name.startswith(("ranks-", "all-"))} == set(rows["results.plot()"])
    with pytest.raises(RequestError) as refused:
        shown_table(report_model(law_samples.study(law_samples.usl())), "nothing")
    there = refused.value.right.removeprefix("There are: ").rstrip(".").split(", ")
    assert set(there) <= set(rows["results.table()"]) == {*there, "ledger", "phases"}


def test_the_code_of_notebooks_uses_what_is_there() -> None:
    public = {name for name in dir(Results) if not name.startswith("_")}
    code = [block.text for block in blocks("python") if block.page.name == "notebooks.md"]
    used = [node for text in code for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    assert used and {node.attr for node in used if ast.unparse(node.value) == "results"} <= public
