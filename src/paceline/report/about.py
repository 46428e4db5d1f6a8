"""What stands one click away from every plot and table: what its figures mean, and a button for its data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from paceline.report.facts import Fact
from paceline.report.glossary import Meaning, meanings


def about_html(
    title: str, headings: Iterable[str], definitions: Iterable[Fact] = (), *, figure: str = "", more: str = ""
) -> str:
    """A fold with the meanings of `headings`, and the data of the table around it, or of the plot named `figure`."""
    found = "".join(_meaning(meaning) for meaning in meanings(headings, definitions))
    name, called = slug(figure or title), escape(title)
    saves = f'<button type="button" data-csv="{name}" data-of="{escape(figure)}">Save the data as CSV</button>'
    if figure:
        saves += f'<button type="button" data-save="{escape(figure)}">Save the plot as SVG</button>'
    return (
        f'<details class="about"><summary aria-label="What it means, and its data: {called}">What it means</summary>'
        f'<div class="meanings">{f"<dl>{found}</dl>" if found else ""}'
        f"{f'<p>{escape(more)}</p>' if more else ''}"
        f'<p class="saves">{saves}</p></div></details>'
    )


def _meaning(meaning: Meaning) -> str:
    formula = f' <span class="formula">= {escape(meaning.formula)}</span>' if meaning.formula else ""
    return f"<dt>{escape(meaning.term)}</dt><dd>{escape(meaning.text)}{formula}</dd>"


def slug(text: str, *, otherwise: str = "table") -> str:
    """A name for a file, of whatever a text contains."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join(words)[:48].strip("-") or otherwise
