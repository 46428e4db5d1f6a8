"""Measured: what findings are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.records.finding import Note
from paceline.records.learning import LearningSummary
from paceline.records.results import PointResult
from paceline.records.run import Epoch, Machine, RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All that findings may look at."""

    rows: tuple[PointResult, ...]
    runs: Mapping[str, tuple[RunResult, ...]]
    """Finished runs by point."""
    timed: Mapping[tuple[str, int], tuple[Epoch, ...]]
    """The epochs that times come from, by point and number of the run."""
    baseline: str | None
    machines: tuple[Machine, ...]
    """Of the single runs, in any order."""
    commits: tuple[str, ...]
    expected_runs: int
    gaps: Mapping[str, Note]
    """What is missing from the ledger of a point."""
    lesson: LearningSummary = LearningSummary()
    one_at_a_time: bool = False
    """Whether every point has one setting of its own: what that does is in a table then."""

    @property
    def all_runs(self) -> tuple[RunResult, ...]:
        return tuple(run for own in self.runs.values() for run in own)
