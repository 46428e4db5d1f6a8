"""A study while it runs: what one look at its folder finds, and what is made of it.

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
"""What becomes of a study. `silent`: somebody holds its lock, but gives no sign of life."""
OVER = (FINISHED, STOPPED, FAILED, KILLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLook:
    """One rank, as its files are now."""

    rank: int
    pulse: Pulse | None
    """None before its first beat."""
    ended: str | None = None
    """How its process ended, in words, where somebody has said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLook:
    """The run that is on, or was the last that was."""

    key: str
    """Of this attempt at this run: another is another run."""
    label: str
    point_id: str = ""
    number: int = 0
    """0 if nobody has numbered it."""
    attempt: int = 1
    batch_per_rank: float | None = None
    """Samples of a rank in a step; None for a script."""
    launched_at_ns: int | None = None
    """On the clock of the ranks' spans."""
    elapsed_s: float | None = None
    phase: str = ""
    """What it does, where no rank says it: queued, or over."""
    ranks: tuple[RankLook, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    spans: tuple[RankTrace, ...] = ()
    """That were flushed since the last look."""
    caught_up: bool = True
    """Whether these are all there are."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointLook:
    """A point, with what is finished of it."""

    point_id: str
    label: str
    of: int
    """Runs that the study asks for."""
    results: tuple[RunResult, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLook:
    """A study folder, or the folder of a single run, at one moment."""

    folder: str
    name: str
    state: str
    told: str
    """The same in a sentence."""
    points: tuple[PointLook, ...] = ()
    """Empty for a single run."""
    run: RunLook | None = None
    expected_s: float | None = None
    """How long that run takes in all, as others took; None before anything is known."""
    pending_s: float = 0.0
    """The same of the runs after it, as far as known."""
    pending_unknown: int = 0
    """How many of these nothing is known of."""
    unread: int = 0
    """Finished runs that were not looked into yet: thousands are read over several looks."""
    report: str | None = None
    """Path of the report, where it is of what is finished."""
    next: str = ""
    """The command that goes on from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankNow:
    """One rank of the run that is on."""

    rank: int
    phase: str | None
    step: int | None
    """Optimizer steps taken."""
    steps_per_s: float | None
    samples_per_s: float | None
    """Its share of the batch times its steps per second."""
    still_s: float | None
    """For how long it has given no sign of life, as far as it was watched."""
    ended: str | None
    ledger_s: dict[str, float | None] | None
    """Seconds by kind from the launch to `ledger_step`; None before two steps of every rank were flushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNow:
    """The run that is on."""

    point: str
    label: str
    run: int
    attempt: int
    phase: str
    step: int | None
    """Of the rank that has come least far."""
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
    """Steps that the ledgers reach to: spans are flushed every ten seconds."""
    ledger_reaches_s: float | None
    """The same in seconds since the launch: what each ledger sums to."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointNow:
    """A point and the medians of what is finished of it."""

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
    """All that `paceline watch` shows, at one moment."""

    folder: str
    name: str
    state: str
    """running, silent, finished, stopped, failed or killed."""
    told: str
    looked_at: str
    """ISO 8601."""
    done: int
    of: int
    """Runs that are finished, and that were asked for; both 0 for the folder of a single run."""
    unread: int
    left_s: float | None
    points: tuple[PointNow, ...] = field(default_factory=tuple)
    run: RunNow | None = None
    report: str | None = None
    next: str = ""
