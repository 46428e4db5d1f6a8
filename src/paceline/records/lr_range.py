"""LrCurve (one learning-rate range test) and LrAdvice (what several of them say)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LrCurve:
    """One range test, and what can be read off it; None if it cannot."""

    seed: int
    rates: tuple[float, ...]
    """Of every step that was taken, rising."""
    losses: tuple[float, ...]
    """Mean loss of every step's batch, before its update."""
    smoothed: tuple[float, ...]
    """The same, averaged over neighbouring steps."""
    steepest: float | None = None
    """The rate at which the smoothed loss fell fastest; None if it did not fall beyond its noise."""
    lowest: float | None = None
    """The rate at which it was lowest."""
    ran_away: float | None = None
    """The rate at which the loss had run away; None if the rates ended before."""
    advised: float | None = None
    """The steepest, or a tenth of where it ran away if that is less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LrAdvice:
    """The learning rate that range tests recommend."""

    curves: tuple[LrCurve, ...]
    lr: float | None
    """The median over the curves, rounded to two digits; None if no curve gives one."""
    low: float | None
    high: float | None
    """The smallest and largest that a curve gives: a range over repeats, not an interval."""
    batch_global: int
    """The global batch that it was found at, and holds for."""
    ranks: int
    notes: tuple[str, ...] = ()
    """What a reader has to know about it, in sentences."""
