"""What a page with hostile names must not have done, and must not have: for every page that shows names from files."""

from __future__ import annotations

from devtools import Browser

from samples.hostile_strings import HOSTILE

_PER_PAGE = 40
PAGES = [" ".join(HOSTILE[first : first + _PER_PAGE]) for first in range(0, len(HOSTILE), _PER_PAGE)]
"""All hostile strings, some forty of them in a text."""
_ELEMENTS = "[...document.querySelectorAll('*')].filter((place) => !place.closest('svg, [data-figure]'))"
_SHAPE = f"{_ELEMENTS}.map((place) => [place.tagName, ...place.getAttributeNames().sort()].join(' '))"
# Wherever they are, in plots too: elements that load or run something, handlers, links that lead out of the page.
_UNWANTED = """[...document.querySelectorAll('*')].filter((place) =>
  'IFRAME OBJECT EMBED IMG IMAGE FORM BASE VIDEO FOREIGNOBJECT A'.split(' ').includes(place.tagName.toUpperCase())
    && !(place.getAttribute('href') ?? '').startsWith('#')
  || place.getAttributeNames().some((name) => name.startsWith('on'))).map((place) => place.outerHTML.slice(0, 200))"""


def sorts(page: Browser) -> set[str]:
    """Sorts of elements outside of plots: how many there are may depend on what names have in common."""
    return set(page.value(_SHAPE))


def harmless(page: Browser) -> None:
    """Nothing of a name has run, was asked for, or became an element that could."""
    assert page.value("document.documentElement.dataset.owned ?? window.owned ?? ''") == ""
    assert page.value("document.documentElement.dataset.errors ?? ''") == ""
    assert page.value(_UNWANTED) == []
    assert page.complaints() == []
