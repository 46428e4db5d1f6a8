"""The gradient noise scale of a point, and what it says about its batch.

Of the mean gradient of a batch of B samples, a part is noise. Measured in an epoch (training/gradient_noise.py):

    share s = S / (S + B · G)        S the mean of the measured tr(Σ), G that of |G|²
    noise scale = S / G = B · s / (1 - s)

Means are taken before the ratio: that of single steps would be far off, G being near 0 in many of them. s divides by
the square of the mean gradient, which never is.

Over a run the noise scale grows, often tenfold, and what counts is how far a step came: with a batch of B it comes
1 / (1 + noise scale / B) = 1 - s as far as one with all the samples there are (McCandlish et al., 2018, section 2.2).
So shares, not noise scales, are averaged over the steps of a run, and the noise scale of the whole follows from that:

    steps taken / steps that the largest batch would take      1 / (1 - s)   =  1 + noise scale / B
    samples that the smallest batch would take / samples taken            s  =  1 / (1 + B / noise scale)

Assumes: samples of a step are drawn independently (an epoch draws each once, which changes tr(Σ) by 1 part in all
samples), and gradients of parts do not hang together in other ways, as those of batch normalisation do a little.
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
"""Between measured steps: with fewer, their variance is anybody's guess."""


@dataclass(frozen=True, slots=True)
class _Share:
    """The part of a mean gradient's square that is noise, over some measured steps."""

    value: float
    variance: float
    """Of that value; nan where it is not known."""
    steps: int
    differences: int


def noise_scale(runs: Sequence[RunResult], batch_global: int) -> NoiseScale | None:
    """The noise scale of a point from its runs; None where none of them measured it, or where all of them diverged.

    The interval comes from the scatter of single steps, and from that between runs where there are five of them.
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
    """By epoch, of a run's first phase: a second one trains other weights with another rate."""
    tuned = {epoch.epoch for epoch in run.epochs if epoch.phase != "train"}
    found = {noise.epoch: _share(noise, batch_global) for noise in run.noise if noise.epoch not in tuned}
    return {epoch: share for epoch, share in found.items() if share is not None}


def _share(epoch: NoiseEpoch, batch_global: int) -> _Share | None:
    """Of one epoch, its variance to first order; None where gradients were no finite numbers, or nothing but 0."""
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
    """Over steps; epochs whose scatter is not known are taken to scatter as the others do."""
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
    """Low, high, and what their scatter is over; all None where there is too little of anything."""
    if len(runs) >= FEWEST_FOR_INTERVAL:
        mean = sum(run.value for run in runs) / len(runs)
        variance = sum((run.value - mean) ** 2 for run in runs) / (len(runs) - 1) / len(runs)
        freedom, over = len(runs) - 1.0, "runs"
    elif whole.differences >= FEWEST_DIFFERENCES and not math.isnan(whole.variance):
        # Neighbouring differences share a step: three of them know as much as two values do.
        variance, freedom, over = whole.variance, whole.differences * 2 / 3, "steps"
    else:
        return None, None, None
    reach = quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(variance)
    return whole.value - reach, whole.value + reach, over


def _scale(share: float, batch: int) -> float | None:
    """The noise scale, in samples; None where it is beyond all bounds, noise being all that was seen."""
    return batch * share / (1 - share) if share < 1 else None


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)
