"""Accuracies over repeats: called different by a test, and equal by another one with a margin; else neither.

Repeats of two points with the same number have the same seed: the same first weights and the same order of samples.
So differences are taken within each repeat, where what the seed does to both cancels, and tested as one sample:

    different   |mean| / (s / √n) beyond Student's t with n − 1 degrees of freedom        (two-sided)
    equal       mean + margin and margin − mean both beyond it, on one side each          (two one-sided tests, TOST:
                                                                                           D. J. Schuirmann, 1987)

p of all points of a study are corrected together by Holm's method, those of either test for themselves. A difference
may be sure and smaller than the margin: it is then both. With fewer than five repeats neither is called: a spread of
so few is itself too uncertain for a margin of half a point.

Where a run learned nothing and is left out, nothing is called equal: a way to train that fails now and then is not the
same as one that never does, however near those come that learned. What differs without it may be called so.

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
"""Half a point: below it most published tables would show the same figure."""

Accuracies = Mapping[int, float]
"""Test accuracy by number of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Differences within repeats, tested; p not corrected for anything."""

    mean: float
    low: float
    high: float
    p_different: float
    p_equal: float
    n: int


def paired(differences: Sequence[float], margin: float) -> Paired:
    """The mean of at least two differences, its 95 % interval, and the p of both tests."""
    n = len(differences)
    assert n > 1, "one difference has no spread"
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
    """P of a mean this far on one side where nothing is there; without any spread it is sure, or says nothing."""
    if error == 0:
        return 0.0 if distance > 0 else 0.5 if distance == 0 else 1.0
    return tail(distance / error, n - 1)


def check(
    point_id: str, against: str, own: Accuracies, other: Accuracies, margin: float, *, left_out: bool = False
) -> AccuracyCheck | None:
    """A point's accuracies against another's, not yet corrected; None where no repeat has both.

    `left_out` says that a run of either learned nothing and is not among them.
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
    """The same checks with either p corrected for all of them that have it, and called by it."""
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
    """Those that were tested, corrected for their number."""
    tested = {name: p for name, p in ps.items() if p is not None}
    return dict(zip(tested, holm(list(tested.values())), strict=True))
