"""A study that another process runs: its finished runs, its current run, and whether its process is alive.

Nothing is written, locked or renamed. A finished run is read once; of the others only the next few are checked,
because runs are executed in order. So the cost of a poll does not depend on the number of runs.
Everything is read again if the study in the folder
changes: by --fresh, by other ranks, or because another process took it over.
"""

from __future__ import annotations

import itertools
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import FolderError, StorageError
from paceline.records.live_study import (
    FAILED,
    FINISHED,
    KILLED,
    RUNNING,
    SILENT,
    STOPPED,
    PointLook,
    RunLook,
    StudyLook,
)
from paceline.records.run import Manifest, RunResult
from paceline.records.settings import DataSettings
from paceline.records.study import Run, point_label
from paceline.storage.codec import optional_record, read_record
from paceline.storage.folder import RunFolder, StudyFolder, instant_s, modified_at_s
from paceline.studies.expand.expand import schedule
from paceline.studies.folder import bookkeeping
from paceline.studies.folder.estimates import Estimates
from paceline.studies.folder.lock_holder import BEAT_S, Holder, is_stale, read_holder, since_heartbeat_s
from paceline.studies.folder.watched_run import RunWatcher
from paceline.units import counted, duration_text

_NEXT_RUNS = 64
"""Unfinished runs that are checked per poll; the current run is among them."""
_RESULTS_A_LOOK = 200
"""Finished runs that are read per poll: about 0.2 s."""
_SILENT_S = 3 * BEAT_S
REPORT_S = 20.0
"""Seconds after the last result in which the report is still expected."""

Key = tuple[str, int]


