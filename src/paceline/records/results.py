"""Results of a study: the records that analysis passes to the report, the terminal and `--json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from paceline.records.finding import Finding
from paceline.records.laws import SeriesLaws
from paceline.records.learning import Learning, LearningSummary
from paceline.records.run import CachedFeatures, Epoch, Machine
from paceline.records.study import Point, Study
from paceline.records.trace_summary import Efficiencies, TraceSummary

if TYPE_CHECKING:
    from paceline.records.counters import CpuTimes
    from paceline.records.run_picture import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A median over repeats and the interval around it."""

    median: float
    low: float
    high: float
    n: int
    """Number of repeats behind it."""
    coverage: float | None
    """Confidence of the interval for the median; None if it is only the range (n < 5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A mean over repeats and their standard deviation."""

    mean: float
    std: float | None
    """None if there is only one."""
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The epochs of one run."""

    run: int
    seed: int
    epochs: tuple[Epoch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a phase added to the test accuracy, as a fraction, within each repeat."""

    mean: float
    low: float | None
    high: float | None
    """Interval of the mean, 95 % over all points of the study; None with fewer than five repeats."""
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseResult:
    """One phase of a point's training."""

    name: str
    """train or finetune."""
    epoch_s: Interval | None
    test_accuracy: Spread
    """When it ended."""
    test_loss: Spread
    gain: Gain | None
    """Over the phase before; None for the first."""
    test_s: Interval | None = None
    """Time of that test; None if not measured."""
    trainable: int | None = None
    """Trainable parameters; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """What a report draws of a point's median run."""

    picture: Picture | None
    """None on a GPU, where the host's spans show when work was queued, not when it ran."""
    cpu: CpuTimes | None
    """None if nothing was counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """One row of the results table. A figure that was not measured is None."""

    point_id: str
    point: Point
    label: str
    """The point by its ranks and the study's factors: `4 ranks on 2 hosts, flat`."""
    runs: int
    """Finished runs behind the figures."""
    epoch_s: Interval | None
    total_s: Interval | None
    samples_per_s: Interval | None
    speedup: Interval | None
    """Throughput against the baseline point's: for strong scaling the ratio of epoch times."""
    efficiency: Interval | None
    """Speed-up divided by the ratio of ranks, servers counted as such, to the baseline's."""
    load_s: Interval | None
    test_accuracy: Spread | None
    test_loss: Spread | None
    ledger_s: dict[str, float | None] | None
    """Seconds by kind, mean over ranks, of the median run: sums to that run's `wall_s`."""
    rank_ledgers_s: tuple[dict[str, float | None], ...]
    """Seconds by kind for each rank of the median run."""
    median_run: int | None
    curves: tuple[Curve, ...]
    parameters: int | None
    oversubscribed: bool
    lost_shares: dict[str, float] = field(default_factory=dict)
    """Fraction of the loop's time by which each kind exceeds the baseline; empty if unknown."""
    failure: str | None = None
    """Why runs are missing, in a sentence."""
    series: str = ""
    """The series over ranks that it belongs to, named by its factors: `flat`; empty without factors."""
    baseline: str | None = None
    """The point that its speed-up is measured against."""
    messages: float | None = None
    """Messages with a payload that a rank takes part in, per step in the timed epochs of the median run."""
    message_bytes: float | None = None
    """Payload of these messages, in bytes per step."""
    exposed_share: float | None = None
    """Fraction of those epochs in which a rank communicated and computed nothing."""
    anatomy: TraceSummary | None = None
    """Summary of the traces of the median run."""
    view: RunView | None = field(default=None, compare=False, repr=False)
    """What is drawn of it; arrays, which no comparison of results is about."""
    efficiencies: Efficiencies | None = None
    """The efficiency tree of its timed epochs, against the baseline."""
    read_bytes: int | None = None
    """Bytes that a rank read while it loaded the data, the most of any rank and run."""
    queue_s: Interval | None = None
    staleness_max: int | None = None
    """The most steps that a rank of any run was ahead of the slowest."""
    emulated: bool = False
    """Whether its hosts were only namespaces of one machine."""
    phases: tuple[PhaseResult, ...] = ()
    """In order; times and speed-ups above are those of the first."""
    features: CachedFeatures | None = None
    """Cached features of the first phase, of the run with the longest `ready_s`; None without."""
    network: dict[str, str] = field(default_factory=dict)
    """Of a pretrained network: its name, the source of its weights, its preprocessing; empty for others."""
    learning: Learning | None = None
    """Figures of its learning curves; None for a script, and without a finished run."""

    @property
    def ranks_and_servers(self) -> int:
        """Number of processes for an efficiency: a server counts as a rank."""
        return self.point.ranks + self.point.servers

    @property
    def fair(self) -> bool:
        """Whether it shows how training scales: no shared cores, no emulated hosts."""
        return not (self.oversubscribed or self.emulated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Series side by side at one number of ranks."""

    ranks: int
    points: tuple[str, ...]
    """The fastest first; last those with shared cores or emulated hosts, and those without a time."""
    ratios: dict[str, Interval]
    """Throughput of each timed point over the first one's."""
    undecided: tuple[str, ...]
    """Points that cannot be distinguished from the fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Percent:
    """A figure in per cent of the same figure at the baseline."""

    interval: Interval
    """Ratio of the two medians × 100, with the interval of the ratios within repeats."""
    p: float | None
    """That nothing differs, corrected for all effects on this figure; None with fewer than five repeats."""
    real: bool
    """Whether the test is significant and the interval excludes 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One value of one factor, all else as at the baseline: of a study whose design is one-at-a-time."""

    factor: str
    """Path of the setting; run.ranks for the ranks."""
    value: str | int | float | bool | None
    is_baseline: bool
    """Whether it is the factor's first value: every figure is then 100 by definition."""
    point_id: str
    loss_pct: Percent | None
    """Test loss; None if a run has none, or none that a ratio can be of."""
    accuracy_pct: Percent | None
    """Test accuracy."""
    time_pct: Percent | None
    """Training time of all epochs without evaluation; of a script, of whole runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """A point that was not run because it does not fit on this machine or cluster."""

    label: str
    """The point by its ranks and the study's factors."""
    settings: dict[str, str | int | float | bool | None]
    """Path of a setting -> its value: the ranks and the study's factors."""
    reason: str
    """In a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResults:
    """A study, its points in order of ranks, and what has to be known about them."""

    study: Study
    folder: str
    baseline: str | None
    """The point with the fewest ranks, which speed-ups are relative to; of the first series if they differ."""
    points: tuple[PointResult, ...]
    findings: tuple[Finding, ...]
    machine: Machine | None
    expected_runs: int
    """Runs of the study: with fewer finished ones the results are partial."""
    commit: str | None
    comparisons: tuple[Comparison, ...] = ()
    """One for each number of ranks at which there are several series."""
    lesson: LearningSummary = LearningSummary()
    """What the study as a whole shows about learning."""
    not_run: tuple[NotRun, ...] = ()
    """Points of the study that were not run, in its order."""
    laws: tuple[SeriesLaws, ...] = ()
    """Scaling laws, one entry for every series with two numbers of ranks or more."""
    effects: tuple[Effect, ...] = ()
    """Every value of every factor against the baseline, of a study whose design is one-at-a-time."""
