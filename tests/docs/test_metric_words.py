"""Every metric and every term of a report has its page, and the page explains it."""

from __future__ import annotations

import re

import pytest
from doc_pages import ROOT

from paceline.metrics import metrics

DOCS = ROOT / "docs"
PAGES = sorted({entry.page for entry in metrics()})


def test_every_name_is_in_the_registry_once() -> None:
    names = [entry.name for entry in metrics()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_explains_the_terms_that_lead_to_it(page: str) -> None:
    """The head of a page under metrics/ is made from the registry, and so is a part of the glossary."""
    text = (DOCS / page.partition("#")[0]).read_text(encoding="utf-8")
    if "<!-- metrics -->" in text or "<!-- made: metric_glossary -->" in text:
        return
    shown = re.sub(r"\s+", " ", text).lower()
    assert [entry.name for entry in metrics() if entry.page == page and entry.name.lower() not in shown] == []


def test_every_metric_has_a_page_of_the_documentation() -> None:
    for entry in metrics():
        assert entry.definition.endswith(".") and (DOCS / entry.page.partition("#")[0]).is_file(), entry.name
        if entry.page.startswith("metrics/"):
            assert "<!-- metrics -->" in (DOCS / entry.page).read_text(encoding="utf-8"), entry.page
