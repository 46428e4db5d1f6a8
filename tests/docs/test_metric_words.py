"""Every term that a report explains beside its figures has a page: the table in the index of the metrics says which."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from doc_pages import ROOT, names, section, table

from paceline.report import glossary

METRICS = ROOT / "docs" / "metrics"
TERMS = {*glossary._TEXTS, *glossary._FORMULAS}


def explained() -> dict[str, list[str]]:
    """Page, from the folder of the metrics -> the terms that the index sends there."""
    rows = table(section("metrics/index.md", "Every word of a report"))
    return {link.rpartition("](")[2].rstrip(")").partition("#")[0]: names(terms) for link, terms in rows}


PAGES = explained()


def without_page(terms: Iterable[str]) -> set[str]:
    return set(terms) - {term for own in PAGES.values() for term in own}


def test_every_term_has_a_page() -> None:
    missing = without_page(TERMS)
    assert not missing, f"explain {sorted(missing)} on a page, and name it in docs/metrics/index.md"
    assert without_page({"speed-up", "a term of tomorrow"}) == {"a term of tomorrow"}


def test_no_term_is_named_twice_or_is_gone() -> None:
    told = [term for own in PAGES.values() for term in own]
    assert sorted(told) == sorted(set(told) & TERMS)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_terms_that_lead_to_it(page: str) -> None:
    text = re.sub(r"\s+", " ", (METRICS / page).read_text(encoding="utf-8")).lower()
    assert [term for term in PAGES[page] if term.lower() not in text] == []
