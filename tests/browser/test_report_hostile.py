"""Two hundred hostile strings in every text that a report is made of: they are shown, and nothing else happens.

Some forty strings share a page, each of them in every field: of the records that a report is made of, and of the
report's model, so that no way from a file to the page is left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from devtools import Browser
from harmless import PAGES, harmless, sorts

from paceline.reporting.html import report_page
from paceline.reporting.html.sections import SECTIONS
from paceline.reporting.model import ReportModel
from samples.hostile_reports import of_model, of_records
from samples.hostile_strings import HOSTILE

# Parts of the page whose texts are a study's own.
FROM_FILES = ("beside", "disagree", "asked", "effects", "not-run", "extras", "learning", "findings", "machine")


@pytest.mark.parametrize("made", [of_records, of_model])
def test_hostile_strings_are_shown_and_nothing_else_happens(
    page: Browser, tmp_path: Path, made: Callable[[str], ReportModel]
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(report_page.render(made("plain")).encode())
    page.open(path)
    clean = sorts(page)
    reached = page.value(
        "Object.fromEntries([...document.querySelectorAll('section.part')].map((part) => "
        "[part.id, part.textContent.includes('plain')]))"
    )
    assert list(reached) == [section.name for section in SECTIONS]
    assert all(reached[name] for name in FROM_FILES), reached
    for number, text in enumerate(PAGES):
        model = made(text)
        path.write_bytes(report_page.render(model).encode())
        page.open(path)
        page.until("document.documentElement.dataset.timelines")
        assert sorts(page) <= clean, number
        assert page.value("document.querySelector('h1').textContent") == model.question
        harmless(page)


def test_hostile_strings_stay_text_in_what_is_pointed_at_hidden_and_saved(page: Browser, tmp_path: Path) -> None:
    """Tips of plots and timelines, keys, folds, saved files; the page was closed to them so far by its text alone."""
    path = tmp_path / "page.html"
    text = " ".join(HOSTILE[60:80])
    path.write_bytes(report_page.render(of_records(text)).encode())
    page.open(path)
    page.until("document.documentElement.dataset.timelines")
    page.value("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    page.value("document.querySelectorAll('.key').forEach((key) => (key.click(), key.click()))")
    shown = page.value(
        "(async () => { const texts = []; for (const place of document.querySelectorAll('[data-figure]')) {"
        "place.focus(); for (const key of ['ArrowRight', 'ArrowDown']) {"
        "place.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));"
        "await new Promise((done) => setTimeout(done, 60));"
        "texts.push(place.querySelector('.hoverlayer').textContent); } } return texts; })()"
    )
    assert any("<img" in words for words in shown)
    harmless(page)
    at = page.box("[data-run]:not([hidden]) [data-lanes]")
    page.mouse("mouseMoved", at["x"], at["top"] + 60)
    harmless(page)
    study = page.value("document.documentElement.dataset.study")
    for part in ("results", "beside"):
        button = f"document.querySelector('#{part} [data-csv]')"
        page.value(f"{button}.dataset.csv = '{part}'")
        saved = page.saved(tmp_path, f"{button}.click()", f"{study}-{part}.csv")
        cells = [cell for row in csv.reader(io.StringIO(saved.decode())) for cell in row]
        assert cells and not [cell for cell in cells if cell.startswith(("=", "@", "+", "-2+3"))]
    harmless(page)
