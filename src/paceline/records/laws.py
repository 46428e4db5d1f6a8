"""What scaling laws say about the series of a study: parameters with their intervals, curves, and refusals.

Ranks are counted with servers here, as everywhere where an efficiency is asked of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A figure of a fitted law, and the 95 % interval around it."""

    value: float
    low: float
    high: float
    """Infinite where the points set no upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCurve:
    """The speed-up over the series' baseline that a law predicts, with its interval at every number of ranks."""

    ranks: tuple[float, ...]
    """From the fewest that were measured to twice the most."""
    speedup: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    measured_to: int
    """The most ranks that were measured: what lies beyond is extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One law, fitted to the throughputs of one series."""

    name: str
    """amdahl, gustafson or usl."""
    parameters: dict[str, Fitted]
    """`serial`, or `contention` and `coherency`: fractions, never negative."""
    curve: LawCurve
    deviation: float
    """How far the measured points are from the law, as a fraction: root of the mean square over numbers of ranks."""
    misfit_p: float | None
    """Probability of points so far from the law by noise alone; None where repeats leave no noise to compare with."""
    limit: Fitted | None = None
    """The speed-up over one rank that no number of ranks exceeds; None where the law has no such limit."""
    peak: Fitted | None = None
    """The number of ranks that is fastest; None where the law has none, or coherency cannot be told from 0."""
    peak_speedup: Fitted | None = None
    """Over one rank, at that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLaws:
    """What is fitted to one series, and what is not."""

    series: str
    """Empty where nothing but ranks is varied."""
    scaling: str
    """strong, weak, or empty where it is not known."""
    ranks: tuple[int, ...]
    """Numbers of ranks that the laws are fitted to."""
    left_out: tuple[int, ...]
    """Numbers of ranks that were measured and say little about scaling: emulated, and kept out."""
    runs: int
    """Runs that the laws are fitted to."""
    laws: tuple[Law, ...] = ()
    refusals: dict[str, str] = field(default_factory=dict)
    """Why a law is not fitted, in a sentence, by its name."""
    coherency_p: float | None = None
    """Probability of so much coherency by noise alone, if Amdahl's law held; None where not both are fitted."""
    preferred: str | None = None
    """The law that is drawn: the simpler one, unless the points speak against it."""

    @property
    def best(self) -> Law | None:
        """The preferred law itself."""
        return next((law for law in self.laws if law.name == self.preferred), None)
