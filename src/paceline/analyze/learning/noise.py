"""The gradient noise scale of a point, and the sample efficiency of its batch.

A part of the mean gradient of a batch of B samples is noise. Measured in an epoch (training/gradient_noise.py):

    share s = S / (S + B · G)        S the mean of the measured tr(Σ), G that of |G|²
    noise scale = S / G = B · s / (1 - s)

Means are taken before the ratio, because G of single steps is often near 0. The denominator of s is the square of the
mean gradient, which is not.

The noise scale grows during a run, often tenfold. The progress of a step with a batch of B is 1 / (1 + noise scale / B)
= 1 - s of that of a step with an infinite batch (McCandlish et al., 2018, section 2.2). Shares, not noise scales, are
therefore averaged over the steps of a run, and the noise scale of the run follows from their mean:

    steps taken / steps that the largest batch would take      1 / (1 - s)   =  1 + noise scale / B
    samples that the smallest batch would take / samples taken            s  =  1 / (1 + B / noise scale)

Assumes: samples of a step are drawn independently (an epoch draws each once, which changes tr(Σ) by 1 part in all
samples), and gradients of parts are not otherwise correlated, as they are slightly by batch normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyze.stats.intervals import CONFIDENCE, FEWEST_FOR_INTERVAL
from paceline.analyze.stats.students_t import quantile
from paceline.records.learning import NoiseScale
from paceline.records.run import NoiseEpoch, RunResult

FEWEST_DIFFERENCES = 10
"""Differences between measured steps that an estimate of their variance needs."""


@dataclass(frozen=True, slots=True)
class _Share:
    """Noise as a share of the squared mean gradient, over some measured steps."""

    value: float
    variance: float
    """Of the value; nan if unknown."""
    steps: int
    differences: int


def noise_scale(runs: Sequence[RunResult], batch_global: int) -> NoiseScale | None:
    """The noise scale of a point in samples; None if no run measured it, or all runs diverged.

    The interval comes from the variance between runs if there are five, else from that between steps.
    """
    by_run = [_shares(run, batch_global) for run in runs]
    means = [share for shares in by_run if (share := _mean(list(shares.values()))) is not None]
    whole = _mean(means)
    if whole is None:
        return None
    low, high, over = _interval(whole, means)
    epochs = sorted({epoch for shares in by_run for epoch in shares})
    by_epoch = [_mean([shares[epoch] for shares in by_run if epoch in shares]) for epoch in epochs]
    return NoiseScale(
        samples=_scale(whole.value, batch_global),
        low=None if low is None else _scale(max(low, 0.0), batch_global),
        high=None if high is None else _scale(high, batch_global),
        coverage=None if over is None else CONFIDENCE,
        steps=whole.steps,
        efficiency=_within(whole.value),
        efficiency_low=None if low is None else _within(low),
        efficiency_high=None if high is None else _within(high),
        over=over,
        epochs=tuple(epochs),
        by_epoch=tuple(_scale(share.value, batch_global) for share in by_epoch if share is not None),
    )


def _shares(run: RunResult, batch_global: int) -> dict[int, _Share]:
    """Noise shares by epoch of a run's first phase."""
    tuned = {epoch.epoch for epoch in run.epochs if epoch.phase != "train"}
    found = {noise.epoch: _share(noise, batch_global) for noise in run.noise if noise.epoch not in tuned}
    return {epoch: share for epoch, share in found.items() if share is not None}


def _share(epoch: NoiseEpoch, batch_global: int) -> _Share | None:
    """Noise share of one epoch, with its first-order variance; None if gradients are not finite, or all 0."""
    noise, signal, batch = epoch.variance, epoch.signal, batch_global
    total = noise + batch * signal
    if not (math.isfinite(total) and total > 0):
        return None
    variance = math.nan
    if epoch.variance_var is not None and epoch.signal_var is not None and epoch.covariance is not None:
        by_noise, by_signal = batch * signal / total**2, -batch * noise / total**2
        variance = by_noise**2 * epoch.variance_var + by_signal**2 * epoch.signal_var
        variance += 2 * by_noise * by_signal * epoch.covariance
    return _Share(noise / total, max(variance, 0.0) / epoch.measured, epoch.measured, epoch.differences)


def _mean(shares: Sequence[_Share]) -> _Share | None:
    """Mean over steps; epochs with an unknown variance count with that of the others."""
    if not shares:
        return None
    steps = sum(share.steps for share in shares)
    known = [share for share in shares if not math.isnan(share.variance)]
    variance = math.nan
    if known:
        variance = sum(share.steps**2 * share.variance for share in known) / steps**2
        variance *= steps / sum(share.steps for share in known)
    value = sum(share.steps * share.value for share in shares) / steps
    return _Share(value, variance, steps, sum(share.differences for share in shares))


def _interval(whole: _Share, runs: Sequence[_Share]) -> tuple[float | None, float | None, str | None]:
    """Low, high, and the source of the variance (`runs` or `steps`); all None if there are too few."""
    if len(runs) >= FEWEST_FOR_INTERVAL:
        mean = sum(run.value for run in runs) / len(runs)
        variance = sum((run.value - mean) ** 2 for run in runs) / (len(runs) - 1) / len(runs)
        freedom, over = len(runs) - 1.0, "runs"
    elif whole.differences >= FEWEST_DIFFERENCES and not math.isnan(whole.variance):
        # Neighbouring differences share a step: three of them count as two degrees of freedom.
        variance, freedom, over = whole.variance, whole.differences * 2 / 3, "steps"
    else:
        return None, None, None
    reach = quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(variance)
    return whole.value - reach, whole.value + reach, over


def _scale(share: float, batch: int) -> float | None:
    """The noise scale in samples; None if infinite (nothing but noise)."""
    return batch * share / (1 - share) if share < 1 else None


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)
