"""What the learning curves of a study show: when they are stable, when a target is reached, what that is worth.

    Learning        one point: its curve, Stable, Target, Turn, NoiseScale, faults, effective speed-up
    AccuracyCheck   one point's test accuracy against another's: different, equal, or neither shown
    LearningSummary  the whole study: the target, the point that reaches it first, the point that needs least

A figure that was not measured, or that the data cannot show, is None, and `why` says so in a sentence.
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
    """The first epoch from which a validation curve stays within its own noise of its plateau."""

    epoch: int | None
    """None where it is not stable within the epochs that were trained, or where these are too few to tell."""
    low: int | None
    high: int | None
    """Of the interval; None where it has no end within the epochs that were trained."""
    epochs: int
    """Epochs that were trained."""
    plateau: float | None
    """Mean over the last quarter of the epochs."""
    tolerance: float | None
    """How far from the plateau is still stable: twice the noise of one epoch of one run."""
    runs: int
    why: str = ""
    """Why there is no epoch; empty where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How long a point takes to a given validation accuracy: medians over its runs, all of which reach it."""

    accuracy: float
    runs: int
    reached: int
    """Runs that came to it; the figures below are None unless it is all of them."""
    epochs: Interval | None
    steps: Interval | None
    samples: Interval | None
    time_s: Interval | None
    """Training alone, on the slowest rank; startup and evaluation are not in it."""
    rank_hours: Interval | None
    """That time × ranks and servers."""
    interpolated: bool
    """Whether it lies between two epochs, on the straight line between their accuracies."""
    at_most: bool
    """Whether a run was there by its first epoch's end: how much earlier is not known."""
    why: str = ""
    """Why there are no figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Overfitting: validation loss rises from an epoch on while training loss goes on falling, both beyond noise."""

    epoch: int
    """The epoch with the lowest validation loss, smoothed over the repeats."""
    rise: float
    """Of the validation loss from there to the end."""
    fall: float
    """Of the training loss meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScale:
    """The gradient noise scale of a point: tr(Σ) / |G|², in samples (McCandlish et al., 2018)."""

    samples: float | None
    """The batch at which noise and gradient are equally large: far beyond it more samples a step stop helping.

    None where it is beyond all bounds: noise was all that could be seen."""
    low: float | None
    high: float | None
    """Of its interval; None where the measured steps are too few for one, or where it has no end."""
    coverage: float | None
    steps: int
    """Measured steps behind it, over all runs."""
    efficiency: float | None = None
    """Of this point's global batch B: 1 / (1 + B / noise scale), progress per sample against a very small batch's."""
    efficiency_low: float | None = None
    efficiency_high: float | None = None
    over: str | None = None
    """What the scatter behind the interval is over: steps, or runs where there are five; None where there is none."""
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
    """None where there is no target, or no validation set."""
    turn: Turn | None = None
    """None where validation does not turn by more than noise."""
    faults: tuple[Fault, ...] = ()
    noise: NoiseScale | None = None
    """None where it was not measured."""
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
    """Both where a difference is sure, and sure to be smaller than the margin."""
    batch_ratio: float | None = None
    """This point's global batch over the other's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSummary:
    """What a study as a whole says about learning."""

    target: float | None = None
    """The validation accuracy that times are asked for; None where there is none to choose."""
    rule: str = ""
    """Where it comes from: given, or the rule by which it was chosen."""
    first: str | None = None
    """point_id of the point that reaches it first, of those with cores and hosts of their own where any has."""
    cheapest: str | None = None
    """The one that does so for the fewest rank-hours."""
    checks: tuple[AccuracyCheck, ...] = ()
