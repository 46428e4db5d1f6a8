"""Fitted laws in a real page, and what a notebook shows in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools import Browser

from paceline.reporting.figures.report_figures import figures
from paceline.reporting.html import notebook, report_page
from paceline.reporting.model import report_model
from samples import law_samples, report_samples


def test_keys_hide_and_show_a_law_with_its_band(page: Browser, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(
        report_page.render(report_model(law_samples.study(law_samples.usl()))).encode()
    )
    page.open(tmp_path / "page.html")
    shown = (
        "document.querySelector('[data-figure=speedup]').data.filter((trace) => trace.visible !== false)"
        ".map((trace) => trace.meta ?? trace.name)"
    )
    drawn, waiting = "Universal Scalability Law, fitted", "Amdahl's law, fitted"
    assert page.value(shown).count(drawn) == 3 and waiting not in page.value(shown)
    for label, wanted in ((waiting, 3), (drawn, 0), (drawn, 3)):
        key = page.box(f'[data-toggle=speedup][data-key="{label}"]')
        page.click(key["x"], key["y"])
        page.until(f"{shown}.filter((name) => name === {label!r}).length === {wanted}")
    assert page.value("document.querySelector('#laws').innerText").count("ranks are fastest") == 1
    assert page.complaints() == []


@pytest.mark.parametrize("width", [390, 1000])
def test_output_of_a_notebook_fits_and_asks_for_nothing(page: Browser, tmp_path: Path, width: int) -> None:
    model = report_model(report_samples.typical())
    parts = [notebook.results_html(model), *(notebook.shown_plot(model, name)._repr_html_() for name in figures(model))]
    text = f"<!doctype html><html data-drawn=1><meta charset=utf-8><body>{''.join(parts)}</body></html>"
    (tmp_path / "cell.html").write_text(text, encoding="utf-8")
    page.open(tmp_path / "cell.html", width=width)
    sizes = page.value(
        "[...document.querySelectorAll('svg')].map((drawing) => drawing.getBoundingClientRect())"
        ".map((box) => [box.width, box.height])"
    )
    assert len(sizes) == len(figures(model)) + 1 and all(250 < wide <= width and high > 100 for wide, high in sizes)
    assert page.value("document.documentElement.scrollWidth") <= width
    outside = page.value(
        "[...document.querySelectorAll('svg')].flatMap((drawing) => [...drawing.querySelectorAll('text')]"
        ".filter((text) => text.getBoundingClientRect().right > drawing.getBoundingClientRect().right + 1)"
        ".map((text) => text.textContent))"
    )
    assert outside == [] and page.complaints() == []
