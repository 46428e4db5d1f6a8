"""Measured: the input of findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.records.finding import Note
from paceline.records.learning import LearningSummary
from paceline.records.results import PointResult
from paceline.records.run import Epoch, Machine, RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The results of a study, as findings see them."""

    rows: tuple[PointResult, ...]
    runs: Mapping[str, tuple[RunResult, ...]]
    """Finished runs by point."""
    timed: Mapping[tuple[str, int], tuple[Epoch, ...]]
    """Timed epochs by point and number of the run."""
    baseline: str | None
    machines: tuple[Machine, ...]
    """Of the runs, in any order."""
    commits: tuple[str, ...]
    expected_runs: int
    gaps: Mapping[str, Note]
    """point_id -> why its ledger is incomplete."""
    lesson: LearningSummary = LearningSummary()
    one_at_a_time: bool = False
    """Whether the study varies one factor at a time."""

    @property
    def all_runs(self) -> tuple[RunResult, ...]:
        return tuple(run for own in self.runs.values() for run in own)
