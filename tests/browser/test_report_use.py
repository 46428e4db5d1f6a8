"""A report under a reader's hands: what is where, what plots answer to a pointer, which data they save."""

from __future__ import annotations

import csv
import functools
import io
import re
from pathlib import Path
from typing import Any

import pytest
from devtools import Browser

from paceline.records.results import StudyResults
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html import report_page
from paceline.reporting.html.sections import QUESTIONS
from paceline.reporting.model import ReportModel, report_model
from samples import published_samples
from samples import report_samples as samples

DESKTOP, PHONE = (1280, 800), (390, 844)
MOST_BYTES = 6_000_000
FIRST_SCREENS = ("fashion-parameters", "flowers-cloud-controlled", "mnist-batch-size", "cifar10-nodes", "mnist-mpi")
"""Published studies: with many factors one at a time, with long names, of accuracy, and with the longest answers."""


def rows_of(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def press(page: Browser, figure: str, button: str) -> str:
    """An expression that presses a button of the figure around a place."""
    return f"document.querySelector({figure!r}).closest('figure').querySelector({button!r}).click()"


def test_every_section_is_there_and_every_plot_is_drawn(opened: Browser, model: ReportModel, report: Path) -> None:
    assert report.stat().st_size < MOST_BYTES
    seen = opened.value(
        "Object.fromEntries([...document.querySelectorAll('section[id]')].map((part) => [part.id, part.clientHeight]))"
    )
    assert {question.name for question in QUESTIONS if question.nothing} <= set(seen)
    assert {"results", "speed", "compare", "ledgers", "inside", "ranks", "learning", "efficiency", "step"} <= set(seen)
    assert all(height > 60 for height in seen.values()), seen
    drawn = opened.value(
        "Object.fromEntries([...document.querySelectorAll('[data-figure]')].map((place) => "
        "[place.dataset.figure, place.querySelectorAll('.point path, path.point, .js-line').length]))"
    )
    assert set(drawn) == set(figures(model)) and all(drawn.values()), drawn
    opened.until("document.documentElement.dataset.timelines")
    assert opened.complaints() == [] and opened.value("document.documentElement.dataset.errors ?? ''") == ""


def test_the_contents_lead_to_every_question(opened: Browser) -> None:
    links = opened.value("[...document.querySelectorAll('.contents a')].map((link) => link.getAttribute('href'))")
    shown = opened.value("[...document.querySelectorAll('.question')].map((part) => '#' + part.id)")
    assert links == shown and len(links) >= 6
    for link in links:
        opened.box(f".contents a[href='{link}']")
        opened.value(f"document.querySelector(\".contents a[href='{link}']\").click()")
        place = opened.value(f"document.querySelector('{link} > h2').getBoundingClientRect().top")
        bar = opened.value("document.querySelector('.contents').getBoundingClientRect().bottom")
        assert bar <= place < DESKTOP[1], link


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize(
    "results",
    [
        samples.typical,
        samples.oversubscribed,
        samples.many_points,
        *(functools.partial(published_samples.usual, name) for name in FIRST_SCREENS),
    ],
)
def test_the_first_screen_answers(page: Browser, tmp_path: Path, results: Any, size: tuple[int, int]) -> None:
    """The question, the answer, the main plot and the next command, without scrolling."""
    made: StudyResults = results()
    model = published_samples.model_of(made) if made.study.published else report_model(made)
    (tmp_path / "page.html").write_bytes(report_page.render(model).encode())
    page.open(tmp_path / "page.html", width=size[0], height=size[1])
    places = page.value(
        "['h1', '.verdict', '.main .main-svg', '.next code'].map((what) => "
        "document.querySelector('.first ' + what).getBoundingClientRect()).map((box) => [box.top, box.bottom])"
    )
    assert all(0 <= top < bottom <= size[1] for top, bottom in places), places
    assert page.value("document.querySelector('h1').innerText") == made.study.question


def test_pointing_at_a_plot_tells_its_figures(opened: Browser) -> None:
    at = opened.box("[data-figure='throughput'] .scatterlayer .trace:nth-of-type(2) .point")
    opened.mouse("mouseMoved", at["x"] + 1, at["y"])
    opened.mouse("mouseMoved", at["x"], at["y"])
    opened.until("document.querySelector('[data-figure=throughput] .hoverlayer .hovertext')")
    text = opened.value("document.querySelector('[data-figure=throughput] .hoverlayer').textContent")
    assert "samples/s" in text and " to " in text


def test_dragging_zooms_and_a_double_click_shows_the_whole(opened: Browser) -> None:
    place = "document.querySelector('[data-figure=loss]')"
    ranges = f"{place}._fullLayout.xaxis.range"
    whole = opened.value(ranges)
    at = opened.box("[data-figure='loss'] .nsewdrag")
    left, right = (at["left"] + part * at["width"] for part in (0.3, 0.7))
    opened.drag((left, at["y"] - 40), (right, at["y"] + 40))
    opened.until(f"{ranges}[1] < {whole[1]} - 0.1")
    low, high = opened.value(ranges)
    assert whole[0] < low < high < whole[1]
    opened.click(at["x"], at["y"], times=2)
    opened.until(f"Math.abs({ranges}[1] - {whole[1]}) < 1e-6")


def test_keys_hide_and_show_what_they_stand_for(opened: Browser) -> None:
    key = ".main .key[data-key='flat on 1 host']"
    count = "document.querySelectorAll('.main .scatterlayer .trace').length"
    before = opened.value(count)
    at = opened.box(key)
    opened.click(at["x"], at["y"])
    opened.until(f"{count} < {before}")
    assert opened.value(f'document.querySelector("{key}").getAttribute("aria-pressed")') == "false"
    opened.click(at["x"], at["y"])
    opened.until(f"{count} === {before}")
    kinds = "document.querySelectorAll('[data-figure=ledger] .barlayer .trace').length"
    bars = opened.value(kinds)
    opened.value("document.querySelector(\"[data-toggle='ledger'][data-key='forward']\").click()")
    opened.until(f"{kinds} === {bars} - 1")
    assert opened.complaints() == []


def test_plots_save_the_figures_that_they_show(opened: Browser, model: ReportModel, tmp_path: Path) -> None:
    act = press(opened, "[data-figure=throughput]", "[data-csv]")
    rows = rows_of(opened.saved(tmp_path, act, "mnist-scaling-throughput.csv"))
    measured = [
        (line.name, ranks, estimate)
        for line in model.throughput.lines
        for ranks, estimate in zip(line.ranks, line.measured, strict=True)
        if estimate is not None
    ]
    assert [(row["series"], int(row["ranks"])) for row in rows] == [(name, ranks) for name, ranks, _ in measured]
    for row, (_, _, estimate) in zip(rows, measured, strict=True):
        found = [float(row[name]) for name in ("samples/s", "low", "high")]
        assert found == pytest.approx([estimate.value, estimate.low, estimate.high], rel=1e-4)


def test_plots_without_numbers_of_their_own_save_their_traces(
    opened: Browser, model: ReportModel, tmp_path: Path
) -> None:
    act = press(opened, "[data-figure=accuracy]", "[data-csv]")
    rows = rows_of(opened.saved(tmp_path, act, "mnist-scaling-accuracy.csv"))
    curve = next(curve for curve in model.curves if curve.measure == "accuracy" and curve.part == "validation")
    own = [row for row in rows if row["series"] == f"{curve.label}, validation"]
    assert [int(row["epoch"]) for row in own] == list(curve.epochs)
    assert [float(row["accuracy (%)"]) for row in own] == pytest.approx([100 * (v or 0) for v in curve.mean], rel=1e-4)


def test_tables_save_numbers_and_their_intervals(opened: Browser, model: ReportModel, tmp_path: Path) -> None:
    act = press(opened, "#results table", "[data-csv]")
    rows = rows_of(opened.saved(tmp_path, act, "mnist-scaling-one-row-per-point-medians-over-repeats.csv"))
    assert len(rows) == len(model.figures.rows) == 12
    at = model.figures.columns.index("samples/s")
    for row, cells in zip(rows, model.figures.rows, strict=True):
        texts = (cells[at].figure, *cells[at].beside.strip("[]").split(", "))
        saved = (row["samples/s"], row["samples/s, low"], row["samples/s, high"])
        assert saved == tuple(text.replace(",", "") for text in texts)
        assert re.fullmatch(r"\d+", row["efficiency (%)"])


def test_timelines_save_their_parts(opened: Browser, model: ReportModel, tmp_path: Path) -> None:
    opened.until("document.documentElement.dataset.timelines")
    shown = model.inside[0].timeline
    assert shown is not None
    act = press(opened, "[data-run]:not([hidden]) [data-lanes]", "[data-csv]")
    name = opened.value("document.querySelector('[data-timeline] [data-csv]').dataset.csv")
    rows = rows_of(opened.saved(tmp_path, act, f"mnist-scaling-{name}.csv"))
    ranks = {int(row["rank"]) for row in rows}
    assert ranks == {lane.rank for lane in shown.picture.lanes} and len(rows) > 1000
    for row in rows[:200]:
        assert 0 <= float(row["start (s)"]) <= float(row["end (s)"])
    assert {"forward", "backward"} <= {row["kind"] for row in rows}


def test_matrices_save_every_cell(opened: Browser, model: ReportModel, tmp_path: Path) -> None:
    matrix = model.inside[0].matrices[0]
    opened.value("document.querySelector('.matrix [data-csv]').dataset.csv = 'matrix'")
    rows = rows_of(opened.saved(tmp_path, press(opened, ".matrix table", "[data-csv]"), "mnist-scaling-matrix.csv"))
    assert [next(iter(row.values())) for row in rows] == list(matrix.names)
    assert list(rows[0])[1:] == list(matrix.names)


def test_a_plot_can_be_saved(opened: Browser, tmp_path: Path) -> None:
    saved = opened.saved(tmp_path, press(opened, "[data-figure=speedup]", "[data-save]"), "mnist-scaling-speedup.svg")
    assert saved.startswith(b"<svg") and b"flat on 1 host" in saved
    assert opened.complaints() == []
