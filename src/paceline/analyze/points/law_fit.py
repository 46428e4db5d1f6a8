"""Fit of a scaling law to throughputs, with the confidence region of its parameters.

    log X(N, r) = log λ(r) + log S(N; θ) + noise        of N ranks in repeat r

Least squares of logarithms, because noise is proportional to time. Each repeat has its own pace λ, because its runs
are close in time and share the noise of the machine (repeats are the blocks of the design). Parameters are bounded.

**Uncertainty** by profile likelihood: the region of all θ whose sum of squares is at most

    RSS(θ) ≤ RSS(θ̂) · (1 + t² / ν)         ν = runs − repeats − parameters,   t = Student's 0.975 quantile

and the 95 % interval of any quantity of the law (a parameter, the speed-up at N, the peak) is its range over that
region. A bootstrap over about five repeats would give intervals that are too narrow, and fails for estimates on a
bound, which are frequent for contention and coherency. There the region is cut off, and the coverage exceeds 95 %.

Assumes: noise of the logarithms is normal and equal for all numbers of ranks. The misfit test detects a law that does
not hold. Source: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis and Its Applications, Wiley 1988,
chapters 3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from paceline.analyze.points.law_forms import Array, Form
from paceline.analyze.stats.intervals import CONFIDENCE
from paceline.analyze.stats.students_t import f_tail, quantile
from paceline.records.laws import Fitted

_RAYS = 360
_HALVINGS = 48
"""Bisections of a ray: enough for eight digits if the ray is a million times as long as the region."""
_STEPS = 200
_STARTS = (0.0, *np.geomspace(1e-6, 1.0, 31))
"""Starting values as fractions of a parameter's bound: noisy data may have several local minima."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPaces:
    """Logarithms of throughputs, one per number of ranks, without the pace of the repeats."""

    ranks: Array
    logs: Array
    """Up to a common constant."""
    root: Array
    """Square root of the weights: the sum of squares of a prediction p is `noise_ss` + |root (logs − p)|²."""
    noise_ss: float
    """Sum of squares within numbers of ranks."""
    noise_df: int
    runs: int
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A law with its best parameters, and the boundary of their confidence region."""

    form: Form
    best: Array
    region: Array
    """Rows of parameters around `best`."""
    misfit: float
    """Sum of squares of the law beyond the noise."""
    variance: float
    """Residual variance of one run."""
    df: int
    deviation: float
    misfit_p: float | None

    def figure(self, of: Callable[[Array], Array]) -> Fitted:
        """A quantity of the law, and its range over the region."""
        value, around = float(of(self.best[None, :])[0]), of(self.region)
        return Fitted(value=value, low=min(value, float(around.min())), high=max(value, float(around.max())))


def log_paces(throughputs: Mapping[int, Mapping[int, float]]) -> LogPaces | None:
    """`throughputs` by ranks and run; None without degrees of freedom for noise, or if sizes share no repeats."""
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
    # One eigenvalue is always 0: the common pace.
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
    """The least-squares fit of a law, with its confidence region."""
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
    """p-value of the lack-of-fit test; `parameters` counts those within their bounds. None without freedom."""
    df = len(measured.ranks) - 1 - parameters
    noise = measured.noise_ss / measured.noise_df
    return f_tail(misfit / df / noise, df, measured.noise_df) if df > 0 and noise > 0 else None


def _misfits(form: Form, measured: LogPaces, parameters: Array) -> Array:
    """Sum of squares beyond the noise, for each row of parameters."""
    apart = measured.logs - form.log_speedup(measured.ranks, parameters)
    return ((apart @ measured.root.T) ** 2).sum(axis=1)


def _least_squares(form: Form, measured: LogPaces) -> Array:
    """Parameters with the least squares, by the Levenberg-Marquardt method within the bounds."""
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
    """Boundary of the confidence region: bisection along rays from the best parameters, on all rays at once."""
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
    found[found < 1e-15] = 0.0  # rounding errors at the lower bound
    return found


def _rays(form: Form, measured: LogPaces, best: Array) -> Array:
    """Directions from the best parameters: along the axes, and dense where the region is long."""
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
    """Length of each ray up to the first bound."""
    room = np.where(rays > 0, most - best, best)
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.where(rays == 0, np.inf, room / np.abs(rays))
    return lengths.min(axis=1)
