"""The last heartbeat of a rank: its position in the run."""

from __future__ import annotations

from dataclasses import dataclass

PHASES = ("startup", "compute", "communicate", "checkpoint", "done")


@dataclass(frozen=True, slots=True)
class Pulse:
    """One heartbeat of a rank; `beats` grows with every one."""

    beats: int
    step: int
    total_steps: int
    collectives: int
    phase: str
