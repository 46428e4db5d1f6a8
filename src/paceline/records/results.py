"""What a study came to: the records that analysis hands to the report, the terminal and `--json`."""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.records.finding import Finding
from paceline.records.run import Epoch, Machine
from paceline.records.study import Point, Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A median over repeats and the interval around it."""

    median: float
    low: float
    high: float
    n: int
    """Number of repeats behind it."""
    coverage: float | None
    """Confidence of the interval for the median; None where it is only the range (n < 5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A mean over repeats and their standard deviation."""

    mean: float
    std: float | None
    """None where there is only one."""
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The epochs of one run."""

    run: int
    seed: int
    epochs: tuple[Epoch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """One row of the results table. A figure that was not measured is None."""

    point_id: str
    point: Point
    runs: int
    """Finished runs behind the figures."""
    epoch_s: Interval | None
    total_s: Interval | None
    samples_per_s: Interval | None
    speedup: Interval | None
    """Throughput against the baseline point's: for strong scaling the ratio of epoch times."""
    efficiency: Interval | None
    """Speed-up divided by the ratio of ranks to the baseline's."""
    load_s: Interval | None
    test_accuracy: Spread | None
    test_loss: Spread | None
    ledger_s: dict[str, float | None] | None
    """Seconds by kind, mean over ranks, of the median run: sums to that run's `wall_s`."""
    rank_ledgers_s: tuple[dict[str, float | None], ...]
    """The same for each rank of the median run."""
    median_run: int | None
    curves: tuple[Curve, ...]
    parameters: int | None
    oversubscribed: bool
    lost_shares: dict[str, float] = field(default_factory=dict)
    """Fraction of the loop's time that each kind lost against the baseline; empty where not known."""
    failure: str | None = None
    """Why runs are missing, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResults:
    """A study, its points in order of ranks, and what has to be known about them."""

    study: Study
    folder: str
    baseline: str | None
    """The point that speed-ups are measured against: the fewest ranks."""
    points: tuple[PointResult, ...]
    findings: tuple[Finding, ...]
    machine: Machine | None
    expected_runs: int
    """Runs that the study asks for: fewer finished ones make the results partial."""
    commit: str | None
