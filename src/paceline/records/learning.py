"""Figures from the learning curves of a study: when they are stable, and when a target is reached.

    Learning        one point: its curve, Stable, Target, Turn, NoiseScale, faults, effective speed-up
    AccuracyCheck   one point's test accuracy against another's: different, equal, or neither shown
    LearningSummary  the whole study: the target, the point that reaches it first, the point that needs least

A figure that was not measured, or that the data cannot show, is None; `why` has the reason in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.records.finding import Note

if TYPE_CHECKING:
    from paceline.records.results import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A mean curve over the repeats of a point, epoch by epoch, with an interval for the mean."""

    measure: str
    """loss or accuracy."""
    part: str
    """train or validation."""
    epochs: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Empty, as `low` is, with fewer than five repeats."""
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable:
    """The first epoch from which a validation curve stays within noise of its plateau."""

    epoch: int | None
    """None if it is not stable within the trained epochs, or if these are too few."""
    low: int | None
    high: int | None
    """Of the interval; None if it has no end within the trained epochs."""
    epochs: int
    """Epochs that were trained."""
    plateau: float | None
    """Mean over the last quarter of the epochs."""
    tolerance: float | None
    """How far from the plateau is still stable: twice the noise of one epoch of one run."""
    runs: int
    why: str = ""
    """Why there is no epoch; empty if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How long a point takes to reach a validation accuracy: medians over its runs."""

    accuracy: float
    runs: int
    reached: int
    """Runs that reached it; the figures below are None unless all did."""
    epochs: Interval | None
    steps: Interval | None
    samples: Interval | None
    time_s: Interval | None
    """Training time of the slowest rank, without startup and evaluation."""
    rank_hours: Interval | None
    """That time × ranks and servers."""
    interpolated: bool
    """Whether it is between two epochs, linearly interpolated."""
    at_most: bool
    """Whether a run reached it by the end of its first epoch: how much earlier is unknown."""
    why: str = ""
    """Why there are no figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Overfitting: from an epoch on validation loss rises while training loss still falls, both beyond noise."""

    epoch: int
    """The epoch with the lowest validation loss, smoothed over the repeats."""
    rise: float
    """Of the validation loss from there to the end."""
    fall: float
    """Of the training loss over the same epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScale:
    """The gradient noise scale of a point: tr(Σ) / |G|², in samples (McCandlish et al., 2018)."""

    samples: float | None
    """The batch at which noise and gradient are equally large: far beyond it more samples a step stop helping.

    None if it is unbounded: only noise was visible."""
    low: float | None
    high: float | None
    """Of its interval; None if the measured steps are too few for one, or if it is unbounded."""
    coverage: float | None
    steps: int
    """Measured steps behind it, over all runs."""
    efficiency: float | None = None
    """Of this point's global batch B: 1 / (1 + B / noise scale), progress per sample against a very small batch's."""
    efficiency_low: float | None = None
    efficiency_high: float | None = None
    over: str | None = None
    """What the scatter is over: steps, or runs if there are five; None without an interval."""
    epochs: tuple[int, ...] = ()
    """Those in which it was measured."""
    by_epoch: tuple[float | None, ...] = ()
    """The noise scale in each of them, over all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A run that does not learn, by name."""

    name: str
    """diverged (a loss that is not a finite number) or dead (loss and accuracy at chance after the first epoch)."""
    run: int
    epoch: int
    """The first at which it shows."""
    why: Note
    """What shows it, with the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """All figures about learning of one point."""

    bands: tuple[Band, ...] = ()
    stable: Stable | None = None
    """None without a validation set."""
    target: Target | None = None
    """None if there is no target, or no validation set."""
    turn: Turn | None = None
    """None if validation does not turn by more than noise."""
    faults: tuple[Fault, ...] = ()
    noise: NoiseScale | None = None
    """None if not measured."""
    statistical_efficiency: Interval | None = None
    """Samples that the baseline takes to the target over samples that this point takes; 1 and more is no loss."""
    effective_speedup: Interval | None = None
    """Speed-up × statistical efficiency: how many times sooner than the baseline it reaches the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyCheck:
    """The test accuracy of one point against another's, by differences within each repeat."""

    point_id: str
    against: str
    """point_id of the other."""
    difference: float
    """Mean of this point's less the other's, as a fraction."""
    low: float | None
    high: float | None
    """95 % interval of the mean difference; None with fewer than five pairs."""
    n: int
    """Repeats that both have."""
    margin: float
    """Differences below this are small enough to be called equal, as a fraction."""
    p_different: float | None
    p_equal: float | None
    """Corrected by Holm's method for all points that are tested; None with fewer than five pairs, and where a run was
    left out because it learned nothing."""
    different: bool
    equal: bool
    """Both are true if a difference is certain, and certainly smaller than the margin."""
    batch_ratio: float | None = None
    """This point's global batch over the other's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSummary:
    """What the whole study shows about learning."""

    target: float | None = None
    """The validation accuracy of the time to target; None if none could be chosen."""
    rule: str = ""
    """Its origin: given by the user, or the rule that chose it."""
    first: str | None = None
    """point_id of the point that reaches it first; points without shared cores or emulated hosts are preferred."""
    cheapest: str | None = None
    """point_id of the point that reaches it with the fewest rank-hours."""
    checks: tuple[AccuracyCheck, ...] = ()
