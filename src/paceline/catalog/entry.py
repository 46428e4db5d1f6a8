"""What every entry of the catalog has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A name that a study may use: the path of its object, and a description."""

    at: str = ""
    """`module:attribute`, imported when it is needed; empty for a name that is not in the catalog."""
    text: str = ""
    """One line for lists and help."""
