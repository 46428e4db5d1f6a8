"""Which controls of a page there are for a keyboard, and which it comes to."""

from __future__ import annotations

from devtools import Browser

_FOCUSABLE = "a[href], button, summary, select, [tabindex='0']"
_FOCUSED = """(() => {
  const here = document.activeElement, box = here.getBoundingClientRect(), style = getComputedStyle(here);
  const name = here.getAttribute("aria-label") || here.textContent.trim() || here.labels?.[0]?.textContent;
  return { name, outline: style.outlineStyle, wide: box.width, high: box.height,
    number: [...document.querySelectorAll(FOCUSABLE)].indexOf(here) };
})()""".replace("FOCUSABLE", repr(_FOCUSABLE))


def by_keyboard(page: Browser) -> tuple[list[int], list[int]]:
    """Every control that can be seen, in the order of the page; and those that Tab comes to, each named and marked."""
    wanted = page.value(
        f"[...document.querySelectorAll({_FOCUSABLE!r})].map((place, n) => place.checkVisibility() ? n : -1)"
        ".filter((n) => n >= 0)"
    )
    met = []
    for _ in wanted:
        page.key("Tab")
        focused = page.value(_FOCUSED)
        assert focused["name"] and focused["outline"] != "none" and focused["wide"] and focused["high"], focused
        met.append(focused["number"])
    return wanted, met


def focused_number(page: Browser) -> int:
    """The control that has the focus."""
    return page.value(_FOCUSED)["number"]
