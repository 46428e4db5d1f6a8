"""Plots as HTML: the place where a script draws each, its keys, and what stands around it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from paceline.report.about import about_html
from paceline.report.canvas import Figure
from paceline.report.facts import Fact
from paceline.report.legend import legend_html

_HOW = (
    "Point at it for figures; drag to zoom, double-click for the whole. With the keyboard: arrows for figures, + and − "
    "to zoom, Home for the whole. Keys below it hide and show what they stand for."
)


def plots_html(drawn: Iterable[Figure | None], definitions: Iterable[Fact] = ()) -> str:
    """Plots side by side; nothing where there are none."""
    present = [figure for figure in drawn if figure is not None]
    if not present:
        return ""
    single = " single" if len(present) == 1 else ""
    own = tuple(definitions)
    return f'<div class="plots{single}">{"".join(figure_html(figure, own) for figure in present)}</div>'


def figure_html(figure: Figure, definitions: Iterable[Fact] = (), *, kind: str = "", level: int = 4) -> str:
    """One plot in a card, under a heading of this level."""
    name = escape(figure.name)
    return (
        f'<figure class="card plot {kind}"><h{level}>{escape(figure.title)}</h{level}>'
        f"{about_html(figure.title, figure.terms, definitions, figure=figure.name, more=_HOW)}"
        f'<div data-figure="{name}" tabindex="0" role="application" aria-roledescription="plot" '
        f'aria-label="{escape(f"{figure.title}. {figure.caption}")}" '
        f'style="--height:{figure.layout["height"]}px"></div>{legend_html(figure.keys, figure.name)}'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )
