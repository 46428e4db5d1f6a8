"""Formulas of the scaling laws: the speed-up of N ranks over one.

    law          S(N)                                      parameters
    amdahl       N / (1 + σ (N−1))                         σ   serial fraction of the work
    gustafson    N − σ (N−1)                               σ   serial fraction of the time on N ranks
    usl          N / (1 + σ (N−1) + κ N (N−1))             σ   contention, κ   coherency

Amdahl's law is for a fixed amount of work (strong scaling), Gustafson's for work that grows with the ranks (weak
scaling). The Universal Scalability Law is for throughput, and holds for both: contention is waiting for shared
resources, coherency the cost of agreement between each pair of ranks. With κ = 0 it is Amdahl's law.

Sources: G. M. Amdahl, Validity of the single processor approach to achieving large scale computing capabilities,
AFIPS 1967. J. L. Gustafson, Reevaluating Amdahl's law, CACM 31 (1988). N. J. Gunther, A simple capacity model of
massively parallel transaction systems, CMG 1993, and Guerrilla Capacity Planning, Springer 2007.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_COHERENCY = 100.0
"""Upper bound of κ, at which two ranks are a hundred times slower than one; keeps an undetermined κ finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A law: its parameters, between 0 and `most`, and its formula."""

    name: str
    title: str
    parameters: tuple[str, ...]
    most: tuple[float, ...]
    fewest_sizes: int
    """Numbers of ranks that a fit needs: parameters + 2."""
    log_speedup: Callable[[Array, Array], Array]
    """The logarithm of S at ranks (m) for rows of parameters (k × p): k × m."""
    slopes: Callable[[Array, Array], Array]
    """Its derivatives at ranks (m) by one row of parameters: m × p."""


def _columns(ranks: Array) -> Array:
    """Factors of the parameters of the USL at each number of ranks: N−1 and N(N−1)."""
    return np.stack([ranks - 1, ranks * (ranks - 1)], axis=1)


def _divided(ranks: Array, parameters: Array) -> Array:
    slowed = 1 + parameters @ _columns(ranks)[:, : parameters.shape[1]].T
    return np.log(ranks) - np.log(slowed)


def _divided_slopes(ranks: Array, parameters: Array) -> Array:
    columns = _columns(ranks)[:, : len(parameters)]
    return -columns / (1 + columns @ parameters)[:, None]


def _grown(ranks: Array, parameters: Array) -> Array:
    return np.log(ranks - parameters @ (ranks - 1)[None, :])


def _grown_slopes(ranks: Array, parameters: Array) -> Array:
    return (-(ranks - 1) / (ranks - parameters[0] * (ranks - 1)))[:, None]


AMDAHL = Form(
    name="amdahl",
    title="Amdahl's law",
    parameters=("serial",),
    most=(1.0,),
    fewest_sizes=3,
    log_speedup=_divided,
    slopes=_divided_slopes,
)
GUSTAFSON = Form(
    name="gustafson",
    title="Gustafson's law",
    parameters=("serial",),
    most=(1.0,),
    fewest_sizes=3,
    log_speedup=_grown,
    slopes=_grown_slopes,
)
USL = Form(
    name="usl",
    title="the Universal Scalability Law",
    parameters=("contention", "coherency"),
    most=(1.0, MOST_COHERENCY),
    fewest_sizes=4,
    log_speedup=_divided,
    slopes=_divided_slopes,
)


def limits(parameters: Array) -> Array:
    """The speed-up that Amdahl's law never exceeds, 1/σ, for rows of its parameter."""
    with np.errstate(divide="ignore"):
        return 1 / parameters[:, 0]


def peaks(parameters: Array) -> Array:
    """Number of ranks with the highest speed-up by the USL, √((1−σ)/κ), at least 1; infinite without coherency."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((1 - parameters[:, 0]) / parameters[:, 1])
    return np.maximum(np.where(parameters[:, 1] == 0, np.inf, found), 1.0)


def peak_speedups(parameters: Array) -> Array:
    """Speed-up over one rank at the peak, for rows with coherency."""
    at = peaks(parameters)
    return at / (1 + (parameters * _columns(at)).sum(axis=1))
