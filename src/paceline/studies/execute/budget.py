"""`--budget 12`: a study stops before it spends more than 12 rank-hours, over all its executions.

    spent = Σ (ranks + servers) × wall time    over every attempt at a run in the folder, finished or not

All of it is read from the folder: a finished attempt from its result, the last failed one from its manifest
and the age of its files, earlier ones from `attempts.csv`, which is written when a run is retried.
Time in a queue is not counted. A run is started if the sum with its estimate is within
the budget, so the budget is exceeded at most by the estimation error of one run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline import catalog
from paceline.errors import RequestError
from paceline.records.run import Manifest, RunResult
from paceline.records.study import Point
from paceline.storage.codec import optional_record, write_atomically
from paceline.storage.folder import RunFolder, StudyFolder, instant_s, modified_at_s
from paceline.studies.folder.bookkeeping import failure_of
from paceline.studies.folder.estimates import S_PER_H, Estimates, counted_processes
from paceline.units import number_text

_COLUMNS = ("launched_at", "attempt", "ranks", "wall_s")
_ROUNDING = 1e-12
"""Relative error of hours that were made of seconds: a run that fits the budget exactly is not refused for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a run: a line of `attempts.csv`."""

    launched_at: str
    """As in the manifest: identifies the attempt."""
    attempt: int
    ranks: int
    """Processes that count: ranks and servers."""
    wall_s: float

    @property
    def rank_s(self) -> float:
        """What it spent, in rank-seconds."""
        return self.ranks * self.wall_s


class Budget:
    """The rank-hours of a study: its limit, what is spent, and what the next run would take."""

    def __init__(self, limit_h: float | None, folder: StudyFolder, estimates: Estimates) -> None:
        """None is no limit: the folder is not read then."""
        self._limit_h = limit_h
        self._estimates = estimates
        self._rank_s: dict[tuple[Path, str], float] = {}
        if limit_h is not None:
            for run in folder.path.glob("points/*/runs/*"):
                for attempt in attempts(RunFolder(run)):
                    self._rank_s[run, attempt.launched_at] = attempt.rank_s

    @property
    def spent_h(self) -> float:
        """Rank-hours of all attempts so far."""
        return sum(self._rank_s.values()) / S_PER_H

    def spend(self, folder: RunFolder, manifest: Manifest, wall_s: float) -> None:
        """Add the time of an attempt, finished or not."""
        if self._limit_h is not None:
            self._rank_s[folder.path, manifest.launched_at] = counted_processes(manifest.point) * wall_s

    def refusal(self, point: Point) -> str | None:
        """Why a run of this point exceeds the budget; None if it does not."""
        if self._limit_h is None:
            return None
        next_h = (self._estimates.rank_s(point) or 0.0) / S_PER_H
        if self.spent_h < self._limit_h and self.spent_h + next_h <= self._limit_h * (1 + _ROUNDING):
            return None
        about = f", and the next run would take about {number_text(next_h)} more" if next_h else ""
        return f"the budget is {self._limit_h:g} rank-hours, {number_text(self.spent_h)} are spent{about}"


def check_budget(limit_h: float | None) -> None:
    """Raise RequestError if a budget is not a positive finite number."""
    if limit_h is not None and not 0 < limit_h < float("inf"):
        raise RequestError(
            f"--budget {limit_h:g} is not a number of rank-hours.",
            right="It is finite and above 0: --budget 12 stops a study before it spends more than 12 rank-hours.",
        )


def attempts(folder: RunFolder) -> tuple[Attempt, ...]:
    """Every recorded attempt at a run."""
    earlier = tuple(_written(folder.attempts))
    last = _last(folder)
    known = {attempt.launched_at for attempt in earlier}
    return earlier if last is None or last.launched_at in known else (*earlier, last)


def record_attempts(folder: RunFolder) -> None:
    """Write `attempts.csv` of a run, before the next attempt overwrites the files of the last one."""
    known = attempts(folder)
    if not known:
        return
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(_COLUMNS)
    lines.writerows([getattr(attempt, name) for name in _COLUMNS] for attempt in known)
    write_atomically(folder.attempts, text.getvalue().encode())


def _written(path: Path) -> Iterator[Attempt]:
    try:
        lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        try:
            yield Attempt(
                launched_at=line["launched_at"],
                attempt=int(line["attempt"]),
                ranks=int(line["ranks"]),
                wall_s=float(line["wall_s"]),
            )
        except (KeyError, TypeError, ValueError):
            continue  # edited by hand: an invalid line is not counted


def _last(folder: RunFolder) -> Attempt | None:
    """The last attempt at a run, from its manifest; None if it is missing or cannot be read."""
    manifest = optional_record(folder.manifest, Manifest)
    if manifest is None:
        return None
    return Attempt(
        launched_at=manifest.launched_at,
        attempt=manifest.attempt,
        ranks=counted_processes(manifest.point),
        wall_s=_wall_s(folder, manifest),
    )


def _wall_s(folder: RunFolder, manifest: Manifest) -> float:
    result = optional_record(folder.result, RunResult)
    if result is not None and result.attempt == manifest.attempt:
        return result.wall_s
    started_at = _started_at(folder, manifest)
    return 0.0 if started_at is None else max(0.0, _ended_at(folder, manifest) - started_at)


def _started_at(folder: RunFolder, manifest: Manifest) -> float | None:
    """Wall-clock time when the first rank started, or of the launch without a queue; None if it was still queued."""
    starts = [modified_at_s(path) for path in folder.ranks.glob("*.start")]
    if starts or catalog.launcher(manifest.point.launcher).queues:
        return min(starts, default=None)
    return instant_s(manifest.launched_at)


def _ended_at(folder: RunFolder, manifest: Manifest) -> float:
    failure = failure_of(folder)
    if failure is not None and failure.attempt == manifest.attempt:
        return instant_s(failure.failed_at) or 0.0
    return max((modified_at_s(path) for path in folder.path.rglob("*") if path.is_file()), default=0.0)
