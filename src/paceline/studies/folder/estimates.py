"""Estimated time of a run, from finished runs of its point, else of other points.

    wall = startup + (samples of one rank) × (time per sample)

A point without finished runs is assumed to have the startup and the time per sample of the
others: its communication and load imbalance are unknown.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from paceline.records.run import RunResult
from paceline.records.settings import DataSettings
from paceline.records.study import Point

S_PER_H = 3600


@dataclass(frozen=True, slots=True)
class _Seen:
    """One finished run."""

    wall_s: float
    trained_s: float
    """Time in epochs and their evaluation, which scales with the samples of a rank."""


class Estimates:
    """Estimates of the time of runs."""

    def __init__(
        self,
        num_train: Callable[[DataSettings], int | None] = lambda data: None,
        sample_s: Callable[[Point], float | None] = lambda point: None,
    ) -> None:
        """`num_train` is the number of training samples, None if unknown.

        `sample_s` is the time of one rank of a point for one sample, as a few steps before the first run have shown it.
        """
        self._num_train = functools.cache(num_train)  # a split is drawn for each
        self._known: dict[int, tuple[Point, float | None]] = {}
        """Cache by the identity of points: estimates are requested often while a run is active."""
        self._seen: dict[str, tuple[Point, list[_Seen]]] = {}
        self._sample_s = sample_s

    def add(self, point: Point, result: RunResult) -> None:
        """Add a finished run of a point; a resumed run is ignored, because only a part of it was timed."""
        if result.resumed_from_step is None:
            trained_s = sum(epoch.epoch_s + epoch.evaluate_s for epoch in result.epochs)
            made = result.features
            # Features that it computed are cached for later runs.
            wall_s = result.wall_s - (made.ready_s if made and not made.found else 0.0)
            seen = _Seen(wall_s=wall_s, trained_s=min(trained_s, wall_s))
            self._seen.setdefault(point.point_id, (point, []))[1].append(seen)
            self._known.clear()

    @property
    def measured(self) -> bool:
        """Whether any run was finished."""
        return bool(self._seen)

    def wall_s(self, point: Point) -> float | None:
        """Seconds that a run of a point takes, without time in a queue; None if unknown."""
        if id(point) not in self._known:
            self._known[id(point)] = point, self._wall_s(point)
        return self._known[id(point)][1]

    def rank_s(self, point: Point) -> float | None:
        """Rank-seconds that a run of a point takes: servers count, the coordinator does not."""
        wall_s = self.wall_s(point)
        return None if wall_s is None else wall_s * counted_processes(point)

    def _wall_s(self, point: Point) -> float | None:
        own = self._seen.get(point.point_id)
        if own is not None:
            return statistics.median(seen.wall_s for seen in own[1])
        others = [self._scaled_s(point, other, seen) for other, runs in self._seen.values() for seen in runs]
        if others:
            return statistics.median(others)
        samples, sample_s = self._samples_of_rank(point), self._sample_s(point)
        return None if sample_s is None or samples is None else samples * sample_s

    def _scaled_s(self, point: Point, other: Point, seen: _Seen) -> float:
        samples, known = self._samples_of_rank(point), self._samples_of_rank(other)
        share = samples / known if samples and known else 1.0
        return seen.wall_s - seen.trained_s + seen.trained_s * share

    def _samples_of_rank(self, point: Point) -> float | None:
        """Samples that one rank of a point computes in total; with cached features, images pass the base once."""
        cached, tuned = point.train.cached_features, point.finetune.epochs
        if point.train.steps is not None and not (cached or tuned):
            return point.train.steps * point.batch_global / point.data_size
        num_train = self._num_train(point.data)
        if num_train is None:
            return None
        steps, epochs = point.train.steps, point.train.epochs or 0
        first = num_train if cached else epochs * num_train if steps is None else steps * point.batch_global
        return (first + tuned * num_train) / point.data_size


def counted_processes(point: Point) -> int:
    """Processes of a point that count: ranks and servers."""
    return point.ranks + point.servers
