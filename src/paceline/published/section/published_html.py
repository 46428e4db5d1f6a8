"""A published study beside ours as HTML: tables of two lines a cell, cells that disagree, open questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from paceline.report.about import about_html
from paceline.report.added_section import AddedSection, ShownAnswer
from paceline.report.facts import Fact
from paceline.report.table_html import boxed, text_html
from paceline.report.tables import NONE, Cell, Table

HERE = "here"
_OURS = re.compile(r"(\S+(?: \+ \d+)?)(?: (\[.+\]|± \S+))?(?: ([a-z]+))?")
"""A figure, perhaps with what was added to it; what is around it; letters of its notes."""


def tables_html(shown: AddedSection) -> str:
    """The tables with what they were made with, and what the printed cells say against themselves."""
    if not shown.tables:
        return ""
    about = "".join(f"<dt>{escape(fact.label)}</dt><dd>{text_html(fact.text)}</dd>" for fact in shown.about)
    pairs = zip(shown.tables, shown.definitions, strict=True)
    tables = "".join(_beside_html(table, definitions) for table, definitions in pairs)
    return f'{tables}<dl class="facts card">{about}</dl>\n'


def _beside_html(table: Table, definitions: Sequence[Fact]) -> str:
    """A table of two lines a cell: the printed figure, and ours below it."""
    named = {index for index, column in enumerate(table.columns) if column in table.words}
    word = [' class="word"' if index in named else "" for index in range(len(table.columns))]
    head = "".join(f'<th scope="col"{word[i]}>{escape(column)}</th>' for i, column in enumerate(table.columns))
    rows = "".join(f"<tr>{_row_html(row, table.keys, word)}</tr>" for row in table.rows)
    notes = "".join(f'<p class="footnote">{text_html(note)}</p>' for note in table.footnotes)
    return boxed(
        f"{table.caption}. The upper figure is published, the lower one is ours.",
        f'<table class="beside"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>',
        about=about_html(table.caption, table.columns, definitions),
        notes=notes,
    )


def _row_html(row: Sequence[Cell], keys: int, word: Sequence[str]) -> str:
    names = "".join(
        f'<th scope="row"{word[i]}>{text_html(cell.figure)}{_small(cell.beside)}</th>'
        for i, cell in enumerate(row[:keys])
    )
    return names + "".join(f"<td>{_both(cell)}</td>" for cell in row[keys:])


def _both(cell: Cell) -> str:
    ours = cell.beside.removeprefix(f"{HERE} ")
    if ours.startswith((NONE, "not run ")):
        ours = _small(ours)
    elif found := _OURS.fullmatch(ours):
        figure, around, letters = found.groups("")
        note = f" <sup>{letters}</sup>" if letters else ""
        ours = f"<b>{text_html(figure)}</b>{_small(around)}{note}"
    else:
        ours = f"<b>{text_html(ours)}</b>"
    return f'<span class="printed">{text_html(cell.figure)}</span>{ours}'


def _small(text: str) -> str:
    return f" <small>{text_html(text)}</small>" if text else ""


def disagreements_html(shown: AddedSection) -> str:
    """The printed cells that do not agree."""
    items = "".join(f"<p>{text_html(text)}</p>" for text in shown.disagreements)
    return f'<div class="steps card">{items}</div>' if items else ""


def answers_html(shown: AddedSection) -> str:
    """The open questions of the report, each with its verdict."""
    rows = "".join(
        f"<dt><code>{escape(answer.name)}</code></dt><dd>{text_html(answer.question)}<br>{_verdict_html(answer)}</dd>"
        for answer in shown.answers
    )
    return f'<dl class="facts card">{rows}</dl>' if rows else ""


def _verdict_html(answer: ShownAnswer) -> str:
    first, *others = answer.sentences
    rest = "".join(f" {text_html(sentence)}" for sentence in others)
    command = f"<br><code>{escape(answer.command)}</code>" if answer.command else ""
    return f"<strong>{text_html(first)}</strong>{rest}{command}"
