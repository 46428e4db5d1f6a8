"""A learning rate from range tests, in which the rate rises from step to step.

    loss ─────────╮               │
                   ╲  steepest    │ diverged
                    ╲            ╱
                     ╰────lowest╯
         rate, logarithmic ─────▶

Smoothing: a Gaussian mean over neighbouring steps, with a standard deviation of 3 % of the range. Losses are clipped at
twice the first value, to protect the neighbours of a diverging loss. Advised: the rate of the steepest fall (Smith
2015; Howard and Gugger 2020), at most a tenth of the rate at which the loss diverged. Of several tests, the median.

Assumes: rates rise by a constant factor.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.records.lr_range import LrAdvice, LrCurve

_DEVIATION = 0.03
"""Standard deviation of the smoothing, as a fraction of the planned steps."""
_MOST = 2.0
"""Largest loss, as a multiple of the first."""
_SAFE = 0.1
"""Largest advised rate, as a fraction of the rate at which the loss diverged."""
_CLEAR = 2.0
"""Smallest fall that counts, as a multiple of the root mean square of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTest:
    """Measurements of one range test."""

    seed: int
    rates: Sequence[float]
    losses: Sequence[float]
    planned: int
    """Steps without divergence."""


def lr_curve(measured: RangeTest) -> LrCurve:
    """The smoothed curve and the advised rate of one range test."""
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
    """The advised rate over range tests with different seeds."""
    curves = tuple(lr_curve(test) for test in tests)
    advised = sorted(curve.advised for curve in curves if curve.advised is not None)
    return LrAdvice(
        curves=curves,
        # Of an even number, the geometric mean of the two in the middle.
        lr=_two_digits(float(np.exp(statistics.median(np.log(advised))))) if advised else None,
        low=_two_digits(advised[0]) if advised else None,
        high=_two_digits(advised[-1]) if advised else None,
        batch_global=batch_global,
        ranks=ranks,
        notes=tuple(_notes(curves)),
    )


def _smoothed(losses: np.ndarray, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """The clipped losses, and the smoothed ones."""
    finite = np.where(np.isfinite(losses), losses, np.inf)
    calm = np.minimum(finite, _MOST * np.median(finite[: max(1, round(2 * deviation))]))
    if not np.all(np.isfinite(calm)):  # it diverged in its first steps
        calm = np.where(np.isfinite(calm), calm, 0.0)
    steps = np.arange(len(calm))
    weights = np.exp(-0.5 * np.square((steps[:, None] - steps) / deviation))
    return calm, (weights @ calm) / weights.sum(axis=1)


def _notes(curves: Sequence[LrCurve]) -> list[str]:
    notes, without = [], sum(curve.advised is None for curve in curves)
    if without:
        some = "The loss" if without == len(curves) else f"In {without} of {len(curves)} tests the loss"
        gone = any(curve.advised is None and curve.ran_away is not None for curve in curves)
        end = "begins with a smaller rate, --from" if gone else "has more steps, --steps, or a larger rate, --to"
        notes.append(f"{some} did not fall beyond its noise. It may if the test {end}.")
    if any(curve.lowest is not None and curve.lowest >= curve.rates[-_last(curve)] for curve in curves):
        notes.append("The loss was still falling at the largest rate: a larger --to may give a larger rate.")
    return notes


def _last(curve: LrCurve) -> int:
    """Number of last steps in which a lowest loss counts as still falling."""
    return max(1, len(curve.rates) // 20)


def _two_digits(rate: float) -> float:
    return float(f"{rate:.2g}")
