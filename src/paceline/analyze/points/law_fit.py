"""Fitting a law to throughputs, and every set of parameters that the repeats do not rule out.

    log X(N, r) = log λ(r) + log S(N; θ) + noise        of N ranks in repeat r

Least squares of logarithms, because noise is a share of a time and not a number of seconds; a pace λ of its own for
each repeat, because points of a repeat are run one after the other and a noisy minute falls on all of them (repeats
are the blocks of the design). The parameters stay within their bounds.

**Uncertainty** by profile likelihood: the region of all θ whose sum of squares is at most

    RSS(θ) ≤ RSS(θ̂) · (1 + t² / ν)         ν = runs − repeats − parameters,   t = Student's 0.975 quantile

and the 95 % interval of any figure of the law (a parameter, the speed-up at N, the peak) is its range over that
region. Chosen before a bootstrap over repeats, because there are about five of them: resampling so few makes intervals
that are too narrow, and it breaks down where an estimate lies on a bound, as contention and coherency often do.
There the region is simply cut off, and the interval covers more than 95 %.

Assumes: noise of the logarithms is normal and as large at every number of ranks. Ranks that are late together, and
a law that does not hold, are told by the misfit test. Source: D. M. Bates and D. G. Watts, Nonlinear Regression
Analysis and Its Applications, Wiley 1988, chapters 3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from paceline.analyze.points.law_forms import Array, Form
from paceline.analyze.stats.students_t import f_tail, quantile
from paceline.records.laws import Fitted

CONFIDENCE = 0.95
_RAYS = 360
_HALVINGS = 48
"""A ray may reach a million times as far as the region does: so many leave eight digits of its edge."""
_STEPS = 200
_STARTS = (0.0, *np.geomspace(1e-6, 1.0, 31))
"""Shares of a parameter's bound that are looked at before the first step: wild points have more than one valley."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPaces:
    """Throughputs of many runs as one logarithm per number of ranks, free of what repeats have in common."""

    ranks: Array
    logs: Array
    """Up to a constant that is the same for all."""
    root: Array
    """So that the sum of squares of a prediction p is `noise_ss` + |root (logs − p)|²."""
    noise_ss: float
    """What runs of the same number of ranks differ by."""
    noise_df: int
    runs: int
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A law with the parameters that fit best, and the edge of the region that is not ruled out."""

    form: Form
    best: Array
    region: Array
    """Rows of parameters around `best`."""
    misfit: float
    """The sum of squares that the law adds to the noise."""
    variance: float
    """Of the noise of one run, from the residuals."""
    df: int
    deviation: float
    misfit_p: float | None

    def figure(self, of: Callable[[Array], Array]) -> Fitted:
        """A figure of the law, and its range over the region."""
        value, around = float(of(self.best[None, :])[0]), of(self.region)
        return Fitted(value=value, low=min(value, float(around.min())), high=max(value, float(around.max())))


def log_paces(throughputs: Mapping[int, Mapping[int, float]]) -> LogPaces | None:
    """Throughputs by ranks and number of the run; None where no noise is left, or no repeat joins all sizes."""
    sizes = sorted(throughputs)
    numbers = sorted({number for own in throughputs.values() for number in own})
    there = np.array([[float(number in throughputs[size]) for size in sizes] for number in numbers])
    logs = np.array([[np.log(throughputs[size].get(number, 1.0)) for size in sizes] for number in numbers])
    per_repeat = there.sum(axis=1, keepdims=True)
    centred = there * (logs - (there * logs).sum(axis=1, keepdims=True) / per_repeat)
    weights = np.diag(there.sum(axis=0)) - there.T @ (there / per_repeat)
    values, vectors = np.linalg.eigh(weights)
    joined = values > 1e-9 * values.max()
    runs, repeats = int(there.sum()), len(numbers)
    noise_df = runs - repeats - (len(sizes) - 1)
    # One direction is always free: the pace, which every repeat has for itself.
    if joined.sum() < len(sizes) - 1 or noise_df < 1:
        return None
    inverse = vectors[:, joined] / values[joined] @ vectors[:, joined].T
    found = inverse @ centred.sum(axis=0)
    rest = centred - there * (found - (there * found).sum(axis=1, keepdims=True) / per_repeat)
    return LogPaces(
        ranks=np.array(sizes, dtype=np.float64),
        logs=found,
        root=(np.sqrt(np.maximum(values, 0.0)) * vectors).T,
        noise_ss=float((rest**2).sum()),
        noise_df=noise_df,
        runs=runs,
        repeats=repeats,
    )


def fit(form: Form, measured: LogPaces) -> Fit:
    """The law with the least squares, and what else the points allow."""
    best = _least_squares(form, measured)
    misfit = float(_misfits(form, measured, best[None, :])[0])
    df = measured.runs - measured.repeats - len(best)
    variance = (measured.noise_ss + misfit) / df
    bound = misfit + variance * quantile((1 + CONFIDENCE) / 2, df) ** 2
    apart = measured.logs - form.log_speedup(measured.ranks, best[None, :])[0]
    return Fit(
        form=form,
        best=best,
        region=_region(form, measured, best, bound),
        misfit=misfit,
        variance=variance,
        df=df,
        deviation=float(apart.std()),
        misfit_p=_misfit_p(measured, misfit, int(((best > 0) & (best < form.most)).sum())),
    )


def _misfit_p(measured: LogPaces, misfit: float, parameters: int) -> float | None:
    """Probability of so large a misfit by noise alone: the lack-of-fit test; a parameter on a bound fits nothing."""
    df = len(measured.ranks) - 1 - parameters
    noise = measured.noise_ss / measured.noise_df
    return f_tail(misfit / df / noise, df, measured.noise_df) if df > 0 and noise > 0 else None


def _misfits(form: Form, measured: LogPaces, parameters: Array) -> Array:
    """What each row of parameters adds to the sum of squares."""
    apart = measured.logs - form.log_speedup(measured.ranks, parameters)
    return ((apart @ measured.root.T) ** 2).sum(axis=1)


def _least_squares(form: Form, measured: LogPaces) -> Array:
    """Levenberg and Marquardt's steps, kept within the bounds; a parameter that is pushed against one stays there."""
    most = np.array(form.most)
    starts = np.stack(np.meshgrid(*(np.array(_STARTS) * end for end in most)), axis=-1).reshape(-1, len(most))
    best = starts[_misfits(form, measured, starts).argmin()]
    least, damping = float(_misfits(form, measured, best[None, :])[0]), 1e-3
    for _ in range(_STEPS):
        slopes = measured.root @ form.slopes(measured.ranks, best)
        apart = measured.root @ (measured.logs - form.log_speedup(measured.ranks, best[None, :])[0])
        downhill = slopes.T @ apart
        free = ~(((best <= 0) & (downhill <= 0)) | ((best >= most) & (downhill >= 0)))
        if not free.any():
            break
        curvature = (slopes.T @ slopes)[np.ix_(free, free)]
        step = np.zeros(len(best))
        step[free] = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), downhill[free])
        tried = np.clip(best + step, 0.0, most)
        now = float(_misfits(form, measured, tried[None, :])[0])
        if now <= least:
            settled = np.all(np.abs(tried - best) <= 1e-12 + 1e-10 * best)
            best, least, damping = tried, now, max(damping / 10, 1e-12)
            if settled:
                break
        elif damping > 1e12:
            break
        else:
            damping *= 10
    return best


