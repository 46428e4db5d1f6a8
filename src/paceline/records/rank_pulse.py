"""One reading of a rank's pulse: its position in the run, and that it makes progress."""

from __future__ import annotations

from dataclasses import dataclass

PHASES = ("startup", "compute", "communicate", "checkpoint", "done")


@dataclass(frozen=True, slots=True)
class Pulse:
    """One reading of a rank's pulse."""

    beats: int
    step: int
    total_steps: int
    collectives: int
    phase: str
