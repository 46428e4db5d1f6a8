"""A learning rate read off range tests: the loss of every step, over a rate that rises with the steps.

    loss ─────────╮               │
                   ╲  steepest    │ ran away
                    ╲            ╱
                     ╰────lowest╯
         rate, logarithmic ─────▶

Smoothed: a mean over neighbouring steps with weights of a normal distribution, whose deviation is 3 % of the range.
A loss more than twice its first value counts as that: what runs away must not reach back into its neighbours.
Advised: the rate of the steepest fall (Smith 2015 has the range around it; Howard and Gugger 2020 the point), or a
tenth of the rate at which the loss had run away where that is less. Over several tests the median counts.

*Assumes:* rates that rise by the same factor from step to step.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.records.lr_range import LrAdvice, LrCurve

_DEVIATION = 0.03
"""Of the smoothing, as a part of the steps that were planned."""
_MOST = 2.0
"""Times the first loss."""
_SAFE = 0.1
"""Of the rate at which the loss ran away."""
_CLEAR = 2.0
"""A fall counts if it is so many times the root mean square of what smoothing took away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTest:
    """A range test as it was measured."""

    seed: int
    rates: Sequence[float]
    losses: Sequence[float]
    planned: int
    """Steps it would have taken if the loss had not run away."""


def lr_curve(measured: RangeTest) -> LrCurve:
    """What one range test shows."""
    rates, losses = list(measured.rates), np.asarray(measured.losses, dtype=np.float64)
    calm, smoothed = _smoothed(losses, max(1.0, _DEVIATION * measured.planned))
    ran_away = rates[-1] if len(rates) < measured.planned or not np.isfinite(losses[-1]) else None
    curve = LrCurve(
        seed=measured.seed,
        rates=tuple(rates),
        losses=tuple(losses.tolist()),
        smoothed=tuple(smoothed.tolist()),
        ran_away=ran_away,
    )
    lowest = int(smoothed.argmin())
    noise = float(np.sqrt(np.mean(np.square(calm - smoothed)[: lowest + 1])))
    if lowest == 0 or not smoothed[0] - smoothed[lowest] > _CLEAR * noise:
        return curve
    steepest = rates[int(np.gradient(smoothed)[: lowest + 1].argmin())]
    advised = steepest if ran_away is None else min(steepest, _SAFE * ran_away)
    return replace(curve, steepest=steepest, lowest=rates[lowest], advised=advised)


def lr_advice(tests: Sequence[RangeTest], *, batch_global: int, ranks: int) -> LrAdvice:
    """What range tests with different seeds recommend together."""
    curves = tuple(lr_curve(test) for test in tests)
    advised = sorted(curve.advised for curve in curves if curve.advised is not None)
    return LrAdvice(
        curves=curves,
        # Where there are two in the middle, between them as rates are: by their ratio.
        lr=_two_digits(float(np.exp(statistics.median(np.log(advised))))) if advised else None,
        low=_two_digits(advised[0]) if advised else None,
        high=_two_digits(advised[-1]) if advised else None,
        batch_global=batch_global,
        ranks=ranks,
        notes=tuple(_notes(curves)),
    )


def _smoothed(losses: np.ndarray, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """The losses without what ran away, and their weighted means over neighbours."""
    finite = np.where(np.isfinite(losses), losses, np.inf)
    calm = np.minimum(finite, _MOST * np.median(finite[: max(1, round(2 * deviation))]))
    if not np.all(np.isfinite(calm)):  # it ran away in its first steps: there is nothing else to show
        calm = np.where(np.isfinite(calm), calm, 0.0)
    steps = np.arange(len(calm))
    weights = np.exp(-0.5 * np.square((steps[:, None] - steps) / deviation))
    return calm, (weights @ calm) / weights.sum(axis=1)


def _notes(curves: Sequence[LrCurve]) -> list[str]:
    notes, without = [], sum(curve.advised is None for curve in curves)
    if without:
        some = "The loss" if without == len(curves) else f"In {without} of {len(curves)} tests the loss"
        gone = any(curve.advised is None and curve.ran_away is not None for curve in curves)
        end = "began with a smaller rate, --from" if gone else "took more steps, --steps, or a larger rate, --to"
        notes.append(f"{some} did not fall beyond its noise. It might if the test {end}.")
    if any(curve.lowest is not None and curve.lowest >= curve.rates[-_last(curve)] for curve in curves):
        notes.append("The loss still fell when the rates ended: with a larger --to a larger rate may be found.")
    return notes


def _last(curve: LrCurve) -> int:
    """Steps at the end of a range in which a loss that is lowest is taken for one that still falls."""
    return max(1, len(curve.rates) // 20)


def _two_digits(rate: float) -> float:
    return float(f"{rate:.2g}")
