"""A study as Markdown, LaTeX and CSV: the figures are those of the results, and no name is taken for markup."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from tex_reader import read

from paceline.analyze.points.step_time import step_times
from paceline.records.results import NotRun, StudyResults
from paceline.reporting.cells import Cell, Form
from paceline.reporting.model import report_model
from paceline.reporting.paper import tex
from paceline.reporting.paper.content import Paper, paper
from paceline.reporting.paper.csv_tables import table_csv
from paceline.reporting.paper.markdown import markdown, table_text
from paceline.reporting.paper.tex import escaped
from paceline.reporting.tables.point_tables import FAIRNESS_MARKS, Table
from samples import published_samples, report_samples, series_samples

MARKUP = (
    *report_samples.HOSTILE,
    r"\input{/etc/passwd} \write18{id} ^^5cend{document} $$x$$ #1 ~ % & _ { } \\[9cm] \\*",
    "| a | b |\n|--|--|\n# heading\n- item\n1. one\n> quote\n``` fence ```\n---\n[x](javascript:y) ![z](w) <b> **b**",
    "1) first",
    "=1+1",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1)",
    "+44",
    "naïve — 中文 µ°² Ω “quoted” --option ,,low",
)


def of(results: StudyResults) -> Paper:
    return paper(results, report_model(results), step_times(results.points))


def rows_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode())))


def weak() -> StudyResults:
    """The same work per rank at every point."""
    results = report_samples.typical()
    train = replace(results.study.train, batch_global=None, batch_per_rank=128)
    points = [replace(point, point=replace(point.point, train=train)) for point in results.points]
    run = replace(results.study.run, scaling="weak")
    return replace(results, study=replace(results.study, train=train, run=run), points=tuple(points))


def test_the_table_has_resources_times_speed_up_and_efficiency() -> None:
    one, two, four = rows_of(table_csv(of(report_samples.typical()).table))
    assert list(two)[:4] == ["hosts", "ranks", "cores", "repeats"]
    assert (two["ranks"], two["cores"], two["repeats"], two["ideal"]) == ("2", "2", "5", "2")
    assert (two["epoch time (s)"], two["epoch time (s) low"], two["epoch time (s) high"]) == ("5.25", "5.19", "5.29")
    assert (two["speed-up"], two["speed-up low"], two["speed-up high"]) == ("1.88", "1.83", "1.91")
    assert (two["efficiency (%)"], two["efficiency low"], two["efficiency high"]) == ("94", "91", "96")
    assert (one["speed-up"], one["speed-up low"]) == ("1.00", "") and float(four["run time (s)"]) > 0


def test_what_was_emulated_or_not_run_is_said() -> None:
    results = report_samples.oversubscribed()
    left = NotRun(label="8 ranks", settings={"run.ranks": 8}, reason="This machine has 2 cores.")
    found = of(replace(results, not_run=(left,)))
    *_, four = rows_of(table_csv(found.table))
    assert (four["ranks"], four["cores"]) == ("4", "shared") and "more ranks or threads than cores" in four["remark"]
    assert "Not run: 8 ranks. This machine has 2 cores." in found.table.footnotes
    assert "Not run: 8 ranks (This machine has 2 cores)." in found.conditions
    assert "Emulated, and no evidence of scaling: more ranks or threads than cores (4 ranks)." in found.table_caption
    assert all("Hollow, because emulated" in plot.caption for plot in found.plots)


def test_many_points_that_were_not_run_do_not_fill_the_caption() -> None:
    left = tuple(NotRun(label=f"{n} ranks", settings={"run.ranks": n}, reason="Too many.") for n in range(8, 20))
    found = of(replace(report_samples.typical(), not_run=left))
    assert "Not run: 12 points." in found.conditions and "8 ranks" not in found.conditions
    names = dict(found.others)
    assert len(names["not-run"].rows) == 12 and "12 points" in " ".join(found.table.footnotes)


def test_a_published_study_stands_beside_ours() -> None:
    results = published_samples.usual("mnist-mpi")
    found = paper(results, published_samples.model_of(results), step_times(results.points))
    assert {"Beside the published study", "Open questions"} <= {heading for heading, _ in found.sentences}
    names = [name for name, _ in found.others]
    assert any(name.startswith("published") for name in names) and len(set(names)) == len(names)
    text = markdown(found, {})
    assert "## Open questions" in text and "allreduce-instead" in text
    assert len(read(tex.body(found, {}))) > len(found.table.rows)
    for _, table in found.others:
        lines = list(csv.reader(io.StringIO(table_csv(table).decode())))
        assert len(lines) == 1 + len(table.rows) and len({len(line) for line in lines}) == 1


def test_the_caption_states_the_protocol() -> None:
    caption = of(report_samples.typical()).plots[0].caption
    for part in (
        "Strong scaling of cnn-690k (690,590 parameters) on mnist: speed-up and efficiency over ranks.",
        "bars their intervals",
        "Global batch of 128 at every point, 12,000 training samples, adam, learning rate 0.001, 4 epochs, float32.",
        "Strategy ddp, ranks started by local, 1 thread per rank.",
        "5 repeats per point",
        "with a confidence of 93.8 %",
        "AMD EPYC 7763 64-Core Processor, 4 cores",
        "torch 2.13.0, commit 4f1c2a9d0b7e.",
    ):
        assert part in caption, part
    assert "bars their ranges" in of(report_samples.few_repeats()).plots[0].caption
    assert "3 of 15 runs finished" in of(report_samples.partial()).conditions
    assert "The machine was not recorded." in of(report_samples.nothing_finished()).conditions


def test_what_is_varied_is_not_called_fixed() -> None:
    found = of(series_samples.batches())
    assert "varied:" in found.conditions and "Global batch of" not in found.conditions


def test_weak_scaling_is_about_the_time_of_a_step() -> None:
    found = of(weak())
    assert [plot.name for plot in found.plots] == ["weak-scaling", "step-time", "epoch-scaling"]
    assert "Batch of 128 per rank at every point" in found.conditions
    one, two, _ = rows_of(table_csv(found.table))
    point = weak().points[1]
    assert point.samples_per_s
    assert float(two["step time (ms)"]) == pytest.approx(256e3 / point.samples_per_s.median, rel=0.005)
    assert float(two["step time (ms) low"]) == pytest.approx(256e3 / point.samples_per_s.high, rel=0.005)
    times = found.plots[1].panels[0].scaling
    assert times.ideal == (pytest.approx(float(one["step time (ms)"]), rel=0.005),) * 3


def test_ranks_that_share_an_epoch_show_its_strong_scaling() -> None:
    found = of(published_samples.usual("mnist-mpi"))
    plot = found.plots[-1]
    assert plot.name == "epoch-scaling" and plot.caption.startswith("Strong scaling of an epoch of cnn-690k")
    assert "An epoch has the same 12,800 samples at every point: over ranks it is strong scaling" in plot.caption
    assert [panel.axis for panel in plot.panels] == ["speed-up of an epoch", "epoch time (s)", "run time (s)"]
    epoch_s, run_s = plot.panels[1].scaling, plot.panels[2].scaling
    assert epoch_s.ideal[1] == pytest.approx(epoch_s.ideal[0] / 2) and run_s.ideal[1] == pytest.approx(
        run_s.ideal[0] / 2
    )
    one, two, _ = rows_of(table_csv(found.table))
    ratio = float(one["epoch time (s)"]) / float(two["epoch time (s)"])
    assert float(two["speed-up of an epoch"]) == pytest.approx(ratio, rel=0.01)


def test_runs_of_unequal_epochs_are_not_compared() -> None:
    plot = of(published_samples.usual("cifar10-nodes")).plots[-1]
    assert plot.name == "epoch-scaling" and [panel.axis for panel in plot.panels][-1] == "epoch time (s)"


def test_epochs_of_other_samples_are_not_strong_scaling() -> None:
    results = weak()
    first, *rest = results.points
    curves = [replace(c, epochs=tuple(replace(e, samples=e.samples // 2) for e in c.epochs)) for c in first.curves]
    found = of(replace(results, points=(replace(first, curves=tuple(curves)), *rest)))
    assert [plot.name for plot in found.plots] == ["weak-scaling", "step-time"]
    assert "speed-up" in found.table.columns and "strong scaling" not in " ".join(found.table.footnotes)


def test_captions_name_what_carries_the_gradients() -> None:
    assert "communication: gradients by MPI, all else by gloo;" in of(published_samples.usual("mnist-mpi")).conditions
    assert "communication: gloo;" in of(report_samples.typical()).conditions


@pytest.mark.parametrize("name", report_samples.ALL)
def test_every_kind_of_study_is_set(name: str) -> None:
    found = of(report_samples.ALL[name]())
    figures = {plot.name: f"{plot.name}.pdf" for plot in found.plots}
    rows = read(tex.body(found, figures))
    assert rows[0] == [escaped(column) for column in found.table.columns]
    assert {len(row) for row in rows[: 1 + len(found.table.rows)]} == {len(found.table.columns)}
    assert found.report.verdict in markdown_text(markdown(found, figures))
    assert "None" not in markdown(found, {}) and "nan" not in markdown(found, {})


def markdown_text(text: str) -> str:
    """All that a reader sees of a page."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return "\n".join("".join(child.content for child in token.children or []) for token in tokens)


