"""A running study: what one poll of its folder reads, and the figures that are derived.

    StudyLook ─▶ RunLook ─▶ RankLook      as read: studies/folder/watching.py, studies/folder/watched_run.py
    Watched   ─▶ RunNow  ─▶ RankNow       as shown: `paceline watch` and its --json; analyze/study/live_study_figures.py
             └─▶ PointNow

A figure that is not known yet is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.records.rank_pulse import Pulse
from paceline.records.rank_trace import RankTrace
from paceline.records.results import Interval, Spread
from paceline.records.run import Epoch, RunResult

RUNNING, SILENT, FINISHED, STOPPED, FAILED, KILLED = "running", "silent", "finished", "stopped", "failed", "killed"
"""States of a study. `silent`: its lock is taken, but without a recent heartbeat."""
OVER = (FINISHED, STOPPED, FAILED, KILLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLook:
    """The files of one rank."""

    rank: int
    pulse: Pulse | None
    """None before its first beat."""
    ended: str | None = None
    """How its process ended, in words; None if it runs or if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLook:
    """The files of the current run, or of the last one."""

    key: str
    """Identifies the attempt."""
    label: str
    point_id: str = ""
    number: int = 0
    """0 if unknown."""
    attempt: int = 1
    batch_per_rank: float | None = None
    """Samples of a rank in a step; None for a script."""
    launched_at_ns: int | None = None
    """On the clock of the spans."""
    elapsed_s: float | None = None
    phase: str = ""
    """queued, or empty if the ranks report their phase."""
    ranks: tuple[RankLook, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    spans: tuple[RankTrace, ...] = ()
    """Flushed since the last poll."""
    caught_up: bool = True
    """Whether all flushed spans have been read."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointLook:
    """A point with its finished runs."""

    point_id: str
    label: str
    of: int
    """Runs of the point in the study."""
    results: tuple[RunResult, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLook:
    """The files of a study folder, or of the folder of a single run."""

    folder: str
    name: str
    state: str
    told: str
    """The state in a sentence."""
    points: tuple[PointLook, ...] = ()
    """Empty for a single run."""
    run: RunLook | None = None
    expected_s: float | None = None
    """Estimated total seconds of that run; None if unknown."""
    pending_s: float = 0.0
    """Estimated seconds of the runs after it, without those of `pending_unknown`."""
    pending_unknown: int = 0
    """Number of runs after it without an estimate."""
    unread: int = 0
    """Finished runs that are not read yet: thousands are read over several polls."""
    report: str | None = None
    """Path of the report; None if it is missing or out of date."""
    next: str = ""
    """The command to continue with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankNow:
    """One rank of the current run."""

    rank: int
    phase: str | None
    step: int | None
    """Optimizer steps taken."""
    steps_per_s: float | None
    samples_per_s: float | None
    """Its share of the batch times its steps per second."""
    still_s: float | None
    """Seconds since its last progress, as observed."""
    ended: str | None
    ledger_s: dict[str, float | None] | None
    """Seconds by kind from the launch to `ledger_step`; None before two steps of every rank were flushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNow:
    """The current run."""

    point: str
    label: str
    run: int
    attempt: int
    phase: str
    step: int | None
    """Of the slowest rank."""
    total_steps: int | None
    """None if unknown, as of a script."""
    elapsed_s: float | None
    samples_per_s: float | None
    """All ranks together."""
    ranks: tuple[RankNow, ...]
    epochs: tuple[Epoch, ...]
    ledger_s: dict[str, float | None] | None
    """Mean over ranks."""
    ledger_step: int | None
    """Steps that the ledgers cover: spans are flushed every ten seconds."""
    ledger_reaches_s: float | None
    """End of the ledgers in seconds since the launch: the sum of each ledger."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointNow:
    """A point and the medians of its finished runs."""

    point: str
    label: str
    done: int
    of: int
    state: str
    """done, running, failed, or waiting."""
    epoch_s: Interval | None
    samples_per_s: Interval | None
    test_accuracy: Spread | None
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The view of `paceline watch`."""

    folder: str
    name: str
    state: str
    """running, silent, finished, stopped, failed or killed."""
    told: str
    looked_at: str
    """ISO 8601."""
    done: int
    of: int
    """Finished runs, and all runs of the study; both 0 for the folder of a single run."""
    unread: int
    left_s: float | None
    points: tuple[PointNow, ...] = field(default_factory=tuple)
    run: RunNow | None = None
    report: str | None = None
    next: str = ""