def _region(form: Form, measured: LogPaces, best: Array, bound: float) -> Array:
    """Where rays from the best parameters leave the region or meet a bound: its edge, found on all rays at once."""
    rays = _rays(form, measured, best)
    reach = _reach(rays, best, np.array(form.most))
    low, high = np.zeros(len(rays)), reach.copy()
    inside = _misfits(form, measured, _along(form, best, rays, reach)) <= bound
    low[inside] = reach[inside]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        within = _misfits(form, measured, _along(form, best, rays, middle)) <= bound
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return np.vstack([best, _along(form, best, rays, np.where(inside, reach, low))])


def _along(form: Form, best: Array, rays: Array, lengths: Array) -> Array:
    found = np.clip(best + lengths[:, None] * rays, 0.0, form.most)
    found[found < 1e-15] = 0.0  # a bound that is met, less the digits that were lost on the way
    return found


def _rays(form: Form, measured: LogPaces, best: Array) -> Array:
    """Directions around the best parameters, dense where the region is long, and along the bounds."""
    axes = np.vstack([np.eye(len(best)), -np.eye(len(best))])
    if len(best) == 1:
        return axes
    slopes = measured.root @ form.slopes(measured.ranks, best)
    values, vectors = np.linalg.eigh(slopes.T @ slopes)
    shape = vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))
    angles = np.linspace(0, 2 * np.pi, _RAYS, endpoint=False)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ shape.T
    return np.vstack([axes, around / np.linalg.norm(around, axis=1, keepdims=True)])


def _reach(rays: Array, best: Array, most: Array) -> Array:
    """How far each ray goes until it meets a bound."""
    room = np.where(rays > 0, most - best, best)
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.where(rays == 0, np.inf, room / np.abs(rays))
    return lengths.min(axis=1)
