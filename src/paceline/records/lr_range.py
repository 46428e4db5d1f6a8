"""LrCurve (one learning-rate range test) and LrAdvice (the recommendation of several)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LrCurve:
    """One range test and the rates derived from it; None if not found."""

    seed: int
    rates: tuple[float, ...]
    """Of every step that was taken, rising."""
    losses: tuple[float, ...]
    """Mean loss of every step's batch, before its update."""
    smoothed: tuple[float, ...]
    """`losses`, averaged over neighbouring steps."""
    steepest: float | None = None
    """The rate of the steepest descent of the smoothed loss; None if it did not fall beyond noise."""
    lowest: float | None = None
    """The rate of the lowest smoothed loss."""
    ran_away: float | None = None
    """The rate at which the loss diverged; None if it did not."""
    advised: float | None = None
    """The smaller of `steepest` and a tenth of `ran_away`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LrAdvice:
    """The learning rate that range tests recommend."""

    curves: tuple[LrCurve, ...]
    lr: float | None
    """The median over the curves, rounded to two digits; None if no curve has one."""
    low: float | None
    high: float | None
    """Smallest and largest of the curves: a range, not a confidence interval."""
    batch_global: int
    """The global batch of the tests, which it is valid for."""
    ranks: int
    notes: tuple[str, ...] = ()
    """Caveats, a sentence each."""
