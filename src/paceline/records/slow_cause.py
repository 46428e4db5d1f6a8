"""Causes of longer steps: which rank, which kind of the ledger, how much time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCause:
    """One cause of longer timed steps of a run."""

    rank: int | None
    """The slow rank; None if all ranks are slow."""
    kind: str
    """A kind of the ledger; never comm-wait, which is the effect on the other ranks."""
    lost_s: float
    """Upper bound of the seconds that the timed steps would be shorter without it."""
    why: str
    """One sentence with the figures behind it."""
