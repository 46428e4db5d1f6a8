"""Published studies in a real browser: every section is there, on a phone too, and tables save one figure a cell."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from devtools import Browser

from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html import report_page
from paceline.reporting.html.markup import slug
from paceline.reporting.html.sections import SECTIONS
from paceline.reporting.model import ReportModel
from paceline.reporting.tables.point_tables import NONE, Table
from samples import published_samples

DESKTOP, PHONE = (1280, 800), (390, 844)
STUDIES = ("mnist-mpi", "fashion-parameters", "cifar10-nodes", "caltech256-gpus")
"""With contradictions, with effects, with words for rows, and with two tables whose rows have notes."""
FIGURE = re.compile(r"-?\d+(\.\d+)?")
REASON = re.compile(rf"(not run|{NONE}) [a-z]+")


def write_page(study: str, path: Path) -> ReportModel:
    model = published_samples.model_of(published_samples.usual(study))
    path.write_bytes(report_page.render(model).encode())
    return model


@pytest.mark.parametrize("study", STUDIES)
def test_every_section_is_shown_at_any_width_and_nothing_fails(page: Browser, tmp_path: Path, study: str) -> None:
    model = write_page(study, tmp_path / "page.html")
    drawn = figures(model)
    for width, height in (DESKTOP, PHONE):
        page.open(tmp_path / "page.html", width=width, height=height)
        shown = page.value(
            "[...document.querySelectorAll('section.part')].filter((part) => part.clientHeight > 60)"
            ".map((part) => part.id)"
        )
        written = (tmp_path / "page.html").read_text()
        assert shown == [section.name for section in SECTIONS if f'id="{section.name}"' in written]
        assert {"beside", "asked", "results"} <= set(shown)
        assert page.value("document.querySelectorAll('[data-figure] .main-svg:first-of-type').length") == len(drawn)
        page.value("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.complaints() == [] and page.value("document.documentElement.dataset.errors ?? ''") == ""


def test_on_a_phone_the_table_scrolls_within_its_box_and_no_text_is_cut(page: Browser, tmp_path: Path) -> None:
    write_page("mnist-mpi", tmp_path / "page.html")
    page.open(tmp_path / "page.html", width=PHONE[0], height=PHONE[1])
    box = "document.querySelector('#beside .scroll')"
    assert page.value(f"{box}.scrollWidth > {box}.clientWidth && {box}.clientWidth <= {PHONE[0]}")
    page.value(f"{box}.scrollTo(1e6, 0)")
    assert page.value(f"{box}.querySelector('tr:last-child td:last-child').getBoundingClientRect().right") <= PHONE[0]
    cut = page.value(
        "[...document.querySelectorAll('#published :is(h2, h3, p, dt, dd, figcaption)')].filter((place) => "
        f"place.checkVisibility() && place.getBoundingClientRect().right > {PHONE[0]}).map((place) => place.innerText)"
    )
    assert cut == []


@pytest.mark.parametrize("study", STUDIES)
def test_a_saved_table_has_one_figure_in_a_cell(page: Browser, tmp_path: Path, study: str) -> None:
    tables = write_page(study, tmp_path / "page.html").published.tables
    page.open(tmp_path / "page.html")
    for number, table in enumerate(tables):
        act = f"document.querySelectorAll('#beside figure')[{number}].querySelector('[data-csv]').click()"
        saved = page.saved(tmp_path, act, f"{study}-{slug(table.caption)}.csv")
        rows = list(csv.DictReader(io.StringIO(saved.decode())))
        assert len(rows) == len(table.rows) > 0
        for row, cells in zip(rows, expected(table), strict=True):
            assert row == cells
            keys = table.columns[: table.keys]
            figures_of = [
                text
                for name, text in row.items()
                if name.partition(", ")[0] not in keys and not name.endswith(", note")
            ]
            assert all(not text or FIGURE.fullmatch(text) or REASON.fullmatch(text) for text in figures_of), row
    assert page.complaints() == []


def test_a_saved_table_has_the_published_figure_ours_and_its_interval(page: Browser, tmp_path: Path) -> None:
    table = write_page("mnist-mpi", tmp_path / "page.html").published.tables[0]
    page.open(tmp_path / "page.html")
    saved = page.saved(
        tmp_path, "document.querySelector('#beside [data-csv]').click()", f"mnist-mpi-{slug(table.caption)}.csv"
    )
    first, *_, eight = list(csv.DictReader(io.StringIO(saved.decode())))[:4]
    assert {name: text for name, text in first.items() if name.startswith("epoch (s)")} == {
        "epoch (s), published": "142.04",
        "epoch (s), here": "8.09",
        "epoch (s), here, low": "8.08",
        "epoch (s), here, high": "8.14",
    }
    assert {"test accuracy, published", "test accuracy, here", "test accuracy, here, ±"} <= set(first)
    assert (eight["epoch (s), published"], eight["epoch (s), here"][:8]) == ("20.52", "not run ")
    assert eight["epoch (s), here, low"] == eight["test accuracy, here, ±"] == ""


def expected(table: Table) -> list[dict[str, str]]:
    """The rows of a saved table: of every column what is published, what is here, and both ends or ± of the latter."""
    rows: list[dict[str, str]] = [{} for _ in table.rows]
    for index, column in enumerate(table.columns):
        cells = [row[index] for row in table.rows]
        if index < table.keys:
            parts = {column: [cell.figure for cell in cells], f"{column}, note": [cell.beside for cell in cells]}
        else:
            ours = [
                re.fullmatch(r"here (not run \w+|– \w+|\S+)(?: \[(\S+), (\S+)\]| ± (\S+))?(?: ([a-z]+))?", c.beside)
                for c in cells
            ]
            names = (f"{column}, here", *(f"{column}, here, {end}" for end in ("low", "high", "±", "note")))
            parts = {f"{column}, published": ["" if cell.figure == NONE else cell.figure for cell in cells]}
            parts |= {name: [(own and own[group]) or "" for own in ours] for group, name in enumerate(names, start=1)}
        for name, texts in parts.items():
            if any(texts) or name in (column, f"{column}, published"):
                for row, text in zip(rows, texts, strict=True):
                    row[name] = text.replace(",", "") if FIGURE.fullmatch(text.replace(",", "")) else text
    return rows
