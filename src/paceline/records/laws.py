"""Scaling laws fitted to the series of a study: parameters with intervals, curves, and reasons for missing fits.

Ranks include servers here, as for every efficiency.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A figure of a fitted law, and the 95 % interval around it."""

    value: float
    low: float
    high: float
    """Infinite if the points give no upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCurve:
    """The speed-up over the series' baseline that a law predicts, with its interval at every number of ranks."""

    ranks: tuple[float, ...]
    """From the fewest that were measured to twice the most."""
    speedup: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    measured_to: int
    """The largest measured number of ranks: beyond it the curve is extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One law, fitted to the throughputs of one series."""

    name: str
    """amdahl, gustafson or usl."""
    parameters: dict[str, Fitted]
    """`serial`, or `contention` and `coherency`: fractions, never negative."""
    curve: LawCurve
    deviation: float
    """Root-mean-square deviation of the measured points from the law, as a fraction."""
    misfit_p: float | None
    """p-value of the deviation under noise; None if the repeats have no noise."""
    limit: Fitted | None = None
    """The speed-up over one rank that no number of ranks exceeds; None if the law has no such limit."""
    peak: Fitted | None = None
    """The fastest number of ranks; None if the law has none, or if coherency does not differ from 0."""
    peak_speedup: Fitted | None = None
    """Speed-up over one rank at that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLaws:
    """The laws of one series, and why others are missing."""

    series: str
    """Empty if nothing but ranks is varied."""
    scaling: str
    """strong, weak, or empty if unknown."""
    ranks: tuple[int, ...]
    """Numbers of ranks that the laws are fitted to."""
    left_out: tuple[int, ...]
    """Measured numbers of ranks that are excluded, because they are emulated."""
    runs: int
    """Runs that the laws are fitted to."""
    laws: tuple[Law, ...] = ()
    refusals: dict[str, str] = field(default_factory=dict)
    """Why a law is not fitted, in a sentence, by its name."""
    coherency_p: float | None = None
    """p-value of the coherency if Amdahl's law holds; None unless both are fitted."""
    preferred: str | None = None
    """The law that is drawn: the simpler one, unless the points contradict it."""

    @property
    def best(self) -> Law | None:
        """The preferred law itself."""
        return next((law for law in self.laws if law.name == self.preferred), None)
