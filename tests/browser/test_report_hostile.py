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

from hostile_reports import of_model, of_records
from hostile_strings import HOSTILE
from paceline.report import html
from paceline.report.model import ReportModel

PER_PAGE = 40
PAGES = [" ".join(HOSTILE[first : first + PER_PAGE]) for first in range(0, len(HOSTILE), PER_PAGE)]
ELEMENTS = "[...document.querySelectorAll('*')].filter((place) => !place.closest('svg, [data-figure]'))"
SHAPE = f"{ELEMENTS}.map((place) => [place.tagName, ...place.getAttributeNames().sort()].join(' '))"
# Wherever they are, in plots too: elements that load or run something, handlers, links that lead out of the page.
UNWANTED = """[...document.querySelectorAll('*')].filter((place) =>
  'IFRAME OBJECT EMBED IMG IMAGE FORM BASE VIDEO FOREIGNOBJECT A'.split(' ').includes(place.tagName.toUpperCase())
    && !(place.getAttribute('href') ?? '').startsWith('#')
  || place.getAttributeNames().some((name) => name.startsWith('on'))).map((place) => place.outerHTML.slice(0, 200))"""


def shape(page: Browser) -> list[str]:
    return page.value(SHAPE)


def harmless(page: Browser) -> None:
    assert page.value("document.documentElement.dataset.owned ?? window.owned ?? ''") == ""
    assert page.value("document.documentElement.dataset.errors ?? ''") == ""
    assert page.value(UNWANTED) == []
    assert page.complaints() == []


@pytest.mark.parametrize("made", [of_records, of_model])
def test_hostile_strings_are_shown_and_nothing_else_happens(
    page: Browser, tmp_path: Path, made: Callable[[str], ReportModel]
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(html.render(made("plain")).encode())
    page.open(path)
    clean = set(shape(page))
    for number, text in enumerate(PAGES):
        model = made(text)
        path.write_bytes(html.render(model).encode())
        page.open(path)
        page.until("document.documentElement.dataset.timelines")
        # Sorts of elements: how many there are may depend on what names have in common.
        assert set(shape(page)) <= clean, number
        assert page.value("document.querySelector('h1').textContent") == model.question
        harmless(page)


def test_hostile_strings_stay_text_in_what_is_pointed_at_hidden_and_saved(page: Browser, tmp_path: Path) -> None:
    """Tips of plots and timelines, keys, folds, saved files; the page was closed to them so far by its text alone."""
    path = tmp_path / "page.html"
    text = " ".join(HOSTILE[60:80])
    path.write_bytes(html.render(of_records(text)).encode())
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
    page.value("document.querySelector('#results [data-csv]').dataset.csv = 'saved'")
    study = page.value("document.documentElement.dataset.study")
    saved = page.saved(tmp_path, "document.querySelector('#results [data-csv]').click()", f"{study}-saved.csv")
    cells = [cell for row in csv.reader(io.StringIO(saved.decode())) for cell in row]
    assert cells and not [cell for cell in cells if cell.startswith(("=", "@", "+", "-2+3"))]
    harmless(page)
