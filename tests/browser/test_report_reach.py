"""A report within everybody's reach: by keyboard, in light and dark, on a phone, on paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from devtools import Browser
from reach import by_keyboard, focused_number

from paceline.metrics import metric
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from samples import report_samples as samples

DESKTOP, PHONE = (1280, 800), (390, 844)


def test_the_keyboard_reaches_everything_in_its_order(page: Browser, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(report_page.render(report_model(samples.oversubscribed())).encode())
    page.open(tmp_path / "page.html", width=DESKTOP[0], height=DESKTOP[1])
    wanted, met = by_keyboard(page)
    assert met == wanted and len(met) > 40
    page.key("Tab", shift=True)
    assert focused_number(page) == wanted[-2]


def test_the_keyboard_opens_hides_points_and_zooms(opened: Browser) -> None:
    opened.value("document.querySelector('.main summary').focus()")
    opened.key("Enter")
    about = opened.value(
        "document.querySelector('.main .about').open && document.querySelector('.main .about').innerText"
    )
    assert metric("speed-up").definition in about and "= speed-up ÷ ideal" in about
    opened.key("Tab")
    assert opened.value("document.activeElement.dataset.csv") == "speedup"
    opened.key("Escape")
    assert not opened.value("document.querySelector('.main .about').open")
    assert opened.value("document.activeElement.tagName") == "SUMMARY"
    opened.key("Tab")
    assert opened.value("document.activeElement.dataset.figure") == "speedup"
    hover = "document.querySelector('[data-figure=speedup] .hoverlayer').textContent"
    opened.key("ArrowRight")
    opened.until(f"{hover}.includes('times as fast')")
    first = opened.value(hover)
    opened.key("ArrowRight")
    opened.until(f"{hover} !== {first!r}")
    ranges = "document.querySelector('[data-figure=speedup]')._fullLayout.xaxis.range"
    whole = opened.value(ranges)
    opened.key("+")
    opened.until(f"{ranges}[1] < {whole[1]}")
    opened.key("Home")
    opened.until(f"Math.abs({ranges}[1] - {whole[1]}) < 1e-9")
    opened.key("Tab")
    pressed = "document.activeElement.getAttribute('aria-pressed')"
    assert opened.value(pressed) == "true"
    opened.key(" ")
    assert opened.value(pressed) == "false"
    assert opened.complaints() == []


def test_every_figure_has_its_meaning_and_its_data(opened: Browser) -> None:
    """One click to the definition, one more to the data; of plots, tables, matrices and timelines alike."""
    found = opened.value(
        "[...document.querySelectorAll('figure')].map((figure) => ({ what: figure.innerText.slice(0, 60), "
        "about: figure.querySelectorAll(':scope > details.about > summary').length, "
        "data: figure.querySelectorAll(':scope > details.about [data-csv]').length }))"
    )
    assert len(found) > 20 and all(figure["about"] == figure["data"] == 1 for figure in found), found
    assert opened.value(
        "document.querySelectorAll('table').length === document.querySelectorAll('figure table').length"
    )
    terms = opened.value("[...document.querySelectorAll('#results .about dt')].map((term) => term.textContent)")
    assert {"ranks", "epoch time", "samples/s", "speed-up", "efficiency", "test accuracy"} <= set(terms)


INK = "document.querySelector('[data-figure=speedup] .xtick text').style.fill"
PAGE = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("dark", [False, True])
def test_colours_can_be_switched_and_are_remembered(page: Browser, report: Path, dark: bool) -> None:
    page.open(report, dark=dark)
    page.value("localStorage.clear()")
    page.open(report, dark=dark)
    before = page.value(f"[{INK}, {PAGE}]")
    assert page.value("document.querySelector('.theme').textContent") == ("Light colours" if dark else "Dark colours")
    at = page.box(".theme")
    page.click(at["x"], at["y"])
    page.until(f"{INK} !== {before[0]!r}")
    after = page.value(f"[{INK}, {PAGE}]")
    assert after[1] != before[1]
    page.open(report, dark=dark)
    page.until(f"{INK} === {after[0]!r}")
    assert page.value(PAGE) == after[1] and page.complaints() == []
    page.value("localStorage.clear()")


def test_a_phone_scrolls_down_alone(page: Browser, report: Path) -> None:
    page.open(report, width=PHONE[0], height=PHONE[1])
    assert page.value("document.documentElement.scrollWidth") <= PHONE[0]
    page.value("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    assert page.value("document.documentElement.scrollWidth") <= PHONE[0]
    cut = page.value(
        "[...document.querySelectorAll('h1, h2, h3, h4, p, dt, dd, figcaption, .key')].filter((place) => "
        "place.checkVisibility() && !place.closest('.scroll, .contents') && "
        f"place.getBoundingClientRect().right > {PHONE[0]}).map((place) => place.textContent)"
    )
    assert cut == []


def test_it_prints_in_light_colours_with_folds_open_and_without_buttons(page: Browser, report: Path) -> None:
    page.open(report, dark=True)
    page.value(
        "addEventListener('beforeprint', () => "
        "(window.folds = [...document.querySelectorAll('details.fold')].every((fold) => fold.open)))"
    )
    paper = page.paper()
    assert paper.startswith(b"%PDF") and 4 <= len(re.findall(rb"/Type /Page\b", paper)) <= 30
    assert page.value("window.folds") and not page.value("document.querySelector('details.fold').open")
    page.call("Emulation.setEmulatedMedia", media="print", features=[])
    shown = page.value(
        "[...document.querySelectorAll('button:not(.key), .contents, .about, .skip')]"
        ".filter((place) => place.checkVisibility()).length"
    )
    assert shown == 0 and page.value(PAGE) in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
    assert page.value("getComputedStyle(document.body).color") == "rgb(23, 32, 43)"
    page.call("Emulation.setEmulatedMedia", media="", features=[])
    assert page.complaints() == []
