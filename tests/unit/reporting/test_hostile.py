"""Two hundred hostile strings, a few at a time in every text of a report: the page has the elements of one without."""

from __future__ import annotations

import pytest
from test_html import Page

from paceline.reporting.html import page as page_module
from paceline.reporting.html import report_page
from paceline.reporting.model import report_model
from samples import report_samples as samples
from samples.hostile_reports import everything, hostile_model, of_records
from samples.hostile_strings import HOSTILE, filled

TOGETHER = 4


def test_the_strings_are_in_every_field() -> None:
    """What the tests in the browser rest on, too: that the walk leaves nothing out."""
    results, _ = everything()
    met: list[str] = []
    filled(results, lambda own: met.append(own) or own)
    wanted = {
        results.study.title,
        results.study.question,
        "a",
        "gpu",
        "It failed.\nIts log: x",
        "Seen.\nBecause.",
        "64 ranks",
    }
    assert wanted <= set(met) and len(met) > 500
    assert report_page.render(of_records("HOSTILE-HERE")).count("HOSTILE-HERE") > 500


def test_strings_are_text_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few at a time: where many share a field, one could hide what another does."""
    monkeypatch.setattr(page_module, "_plotly", lambda: "0")
    model = report_model(samples.oversubscribed())
    clean = Page(report_page.render(hostile_model(model, "plain")))
    shape, scripts = set(_shape(clean)), [script for kind, script in clean.scripts if kind is None]
    for first in range(0, len(HOSTILE), TOGETHER):
        text = " ".join(HOSTILE[first : first + TOGETHER])
        raw = report_page.render(hostile_model(model, text))
        raw.encode()  # lone surrogates would end here
        shown = Page(raw)
        # Sorts of elements: how many there are depends on which headings the glossary still knows.
        assert set(_shape(shown)) <= shape, text
        assert [script for kind, script in shown.scripts if kind is None] == scripts
        assert "\x00" not in raw and "\x1b" not in raw


def _shape(page: Page) -> list[tuple[str, ...]]:
    return [(tag, *sorted(attributes)) for tag, attributes in page.elements]
