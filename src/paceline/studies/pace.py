"""How long a study still takes, from what its runs have taken so far."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable

from paceline.launch.base import Progress
from paceline.records.study import Run


class Pace:
    """Knows how long runs took, and what the one that is running has done.

    Assumes: a run is its startup and equal steps; a point that has not run yet takes as long as the others.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._walls_s: dict[str, list[float]] = {}
        self._began_at = self._first_step_at = clock()

    def start(self) -> None:
        """A run begins."""
        self._began_at = self._first_step_at = self._clock()

    def add(self, run: Run, wall_s: float) -> None:
        """A run took so long."""
        self._walls_s.setdefault(run.point.point_id, []).append(wall_s)

    def left_s(self, run: Run, progress: Progress, pending: Iterable[Run]) -> float | None:
        """Seconds until the last of the pending runs ends; None before anything is known."""
        now = self._clock()
        if progress.step == 0:
            self._first_step_at = now
        whole_s = self._whole_s(run, progress, now)
        if whole_s is None:
            return None
        left_s = max(0.0, whole_s - (now - self._began_at))
        return left_s + sum(self._expected_s(other) or whole_s for other in pending)

    def _whole_s(self, run: Run, progress: Progress, now: float) -> float | None:
        """How long the current run takes in all."""
        expected_s = self._expected_s(run)
        # The first few steps say little: they are slower than the rest.
        if expected_s is not None or progress.step < 5 or progress.total_steps == 0:
            return expected_s
        stepping_s = (now - self._first_step_at) * progress.total_steps / progress.step
        return self._first_step_at - self._began_at + stepping_s

    def _expected_s(self, run: Run) -> float | None:
        own = self._walls_s.get(run.point.point_id)
        known = own or [wall_s for walls_s in self._walls_s.values() for wall_s in walls_s]
        return statistics.median(known) if known else None
