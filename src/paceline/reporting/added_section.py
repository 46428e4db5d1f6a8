"""A section that another package adds to the report: tables, sentences and answers, with their HTML.

The report has a place for it in every output format; the other package decides its content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.facts import Fact
from paceline.reporting.wording.next_commands import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """One open question and its answer."""

    name: str
    question: str
    answered: bool
    sentences: tuple[str, ...]
    """The first one is the answer; the others qualify it."""
    command: str

    @property
    def verdict(self) -> str:
        """All sentences of the answer."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedSection:
    """A section, before it is rendered; empty by default."""

    about: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    disagreements: tuple[str, ...] = ()
    answers: tuple[ShownAnswer, ...] = ()
    definitions: tuple[tuple[Fact, ...], ...] = ()
    """For each table what its columns mean."""
    opening: tuple[str | None, ...] = ()
    """Sentences that the verdict consists of, None in place of what the times say; empty for the usual verdict."""
    figures: tuple[str, ...] = ()
    """Figures that these sentences rest on, as they are written there."""
    next_step: Step | None = None
    """What to run next; None if the section does not know."""
    html: Mapping[str, Callable[[AddedSection], str]] = field(default_factory=dict)
    """Anchor of a part of the page -> function that makes its HTML."""
    as_json: dict[str, Any] | None = None
    """Its part of `--json`."""

    def html_of(self, anchor: str) -> str:
        """The HTML of a part; empty where the section has no such part."""
        return self.html[anchor](self) if anchor in self.html else ""
