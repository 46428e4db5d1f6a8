"""Findings and notes: facts about a measurement as a code and values. The report makes their sentences.

analyze    decides what to report:       code, severity, values
reporting  has the sentences:           code, values -> sentences
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from paceline import catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One fact with its own sentence: a code and the values in the sentence."""

    code: str
    """Stable identifier in kebab case, e.g. `no-spans`."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the sentence mentions, by name; durations in seconds, shares as fractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a reader of the results has to know."""

    code: str
    """Stable identifier in kebab case, e.g. `more-ranks-than-cores`; `name` in JSON."""
    severity: str
    """info, warning or error."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What its sentences mention, by name; durations in seconds, shares as fractions."""
    points: tuple[str, ...] = ()
    """Identifiers of the points it concerns; empty for the whole study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingWords:
    """The sentences of a finding."""

    summary: str
    """One sentence with the figures in it."""
    cause: str = ""
    """Why it is so, or why it matters."""
    remedy: str = ""
    """What to do about it."""


class FindingRule(Protocol):
    """A finding of another package: one object that detects it and has its sentences."""

    def find(self, measured: Any, /) -> Finding | None:
        """The finding, or None if it does not apply. `measured` is `analyze.study.measured.Measured`."""
        ...

    def words(self, finding: Finding, /) -> FindingWords:
        """Its sentences, from its values only."""
        ...


def outside_findings() -> dict[str, FindingRule]:
    """The findings that installed packages register, by code."""
    return {code: catalog.load("finding", code) for code in catalog.names("finding")}
