"""Tables and text of the model as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from paceline.report.about import about_html
from paceline.report.cells import Cell
from paceline.report.facts import Fact
from paceline.report.tables import Table


def text_html(text: str) -> str:
    """Text of the model; a sign stays on the line of its number."""
    return escape(text).replace(" %", "\u00a0%").replace("± ", "±\u00a0").replace(" ×", "\u00a0×")


def table_html(table: Table, *, compact: bool = False, definitions: Iterable[Fact] = ()) -> str:
    """A table with its footnotes, in a box that scrolls sideways where it is too wide; nothing where it has no rows.

    What its columns mean is taken from `definitions`, and from the glossary where they say nothing of one.
    """
    if not table.rows:
        return ""
    named = {index for index, column in enumerate(table.columns) if column in table.words}
    head = "".join(f'<th scope="col"{_word(i in named)}>{escape(c)}</th>' for i, c in enumerate(table.columns))
    rows = "".join(_row(row, named) for row in table.rows)
    notes = "".join(f'<p class="footnote">{text_html(note)}</p>' for note in table.footnotes)
    kind = ' class="compact"' if compact else ""
    return boxed(
        table.caption,
        f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>",
        about=about_html(table.caption, table.terms, definitions),
        notes=notes,
    )


def boxed(caption: str, table: str, *, about: str, notes: str = "") -> str:
    """A table in a card: its caption, what it means, and a box in which it can be scrolled sideways."""
    return (
        f'<figure class="card table"><figcaption>{escape(caption)}</figcaption>{about}'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">{table}</div>{notes}</figure>\n'
    )


def _word(named: bool) -> str:
    return ' class="word"' if named else ""


def _row(row: tuple[Cell, ...], named: set[int]) -> str:
    first, *rest = row
    cells = "".join(f"<td{_word(i in named)}>{_cell(cell)}</td>" for i, cell in enumerate(rest, start=1))
    return f'<tr><th scope="row">{_cell(first)}</th>{cells}</tr>'


def _cell(cell: Cell) -> str:
    return text_html(cell.figure) + (f" <small>{text_html(cell.beside)}</small>" if cell.beside else "")
