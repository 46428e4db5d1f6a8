"""How long a run takes, before it is run: from the runs of its point, else from those of others.

    wall = what every run needs + (samples of one rank) × (time per sample)

A point that was never run is taken to need as long to start as the others, and as long per sample
of a rank: what its ranks exchange, and what they do not share equally, is not known before.
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
    """In epochs and their evaluation: what grows with the work of a rank."""


class Estimates:
    """What is known of how long runs take."""

    def __init__(
        self,
        num_train: Callable[[DataSettings], int | None] = lambda data: None,
        sample_s: Callable[[Point], float | None] = lambda point: None,
    ) -> None:
        """`num_train` says how many samples are trained on, None if unknown.

        `sample_s` is the time of one rank of a point for one sample, as a few steps before the first run have shown it.
        """
        self._num_train = functools.cache(num_train)  # a split is drawn for each
        self._known: dict[int, tuple[Point, float | None]] = {}
        """Answers by the identity of their points, asked for again and again while a run is on."""
        self._seen: dict[str, tuple[Point, list[_Seen]]] = {}
        self._sample_s = sample_s

    def add(self, point: Point, result: RunResult) -> None:
        """A run of a point was finished; one that went on from a checkpoint says nothing of a whole one."""
        if result.resumed_from_step is None:
            trained_s = sum(epoch.epoch_s + epoch.evaluate_s for epoch in result.epochs)
            made = result.features
            # Features that it computed are in the cache for the runs to come.
            wall_s = result.wall_s - (made.ready_s if made and not made.found else 0.0)
            seen = _Seen(wall_s=wall_s, trained_s=min(trained_s, wall_s))
            self._seen.setdefault(point.point_id, (point, []))[1].append(seen)
            self._known.clear()

    @property
    def measured(self) -> bool:
        """Whether any run was finished."""
        return bool(self._seen)

    def wall_s(self, point: Point) -> float | None:
        """Seconds that a run of a point takes, time in a queue left out; None before anything is known."""
        if id(point) not in self._known:
            self._known[id(point)] = point, self._wall_s(point)
        return self._known[id(point)][1]

    def rank_s(self, point: Point) -> float | None:
        """Rank-seconds that a run of a point takes: servers count, the coordinator does not."""
        wall_s = self.wall_s(point)
        return None if wall_s is None else wall_s * paid(point)

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
        """Samples that one rank of a point computes in all; images pass a base whose features are cached once."""
        cached, tuned = point.train.cached_features, point.finetune.epochs
        if point.train.steps is not None and not (cached or tuned):
            return point.train.steps * point.batch_global / point.data_size
        num_train = self._num_train(point.data)
        if num_train is None:
            return None
        steps, epochs = point.train.steps, point.train.epochs or 0
        first = num_train if cached else epochs * num_train if steps is None else steps * point.batch_global
        return (first + tuned * num_train) / point.data_size


def paid(point: Point) -> int:
    """Processes of a point that count: ranks and servers."""
    return point.ranks + point.servers
