"""Finding: something about the measurement that its reader has to know, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One observation, why it matters, and what to do."""

    name: str
    """Stable identifier in kebab case, e.g. `more-ranks-than-cores`."""
    severity: str
    """info, warning or error."""
    summary: str
    """One sentence with the figures in it."""
    cause: str = ""
    remedy: str = ""
    points: tuple[str, ...] = ()
    """Identifiers of the points it concerns; empty for the whole study."""
