"""What notebooks show: small, whole without script or style sheet, and safe whatever names a study has."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paceline.errors import RequestError
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html.notebook import results_html, shown_plot, shown_table
from paceline.reporting.html.static_plot import figure_drawing, figure_svg
from paceline.reporting.model import report_model
from samples import law_samples, picture_samples, published_samples, series_samples
from samples import report_samples as samples

_SVG = "{http://www.w3.org/2000/svg}"


class _Tags(HTMLParser):
    """Every element of a page and every attribute that could act or fetch something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.acting: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.acting += [name for name, _ in attrs if name.startswith("on") or name in ("href", "src", "srcdoc")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", series_samples.ALL)
def test_every_plot_of_every_study_is_a_whole_drawing(name: str) -> None:
    for figure in figures(report_model(series_samples.ALL[name]())).values():
        drawn = figure_svg(figure)
        root = ElementTree.fromstring(drawn)
        assert root.tag == f"{_SVG}svg" and "var(" not in drawn and "nan" not in drawn
        kinds = {element.tag.removeprefix(_SVG) for element in root.iter()}
        assert kinds & {"polyline", "rect", "path"} and "script" not in kinds
        assert len(drawn) < 200_000


def test_lines_are_where_their_values_are() -> None:
    figure = figures(report_model(samples.typical(ranks=(1, 2, 4))))["speedup"]
    (axes,) = figure_drawing(figure).axes
    ideal, measured = (line.get_xydata() for line in axes.lines if len(line.get_xydata()) == 3)
    assert [x for x, _ in measured] == [1, 2, 4] and axes.get_xscale() == "linear"
    assert measured[0][1] == ideal[0][1] and measured[1][1] < ideal[1][1]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "4"]


def test_bars_fill_the_axis_and_their_patterns_are_there() -> None:
    figure = figures(report_model(samples.typical()))["ledger"]
    (axes,) = figure_drawing(figure).axes
    rows: dict[float, float] = {}
    for bars in axes.patches:
        for (left, low), (right, _), *_ in () if bars.get_hatch() else bars.get_path().vertices.reshape(-1, 5, 2):
            rows[low] = rows.get(low, 0.0) + right - left
    assert len(rows) == 3 and max(rows.values()) == pytest.approx(100, abs=0.1) == min(rows.values())
    root = ElementTree.fromstring(figure_svg(figure))
    known = {pattern.attrib["id"] for pattern in root.iter(f"{_SVG}pattern")}
    used = set(re.findall(r"fill: url\(#(\w+)\)", figure_svg(figure)))
    assert len(used) > 5 and used <= known


def test_a_law_that_is_not_shown_is_not_drawn() -> None:
    figure = figures(report_model(law_samples.study(law_samples.usl())))["speedup"]
    drawn = figure_svg(figure)
    assert "Universal Scalability Law, fitted" in drawn and "Amdahl" not in drawn and "extrapolated" in drawn


def test_results_are_small_and_need_nothing_else() -> None:
    model = report_model(law_samples.study(law_samples.usl()))
    shown = results_html(model, report=Path("runs/x/report.html"), notes=("A note.",))
    found = _Tags(shown)
    assert len(shown) < 40_000
    assert not found.tags & {"script", "style", "link", "iframe", "img", "foreignobject"} and not found.acting
    for text in (model.title, "runs/x/report.html", "A note.", "speed-up"):
        assert text in found.text
    assert re.search(r"16 ranks train .* times as fast as 1", found.text)


@pytest.mark.parametrize("name", ["nothing-finished", "unmeasured", "single-point", "diverged", "failed"])
def test_results_without_figures_are_shown_all_the_same(name: str) -> None:
    model = report_model(series_samples.ALL[name]())
    assert model.title in _Tags(results_html(model)).text


@pytest.mark.parametrize("text", samples.HOSTILE)
@pytest.mark.parametrize("study", [samples.hostile, series_samples.hostile])
def test_no_name_becomes_an_element(study, text: str) -> None:
    model = report_model(study(text))
    tame = report_model(study("tame"))
    names = list(figures(model))
    for shown, expected in [
        (results_html(model, notes=(text,)), results_html(tame, notes=("tame",))),
        (shown_table(model, "figures")._repr_html_(), shown_table(tame, "figures")._repr_html_()),
        *((shown_plot(model, name)._repr_html_(), shown_plot(tame, name)._repr_html_()) for name in names),
    ]:
        assert _Tags(shown).tags == _Tags(expected).tags and not _Tags(shown).acting
    for name in names:
        ElementTree.fromstring(shown_plot(model, name).svg)


def test_a_plot_is_saved_as_it_is_shown(tmp_path: Path) -> None:
    plot = shown_plot(report_model(samples.typical()))
    assert plot.save(tmp_path / "plot.svg").read_text(encoding="utf-8") == plot.svg
    assert "speedup" in repr(plot)


def test_what_is_not_there_is_refused_with_what_is() -> None:
    model = report_model(samples.typical())
    with pytest.raises(RequestError, match="no plot 'speed'") as plot:
        shown_plot(model, "speed")
    assert "speedup, ledger" in plot.value.right
    with pytest.raises(RequestError, match="no table 'laws'") as table:
        shown_table(model, "laws")
    assert table.value.right.startswith("There are: figures, ledger")
    with pytest.raises(RequestError, match="nothing to plot"):
        shown_plot(report_model(samples.nothing_finished()))


def test_a_table_is_text_that_notebooks_show_as_a_table() -> None:
    table = shown_table(report_model(samples.typical()), "figures")
    assert isinstance(table, str) and "speed-up" in table and "<" not in table
    assert {"table", "th", "td", "caption"} <= _Tags(table._repr_html_()).tags


def test_every_table_of_the_report_can_be_asked_for() -> None:
    models = {
        "effects": report_model(series_samples.ALL["one-at-a-time"]()),
        "not_run": report_model(series_samples.ALL["too-large"]()),
        "side-by-side": report_model(series_samples.ALL["rivals"]()),
        "resources": report_model(picture_samples.looked_into(picture_samples.busy_run(2, 8))),
        "published": published_samples.model_of(published_samples.usual("fashion-parameters")),
    }
    for name, model in models.items():
        shown = shown_table(model, name)
        assert shown.table.rows and shown.table.columns[-1].split()[-1] in shown
        assert "table" in _Tags(shown._repr_html_()).tags
    assert shown_table(models["not_run"], "not_run").table == models["not_run"].not_run
    told = (Path(__file__).parents[3] / "docs" / "notebooks.md").read_text(encoding="utf-8")
    (row,) = (line for line in told.splitlines() if line.startswith('| `results.table("resources")`'))
    assert {f"`{name}`" for name in models} <= set(re.findall(r"`[a-z_-]+`", row))


def test_several_tables_of_one_kind_are_numbered() -> None:
    model = report_model(series_samples.strategies())
    assert len(model.side_by_side) > 1
    for number, compared in enumerate(model.side_by_side, start=1):
        assert shown_table(model, f"side-by-side-{number}").table == compared.table
    with pytest.raises(RequestError) as refused:
        shown_table(model, "side-by-side")
    assert "side-by-side-1, side-by-side-2" in refused.value.right
    with pytest.raises(RequestError, match="no table 'published'"):
        shown_table(model, "published")
    studies = (published_samples.model_of(published_samples.usual(name)) for name in published_samples.STUDIES)
    several = next(model for model in studies if len(model.published.tables) > 1)
    assert shown_table(several, "published-2").table == several.published.tables[1]
