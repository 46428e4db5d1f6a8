"""The page of a comparison in a real browser: drawn, whole in every light and width, deaf to hostile names."""

from __future__ import annotations

import csv
import io
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium, inspected
from devtools import Browser
from harmless import PAGES, harmless, sorts
from reach import by_keyboard

from paceline.app.compared_sides import compared
from paceline.records.changes import Comparison
from paceline.reporting.html.compare_page import render
from samples.compared_studies import attached_run, timed_study

DESKTOP, PHONE = 1280, 390
HIGH = {DESKTOP: 800, PHONE: 844}
DARK = "--blink-settings=preferredColorScheme=0"
PLOTS = {"ratio", "ledger", "throughput", "epoch", "accuracy"}
KEPT = {"letter", "unit", "over", "kind", "what", "point", "a", "b", "first_at", "last_at"}
"""Texts that are ours, or by which things are found."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Comparison]:
    """Two sides, five of which one cannot be compared, and two single runs."""
    place = tmp_path_factory.mktemp("compared")
    cache, five = place / "cache", "run.repeats=5"
    sides = [
        timed_study(place / "before", cache, five),
        timed_study(place / "after", cache, five, "run.strategy=flat", forward_us=520, seed=2),
        timed_study(place / "again", cache, five, seed=11),
        timed_study(place / "few", cache, "run.repeats=2", seed=12),
        timed_study(place / "wide", cache, "run.repeats=2", "run.ranks=[4]", seed=4),
    ]
    runs = [attached_run(place / "run", seed=7), attached_run(place / "slow", seed=8, communicate_us=200)]
    return {"two": compared(sides[:2]), "five": compared(sides), "runs": compared(runs)}


def hostile(value: Any, text: str, name: str = "") -> Any:
    """The same with a text in every name."""
    if isinstance(value, str):
        return value if name in KEPT else f"{value} {text}"
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: hostile(getattr(value, each.name), text, each.name) for each in fields(value)}
        )
    if isinstance(value, tuple):
        return tuple(hostile(item, text, name) for item in value)
    return value


def test_it_is_drawn_and_fits_and_asks_for_nothing(found: dict[str, Comparison], tmp_path: Path) -> None:
    shown = [("two", DESKTOP), ("five", DESKTOP), ("five", PHONE), ("runs", PHONE)]
    for name, comparison in found.items():
        (tmp_path / f"{name}.html").write_text(render(comparison), encoding="utf-8")
    pages = inspected(tmp_path, [(f"{name}.html", width) for name, width in shown])
    for (name, _), page in zip(shown, pages, strict=True):
        assert "errors" not in page, (name, page["errors"])
        assert set(page["figures"]) == (PLOTS if name != "runs" else {"ratio", "ledger"})
        for figure in page["figures"].values():
            assert figure["drawings"] and figure["marks"] and 0 < figure["drawn"] <= figure["width"], (name, page)
        assert page["wide"] <= page["room"], f"{name} scrolls sideways"
        assert page["requests"] == 0


def test_hostile_names_do_not_run(page: Browser, found: dict[str, Comparison], tmp_path: Path) -> None:
    """Two hundred of them, some forty at a time in every name."""
    path = tmp_path / "page.html"
    clean: set[str] = set()
    for text in ("plain", *PAGES):
        path.write_bytes(render(hostile(found["five"], text)).encode("utf-8", "replace"))
        page.open(path, width=PHONE, height=HIGH[PHONE])
        clean = clean or sorts(page)
        assert sorts(page) <= clean
        harmless(page)
        assert set(page.value("[...document.querySelectorAll('[data-figure]')].map((p) => p.dataset.figure)")) == PLOTS
        assert page.value("document.documentElement.scrollWidth") <= PHONE


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("name", ["two", "five", "runs"])
def test_the_first_screen_answers(
    page: Browser, found: dict[str, Comparison], tmp_path: Path, name: str, width: int
) -> None:
    """What is compared, the answer and the plot that shows it, without scrolling."""
    page.open(written(found[name], tmp_path), width=width, height=HIGH[width])
    places = page.value(
        "['h1', '.verdict', '.main .main-svg'].map((what) => "
        "document.querySelector('.first ' + what).getBoundingClientRect()).map((box) => [box.top, box.bottom])"
    )
    assert all(0 <= top < bottom <= HIGH[width] for top, bottom in places), places
    assert page.value("document.querySelector('.verdict').innerText").startswith("B ")


def test_the_keyboard_reaches_every_control_in_its_order(
    page: Browser, found: dict[str, Comparison], tmp_path: Path
) -> None:
    page.open(written(found["two"], tmp_path), width=DESKTOP, height=HIGH[DESKTOP])
    wanted, met = by_keyboard(page)
    assert met == wanted and len(met) > 20


def test_pointing_at_a_plot_tells_its_figures(page: Browser, found: dict[str, Comparison], tmp_path: Path) -> None:
    page.open(written(found["two"], tmp_path), width=DESKTOP, height=HIGH[DESKTOP])
    at = page.box("[data-figure='ratio'] .scatterlayer .point")
    page.mouse("mouseMoved", at["x"] + 1, at["y"])
    page.mouse("mouseMoved", at["x"], at["y"])
    page.until("document.querySelector('[data-figure=ratio] .hoverlayer .hovertext')")
    text = page.value("document.querySelector('[data-figure=ratio] .hoverlayer').textContent")
    assert "B ÷ A" in text and " to " in text
    assert page.complaints() == []


def test_plots_and_tables_save_their_data(page: Browser, found: dict[str, Comparison], tmp_path: Path) -> None:
    page.open(written(found["two"], tmp_path))
    study = page.value("document.documentElement.dataset.study")
    (changes,) = found["two"].against
    saved = page.saved(tmp_path, "document.querySelector('.main [data-csv]').click()", f"{study}-ratio.csv")
    rows = list(csv.DictReader(io.StringIO(saved.decode())))
    assert [(row["side"], row["point"]) for row in rows] == [("B", change.label) for change in changes.changes]
    for row, change in zip(rows, changes.changes, strict=True):
        ratio = change.time_s.change
        figures = [float(row[name]) for name in ("ratio", "low", "high")]
        assert figures == pytest.approx([ratio.median, ratio.low, ratio.high], rel=1e-4)
    button = "document.querySelector('#results table').closest('figure').querySelector('[data-csv]')"
    page.value(f"{button}.dataset.csv = 'differences'")
    saved = page.saved(tmp_path, f"{button}.click()", f"{study}-differences.csv")
    shown = page.value("document.querySelector('#results table').tBodies[0].rows.length")
    rows = list(csv.reader(io.StringIO(saved.decode())))
    assert len(rows) == 1 + shown > 1 and ["flat" in row for row in rows].count(True) == 1
    assert page.complaints() == []


def written(comparison: Comparison, folder: Path) -> Path:
    """The page of a comparison as a file."""
    path = folder / "page.html"
    path.write_text(render(comparison), encoding="utf-8")
    return path


def test_it_prints_and_follows_a_dark_screen(found: dict[str, Comparison], tmp_path: Path) -> None:
    path, paper = tmp_path / "five.html", tmp_path / "five.pdf"
    path.write_text(render(found["five"]), encoding="utf-8")
    (page,) = inspected(tmp_path, [("five.html", DESKTOP)], DARK)
    assert "errors" not in page
    assert {figure["ink"] for figure in page["figures"].values()} == {"rgb(232, 237, 242)"}
    chromium(path, f"--print-to-pdf={paper}", "--no-pdf-header-footer", DARK)
    assert paper.read_bytes().startswith(b"%PDF")
