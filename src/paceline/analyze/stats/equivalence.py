"""Comparison of accuracies over repeats: different by one test, equal within a margin by another, or undecided.

Repeats of two points with the same number have the same seed: equal initial weights and order of samples. Differences
are therefore taken within each repeat, where effects of the seed cancel, and tested as one sample:

    different   |mean| / (s / √n) beyond Student's t with n − 1 degrees of freedom        (two-sided)
    equal       mean + margin and margin − mean both beyond it, on one side each          (two one-sided tests, TOST:
                                                                                           D. J. Schuirmann, 1987)

p-values of all points of a study are corrected by Holm's method, separately for each test. A significant difference
below the margin is both different and equal. Five repeats are required.

If a failed run is left out, no equality is called: a training that fails sometimes is not equal to one that never
does.

Assumes: differences are about normal, as means over thousands of test samples are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.analyze.stats.intervals import CONFIDENCE, FEWEST_FOR_INTERVAL
from paceline.analyze.stats.students_t import quantile, tail
from paceline.analyze.stats.two_samples import holm
from paceline.records.learning import AccuracyCheck

LEVEL = 1 - CONFIDENCE
MARGIN = 0.005
"""Half a point: most published tables round to it."""

Accuracies = Mapping[int, float]
"""Test accuracy by number of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Tests of the differences within repeats, without correction for multiple tests."""

    mean: float
    low: float
    high: float
    p_different: float
    p_equal: float
    n: int


def paired(differences: Sequence[float], margin: float) -> Paired:
    """Mean of at least two differences, its 95 % interval, and the p-values of both tests."""
    n = len(differences)
    assert n > 1, "fewer than two differences"
    mean, error = statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(n)
    half = quantile((1 + CONFIDENCE) / 2, n - 1) * error
    return Paired(
        mean=mean,
        low=mean - half,
        high=mean + half,
        p_different=2 * _tail(abs(mean), error, n),
        p_equal=max(_tail(margin + mean, error, n), _tail(margin - mean, error, n)),
        n=n,
    )


def _tail(distance: float, error: float, n: int) -> float:
    """One-sided p-value of a distance; without spread 0, 0.5 or 1 by its sign."""
    if error == 0:
        return 0.0 if distance > 0 else 0.5 if distance == 0 else 1.0
    return tail(distance / error, n - 1)


def check(
    point_id: str, against: str, own: Accuracies, other: Accuracies, margin: float, *, left_out: bool = False
) -> AccuracyCheck | None:
    """Tests of a point's accuracies against another's, not yet corrected; None if they share no repeat.

    `left_out`: a failed run of either point was left out.
    """
    shared = [run for run in sorted(own.keys() & other.keys()) if math.isfinite(own[run]) and math.isfinite(other[run])]
    whole = not left_out and all(math.isfinite(value) for value in (*own.values(), *other.values()))
    differences = [own[run] - other[run] for run in shared]
    if not differences:
        return None
    found = AccuracyCheck(
        point_id=point_id,
        against=against,
        difference=statistics.fmean(differences),
        low=None,
        high=None,
        n=len(differences),
        margin=margin,
        p_different=None,
        p_equal=None,
        different=False,
        equal=False,
    )
    if len(differences) < FEWEST_FOR_INTERVAL:
        return found
    tested = paired(differences, margin)
    p_equal = tested.p_equal if whole else None
    return replace(found, low=tested.low, high=tested.high, p_different=tested.p_different, p_equal=p_equal)


def corrected(found: Sequence[AccuracyCheck]) -> tuple[AccuracyCheck, ...]:
    """The checks with corrected p-values, and their results."""
    different = _holm({each.point_id: each.p_different for each in found})
    equal = _holm({each.point_id: each.p_equal for each in found})
    return tuple(
        replace(
            each,
            p_different=(p := different.get(each.point_id)),
            p_equal=(q := equal.get(each.point_id)),
            different=p is not None and p <= LEVEL,
            equal=q is not None and q <= LEVEL,
        )
        for each in found
    )


def _holm(ps: Mapping[str, float | None]) -> dict[str, float]:
    """The known p-values, corrected by Holm's method."""
    tested = {name: p for name, p in ps.items() if p is not None}
    return dict(zip(tested, holm(list(tested.values())), strict=True))
