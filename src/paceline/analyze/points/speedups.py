"""Comparison of series at equal ranks: the fastest, and which differences are significant.

For each number of ranks the fastest point is the one with the highest median throughput; points that share cores or
have emulated hosts count only if there are no others. Every other point is compared with it by the ratio of
throughputs, paired by repeat (stats/intervals.py). They differ if the interval excludes 1 and has a coverage, which
needs five repeats. Otherwise the comparison is undecided, which does not mean equal. The coverage is that of one pair:
of twenty pairs one may differ by chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.analyze.stats.intervals import ratio_interval
from paceline.records.results import Comparison, Interval, PointResult

Throughputs = Mapping[int, float]
"""Samples per second by number of the run."""


def comparisons(rows: Sequence[PointResult], throughputs: Mapping[str, Throughputs]) -> tuple[Comparison, ...]:
    """One comparison for each number of ranks with several series."""
    by_ranks: dict[int, list[PointResult]] = {}
    for row in rows:
        by_ranks.setdefault(row.point.ranks, []).append(row)
    return tuple(
        _comparison(ranks, own, throughputs)
        for ranks, own in sorted(by_ranks.items())
        if len({r.series for r in own}) > 1
    )


def ratio(own: Throughputs, other: Throughputs) -> Interval | None:
    """Ratio of two throughputs, paired by number of the run; None if one has no values."""
    if not own or not other:
        return None
    numbers = sorted(own.keys() | other.keys())
    return ratio_interval([own.get(number) for number in numbers], [other.get(number) for number in numbers])


def _comparison(ranks: int, rows: Sequence[PointResult], throughputs: Mapping[str, Throughputs]) -> Comparison:
    ordered = [row.point_id for row in sorted(rows, key=_place)]
    fastest = throughputs[ordered[0]]
    ratios = {point_id: found for point_id in ordered if (found := ratio(throughputs[point_id], fastest)) is not None}
    undecided = tuple(point_id for point_id in ordered[1:] if point_id in ratios and not _differs(ratios[point_id]))
    return Comparison(ranks=ranks, points=tuple(ordered), ratios=ratios, undecided=undecided)


def _place(row: PointResult) -> tuple[bool, bool, float]:
    """Sort key: timed points first, then fair ones, then by throughput."""
    return row.samples_per_s is None, not row.fair, -row.samples_per_s.median if row.samples_per_s else 0.0


def _differs(interval: Interval) -> bool:
    return interval.coverage is not None and not interval.low <= 1 <= interval.high
