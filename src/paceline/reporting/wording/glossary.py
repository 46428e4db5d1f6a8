"""What the columns of tables and the axes of plots mean, with their formulas: one click away from every figure.

A study's own definitions come first: they say what holds for its kind of scaling and its target. All others, and every
formula, are those of the registry of metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paceline.metrics import metrics_by_heading
from paceline.reporting.wording.facts import Fact


@dataclass(frozen=True, slots=True)
class Meaning:
    """A term, what it means, and its formula where it has one."""

    term: str
    text: str
    formula: str = ""


def meanings(headings: Iterable[str], definitions: Iterable[Fact] = ()) -> tuple[Meaning, ...]:
    """What is known of these headings, in their order and each once; names of factors and points mean themselves."""
    own, known = {fact.label: fact.text for fact in definitions}, metrics_by_heading()
    found: dict[str, Meaning] = {}
    for heading in headings:
        entry = known.get(heading)
        term = entry.name if entry and heading not in own else heading
        text = own.get(term) or (entry.definition if entry else "")
        if text:
            found.setdefault(term, Meaning(term, text, entry.formula if entry else ""))
    return tuple(found.values())
