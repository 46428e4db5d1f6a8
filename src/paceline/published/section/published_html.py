"""A published study beside ours as HTML: tables of two lines a cell, cells that disagree, open questions."""

from __future__ import annotations

import re

from paceline.reporting.added_section import AddedSection
from paceline.reporting.cells import NONE, Cell
from paceline.reporting.html.markup import fragment

HERE = "here"
_HOME = "paceline.published"
_OURS = re.compile(r"(\S+(?: \+ \d+)?)(?: (\[.+\]|± \S+))?(?: ([a-z]+))?")
"""A figure, perhaps with what was added to it; what is around it; letters of its notes."""


def tables_html(shown: AddedSection) -> str:
    """The tables with what they were made with, and what the printed cells say against themselves."""
    return fragment("published", "tables", shown, _ours, package=_HOME)


def disagreements_html(shown: AddedSection) -> str:
    """The printed cells that do not agree."""
    return fragment("published", "disagreements", shown, package=_HOME)


def answers_html(shown: AddedSection) -> str:
    """The open questions of the report, each with its verdict."""
    return fragment("published", "answers", shown, package=_HOME)


def _ours(cell: Cell) -> tuple[str, ...]:
    """Our figure, what is around it, and letters of its notes."""
    ours = cell.beside.removeprefix(f"{HERE} ")
    if ours.startswith((NONE, "not run ")):
        return "", ours, ""
    found = _OURS.fullmatch(ours)
    return found.groups("") if found else (ours, "", "")
