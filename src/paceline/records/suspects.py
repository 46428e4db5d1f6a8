"""Causes of longer steps: which rank, which kind of the ledger, how much time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCause:
    """One cause of lost time in the timed steps of a run."""

    rank: int | None
    """Whose time it is; None if it is that of all ranks."""
    kind: str
    """A kind of the ledger; never comm-wait, which is what a cause looks like from the other ranks."""
    lost_s: float
    """Seconds by which the timed steps would be shorter without it, at most."""
    why: str
    """One sentence with the figures that it rests on."""
