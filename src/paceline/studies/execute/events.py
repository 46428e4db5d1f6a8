"""Progress events of a study: records that the caller prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.records.results import NotRun
from paceline.records.run import RunResult
from paceline.records.study import Point, Run, Study

if TYPE_CHECKING:
    from paceline.data.store import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLoaded:
    """The study is read and checked; nothing is written or started yet."""

    study: Study
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReady:
    """The data set is in the cache; `prepared.note` mentions a substitute."""

    prepared: Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyStarted:
    """The folder is locked and written; the runs follow."""

    study: Study
    folder: Path
    points: tuple[Point, ...]
    placements: tuple[str, ...]
    """How the ranks of each point are placed, in words."""
    total: int
    """Runs of the study."""
    finished: int
    """Runs that an earlier execution finished."""
    not_run: tuple[NotRun, ...] = ()
    """Points that are not run, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The ranks of a run are being started."""

    run: Run
    index: int
    """From 1 on, in the order of execution."""
    total: int
    attempt: int
    classes: int | None = None
    """Of its data set, for the chance accuracy; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """Position of the slowest rank of a run."""

    run: Run
    index: int
    total: int
    phase: str
    step: int
    total_steps: int
    """0 until known."""
    fraction: float
    """Of this run, 0 to 1."""
    left_s: float | None
    """Estimated seconds until the study ends; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A run's result is on the disk."""

    run: Run
    result: RunResult
    index: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSkipped:
    """A run that is not executed: it is finished already, or its point has failed."""

    run: Run
    index: int
    total: int
    result: RunResult | None
    """The finished result; None if the point has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    """A run that failed; other points are still run."""

    run: Run
    index: int
    total: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyStopped:
    """The study ends before this run, which is not executed: its budget does not allow for it."""

    run: Run
    index: int
    total: int
    reason: str
    """Whole sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A sentence that the user should see."""

    text: str


Event = (
    StudyLoaded
    | DataReady
    | StudyStarted
    | RunStarted
    | RunProgress
    | RunFinished
    | RunSkipped
    | RunFailed
    | StudyStopped
    | Note
)