class StudyWatcher:
    """Polls the folder of a study."""

    def __init__(self, folder: Path) -> None:
        self._place = StudyFolder(folder)
        self._identity: tuple[object, ...] = ()
        self._token = ""
        self._known: bookkeeping.StudyPoints | None = None

    def look(self, *, whole: bool = False) -> StudyLook:
        """The current state of the study; `whole` reads all finished runs at once."""
        holder, gone, silent_s = self._holder()
        self._read_study(holder)
        known = self._known
        assert known is not None
        present = holder is not None and not gone
        self._settle(holder if present else None, None if whole else _RESULTS_A_LOOK)
        current = self._current(holder if present else None)
        state, told = self._state(holder, gone, silent_s)
        run = None if state == FINISHED else self._watch(current)
        expected_s, pending_s, unknown = self._expectations(current)
        return StudyLook(
            folder=str(self._place.path),
            name=known.study.name,
            state=state,
            told=told,
            points=tuple(self._points()),
            run=run,
            expected_s=expected_s,
            pending_s=pending_s,
            pending_unknown=unknown,
            unread=len(self._unread),
            report=self._report() if not present else None,
            next=self._next(state),
        )

    def _read_study(self, holder: Holder | None) -> None:
        """Read the points if they have changed; FolderError if there is no study."""
        self._token = holder.token if holder else self._token  # a released lock changes nothing
        identity = (_identity(self._place.path), _identity(self._place.points_file), self._token)
        if self._known is not None and (identity == self._identity or identity[1] is None):
            return
        try:
            known = read_record(self._place.points_file, bookkeeping.StudyPoints)
        except StorageError as error:
            if self._known is not None:
                return  # being replaced
            raise no_study(self._place.path, error) from error
        self._identity, self._known = identity, known
        runs = schedule(known.points, known.study.run.repeats)
        self._labels = {point.point_id: point_label(point, known.study.vary) for point in known.points}
        self._open: dict[Key, Run] = {(run.point.point_id, run.number): run for run in runs}
        self._unread: dict[Key, Run] = {
            key: run for key, run in self._open.items() if self._folder(key).result.exists()
        }
        self._results: dict[str, dict[int, RunResult]] = {point_id: {} for point_id in self._labels}
        self._newest_s = 0.0
        """Time of the last result, in seconds since 1970."""
        self._failures: dict[str, str] = {}
        self._samples: dict[DataSettings, int] = {}
        self._estimates = Estimates(self._samples.get)
        self._watcher: tuple[Key, RunWatcher] | None = None

    def _holder(self) -> tuple[Holder | None, bool, float]:
        """The holder of the lock, whether the lock is stale, and the seconds since its last heartbeat."""
        place, now_s = self._place.lock, time.time()
        try:
            holder = read_holder(place)
            gone = holder is not None and is_stale(holder, place, now_s=now_s)
            return holder, gone, since_heartbeat_s(place, now_s)
        except OSError:
            return None, False, 0.0  # the disk does not respond

    def _settle(self, holder: Holder | None, most: int | None) -> None:
        """Add runs that have finished or failed since the last poll."""
        for key in list(itertools.islice(self._unread, most)):
            self._finish(key, self._unread.pop(key))
        since = instant_s(holder.since) if holder else None
        for key, run in self._candidates():
            if not self._finish(key, run):
                failure = bookkeeping.failure_of(self._folder(key))
                failed_s = instant_s(failure.failed_at) if failure else None
                # A failure from before this process started does not count: the run is retried.
                if failure and (since is None or failed_s is None or failed_s >= since):
                    self._failures[key[0]] = failure.message

    def _finish(self, key: Key, run: Run) -> bool:
        """Read the result of a run; False if it is not finished."""
        if not self._folder(key).result.exists():
            return False
        done = bookkeeping.finished_or_none(self._folder(key), run)
        if done is None:
            return False
        self._open.pop(key, None)
        self._results[key[0]][key[1]] = done.result
        self._newest_s = max(self._newest_s, modified_at_s(self._folder(key).result))
        whole = [epoch.samples for epoch in done.result.epochs if epoch.whole]
        if whole:
            self._samples[run.point.data] = whole[0]
        self._estimates.add(run.point, done.result)
        return True

    def _candidates(self) -> list[tuple[Key, Run]]:
        """Runs that may be current or next: no run of a failed point."""
        left = (
            (key, run) for key, run in self._open.items() if key[0] not in self._failures and key not in self._unread
        )
        return list(itertools.islice(left, _NEXT_RUNS))

    def _current(self, holder: Holder | None) -> Key | None:
        """The current run: the first candidate. Without a process, the run that was started last."""
        begun = [(key, at) for key, _ in self._candidates() if (at := self._launched_at_s(key)) is not None]
        if holder is None:
            failed = [key for key in self._open if key[0] in self._failures]
            begun += [(key, at) for key in failed[:_NEXT_RUNS] if (at := self._launched_at_s(key)) is not None]
            return max(begun, key=lambda found: found[1])[0] if begun else None
        since_s = instant_s(holder.since)
        for key, at in begun:
            # A scheduler's job outlives the process that submitted it.
            if since_s is None or at >= since_s - 1 or self._folder(key).job.exists():
                return key
        return None

    def _launched_at_s(self, key: Key) -> float | None:
        manifest = optional_record(self._folder(key).manifest, Manifest)
        return instant_s(manifest.launched_at) if manifest else None

    def _watch(self, key: Key | None) -> RunLook | None:
        if key is None:
            return None
        if self._watcher is None or self._watcher[0] != key:
            self._watcher = key, RunWatcher(self._folder(key), self._labels[key[0]])
        return self._watcher[1].look()

    def _expectations(self, current: Key | None) -> tuple[float | None, float, int]:
        """Estimated seconds of the current run and of the pending runs, and the number of runs without an estimate."""
        points = {point_id: run.point for (point_id, _), run in self._open.items()}
        takes_s = {
            point_id: self._estimates.wall_s(point) if self._estimates.measured else None
            for point_id, point in points.items()
        }
        left = Counter(point_id for point_id, _ in self._open.keys() - self._unread.keys() - {current})
        known_s, unknown = 0.0, 0
        for point_id, number in left.items():
            if point_id not in self._failures:
                wall_s = takes_s[point_id]
                known_s, unknown = known_s + number * (wall_s or 0.0), unknown + number * (wall_s is None)
        return takes_s.get(current[0]) if current else None, known_s, unknown

    def _points(self) -> Iterator[PointLook]:
        assert self._known is not None
        for point_id, label in self._labels.items():
            yield PointLook(
                point_id=point_id,
                label=label,
                of=self._known.study.run.repeats,
                results=tuple(self._results[point_id].values()),
                failure=self._failures.get(point_id),
            )

    def _state(self, holder: Holder | None, gone: bool, silent_s: float) -> tuple[str, str]:
        """The state of the study, as a code and as a sentence."""
        done = sum(map(len, self._results.values())) + len(self._unread)
        left = len(self._open) - len(self._unread)
        of = done + left
        if holder is not None and holder.pid:
            who = f"process {holder.pid} on {holder.host}, since {holder.since} ({holder.command})"
            ago = duration_text(silent_s) if silent_s >= 60 else f"{max(0, round(silent_s))} s"
            if gone and left:
                told = f"It was killed: {who} is no more; its last sign of life was {ago} ago."
                return KILLED, f"{told} {done} of {of} runs are finished."
            if not gone and silent_s > _SILENT_S:
                return SILENT, f"No sign of life for {ago} of {who}."
            if not gone:
                return RUNNING, f"It is run by {who}."
        elif holder is not None and not gone:
            return RUNNING, "Somebody is at work in it: the lock does not say who."
        if not left:
            return FINISHED, f"All {counted(of, 'run')} are finished."
        if self._failures:
            return (
                FAILED,
                f"It has ended with {counted(len(self._failures), 'point')} failed: {done} of {of} runs are finished.",
            )
        return STOPPED, f"Nobody is at work in it: {done} of {of} runs are finished."

    def _report(self) -> str | None:
        """The path of the report; None if it is missing, or about to be rebuilt for the last result."""
        made_s = modified_at_s(self._place.report)
        settled = made_s >= self._newest_s or time.time() - self._newest_s > REPORT_S
        return str(self._place.report) if made_s and settled else None

    def _next(self, state: str) -> str:
        folder = str(self._place.path)
        if state in (KILLED, STOPPED, FAILED):
            return shlex.join(["paceline", "study", str(self._place.study), "--out", folder])
        return shlex.join(["paceline", "report", folder])

    def _folder(self, key: Key) -> RunFolder:
        return self._place.run(*key)


def no_study(folder: Path, error: StorageError | None) -> FolderError:
    if error is not None and StudyFolder(folder).points_file.exists():
        return FolderError(error.what, right="A study is watched by its points.json.", next=error.next)
    if not folder.exists():
        what = f"There is no folder {folder}."
    elif bookkeeping.is_study(folder) or StudyFolder(folder).lock.exists():
        what = f"The study in {folder} has not begun its first run."
    else:
        what = f"{folder} is neither a study nor a run."
    return FolderError(
        what,
        right="A study has its folder as soon as its data are there and its model is checked.",
        next=f"Start it, or wait for it, and watch it then: paceline study NAME --out {shlex.quote(str(folder))}",
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, 0) if path.is_dir() else (status.st_ino, status.st_mtime_ns)
