"""A run that was stopped from outside and can go on: worth another attempt, unlike one that failed by itself."""

from __future__ import annotations

from paceline.errors import RunError


class Interrupted(RunError):
    """The run gave way: pre-empted, requeued, or told to leave."""

    def __init__(self, what: str, *, step: int | None, right: str = "", next: str = "") -> None:
        super().__init__(what, right=right, next=next)
        self.step = step
        """Of the checkpoint that the next attempt resumes from; None where there is none."""
