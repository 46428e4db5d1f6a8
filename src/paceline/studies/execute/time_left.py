"""Remaining time of a study, from the times of its runs so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from paceline.launch.launcher import Progress
from paceline.records.study import Run
from paceline.studies.folder.estimates import Estimates

QUEUED = "queued"
"""Prefix of the phase of a queued run; the scheduler's reason may follow."""


class Pace:
    """Remaining time from the progress of the current run and the estimates of the others.

    Assumes that a run is its startup and equal steps. Time in a queue is not predicted.
    """

    def __init__(self, estimates: Estimates, clock: Callable[[], float] = time.monotonic) -> None:
        self._estimates = estimates
        self._clock = clock
        self._began_at = self._first_step_at = clock()

    def start(self) -> None:
        """A run begins."""
        self._began_at = self._first_step_at = self._clock()

    def waiting(self, progress: Progress) -> None:
        """Restart the clock while a run is queued."""
        if progress.phase.startswith(QUEUED):
            self.start()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began, without time in a queue."""
        return self._clock() - self._began_at

    def left_s(self, run: Run, progress: Progress, pending: Iterable[Run]) -> float | None:
        """Seconds until the last of the pending runs ends; None before anything is known."""
        now = self._clock()
        if progress.step == 0:
            self._first_step_at = now
        whole_s = self._whole_s(run, progress, now)
        if whole_s is None:
            return None
        left_s = max(0.0, whole_s - (now - self._began_at))
        # Before the first run is finished, the others are assumed to take as long as this one.
        return left_s + sum((self._expected_s(other) or whole_s) for other in pending)

    def _whole_s(self, run: Run, progress: Progress, now: float) -> float | None:
        """Total seconds of the current run; None if unknown."""
        expected_s = self._expected_s(run)
        # The first steps are slower than the rest.
        if expected_s is not None or progress.step < 5 or progress.total_steps == 0:
            return expected_s
        stepping_s = (now - self._first_step_at) * progress.total_steps / progress.step
        return self._first_step_at - self._began_at + stepping_s

    def _expected_s(self, run: Run) -> float | None:
        return self._estimates.wall_s(run.point) if self._estimates.measured else None
