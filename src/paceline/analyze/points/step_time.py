"""Seconds of one step, which are constant over ranks in ideal weak scaling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paceline.records.results import Interval, PointResult


def step_times(points: Iterable[PointResult]) -> dict[str, Interval]:
    """point_id -> seconds per global batch, for points with a known throughput and batch.

    Assumes: the median of reciprocals is the reciprocal of the median, which holds for an odd number of repeats.
    """
    return {
        point.point_id: _over(point.point.batch_global, point.samples_per_s)
        for point in points
        if point.point.script is None and point.samples_per_s is not None and point.samples_per_s.low > 0
    }


def _over(samples: int, samples_per_s: Interval) -> Interval:
    return replace(
        samples_per_s,
        median=samples / samples_per_s.median,
        low=samples / samples_per_s.high,
        high=samples / samples_per_s.low,
    )