def shape(text: str) -> tuple[list[str], int, int]:
    """Headings, images and tables of a page; AssertionError where there is HTML, a link or code that is not ours."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or []]
    kinds = {token.type for token in (*tokens, *inline)}
    assert not kinds & {"html_block", "html_inline", "link_open", "code_block", "code_inline", "blockquote_open", "hr"}
    assert not kinds & {"ordered_list_open", "lheading_open"}
    headings = [token.tag for token in tokens if token.type == "heading_open"]
    images = sum(child.type == "image" for child in inline)
    return headings, images, sum(token.type == "table_open" for token in tokens)


@pytest.mark.parametrize("text", MARKUP, ids=lambda text: text[:12])
def test_no_name_is_taken_for_markup(text: str) -> None:
    """Every string of the results is `text`: the page has the same parts as one with harmless names."""
    plain, hostile = (of(report_samples.hostile(word)) for word in ("word", text))
    names = {plot.name: f"figures/{plot.name}.svg" for plot in plain.plots}
    assert shape(markdown(hostile, names)) == shape(markdown(plain, names))
    rows, plain_rows = (read(tex.body(each, names)) for each in (hostile, plain))
    assert [len(row) for row in rows] == [len(row) for row in plain_rows]
    for _, table in (("scaling", hostile.table), *hostile.others):
        lines = list(csv.reader(io.StringIO(table_csv(table).decode())))
        assert len({len(line) for line in lines}) == 1 and len(lines) == 1 + len(table.rows)
        cells = [cell for line in lines for cell in line]
        assert not [cell for cell in cells if (cell and cell[0] in "=+@") or re.match(r"-(?![\d.]+$)", cell)]


@pytest.mark.parametrize("text", MARKUP, ids=lambda text: text[:12])
def test_a_cell_stays_one_cell(text: str) -> None:
    table = Table(caption="", columns=("a", text), rows=((Cell(text), Cell("1", text)),), footnotes=(text,))
    tokens = MarkdownIt("commonmark").enable("table").parse(table_text(table))
    assert [token.type for token in tokens if token.type in ("th_open", "td_open")] == ["th_open"] * 2 + ["td_open"] * 2
    assert [len(row) for row in read(tex.table_text("name", table, text))] == [2, 2]


def test_text_for_latex_keeps_every_character() -> None:
    assert escaped(r"a_b 50 % \x {y} #1 $2 ^ ~") == (
        r"a\_b 50 \% \textbackslash{}x \{y\} \#1 \$2 \textasciicircum{} \textasciitilde{}"
    )
    assert escaped("--json ,,") == "-{}-json ,{},"
    assert escaped("[1, 2] * é ± 中") == r"{[}1, 2{]} {*} é $\pm$ \texttt{U+4E2D}"


def test_the_document_takes_the_body() -> None:
    text = tex.document()
    assert r"\input{report-body}" in text and text.index(r"\begin{document}") < text.index(r"\input")
    for package in ("booktabs", "graphicx", "textcomp"):
        assert rf"\usepackage{{{package}}}" in text


@pytest.mark.parametrize("text", ["=1+1", "@SUM(1)", "+cmd|x", "-2+3", "\t=1"])
def test_a_spreadsheet_takes_no_name_for_a_formula(text: str) -> None:
    table = Table(caption="", columns=("name", text), rows=((Cell(text, text), Cell("1")),))
    cells = [cell for line in csv.reader(io.StringIO(table_csv(table).decode())) for cell in line]
    assert len(cells) == 6 and not [cell for cell in cells if cell[0] in "=+-@\t"]


def test_numbers_of_a_csv_are_numbers() -> None:
    marked = Cell(12345, form=Form(digits=3, apart=True), interval=(-1.5, None), marks=("*",))
    percent = Cell(0.002, form=Form(scale=100, decimals=2, unit="%", sign=True))
    spread = Cell(0.002, form=Form(scale=100, decimals=2, unit="%"), std=0.001)
    table = Table(caption="", columns=("a", "b", "c", "d"), rows=((marked, percent, spread, Cell(None)),))
    assert [cell.text for cell in table.rows[0]] == ["12,345 * [-1.50, –]", "+0.20 %", "0.20 ± 0.10 %", "–"]
    (row,) = rows_of(table_csv(table))
    assert row.pop("remark") == FAIRNESS_MARKS["*"]
    assert row == {"a": "12345", "a low": "-1.50", "a high": "", "b (%)": "0.20", "c": "0.20", "c ±": "0.10", "d": ""}
