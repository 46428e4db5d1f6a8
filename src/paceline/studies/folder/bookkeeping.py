"""State of a study folder: finished, failed and damaged runs.

A run is finished if its `result.json` and `manifest.json` are valid and match its point,
number and seed. A damaged run folder is moved aside, never removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paceline.errors import FolderError, RunError, StorageError
from paceline.records.results import NotRun
from paceline.records.run import Manifest, RunResult
from paceline.records.study import Point, Run, Study
from paceline.storage.codec import (
    optional_record,
    read_record,
    storage_error,
    sync_folder,
    write_atomically,
    write_record,
)
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.folder.lock import StudyLock, holder_of, in_use, is_lock_file
from paceline.studies.load.toml_text import study_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPoints:
    """`points.json`: a study and its points: with the runs, all input of a report.

    It includes the study, so both are always of the same execution.
    """

    SCHEMA = "paceline.points/1"

    study: Study
    points: tuple[Point, ...]
    not_run: tuple[NotRun, ...] = ()
    """Points that did not fit on the machine or cluster, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """`failure.json`: why the last attempt at a run failed; removed when a later one succeeds."""

    SCHEMA = "paceline.failure/1"

    message: str
    failed_at: str
    """ISO 8601."""
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Manifest and result of a finished run."""

    manifest: Manifest
    result: RunResult


def is_study(folder: Path) -> bool:
    """Whether a folder has a study."""
    return StudyFolder(folder).study.is_file()


def check_folder(folder: Path) -> None:
    """Raise FolderError if a study cannot use a folder; nothing is written."""
    with _in_words(folder / "study.toml"):
        _check_folder(folder)


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise FolderError(
            f"{folder} is a file.", right="A study needs a folder.", next="Choose another with --out DIR."
        )
    if folder.is_dir() and not is_study(folder) and not _is_unused(folder):
        raise FolderError(
            f"{folder} is not a study: it holds other files and no study.toml.",
            right="A study goes into a new or empty folder, or continues in its own.",
            next="Choose another folder with --out DIR.",
        )
    holder = holder_of(StudyFolder(folder).lock)
    if holder is not None:
        raise in_use(folder, holder)
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise FolderError(
            f"{folder} cannot be written to: {'it' if parent == folder else parent} is read-only.",
            right="Paceline writes its runs and reports there.",
            next="Choose another folder with --out DIR.",
        )


def _is_unused(folder: Path) -> bool:
    """Whether a folder has only lock and temporary files, of a study that was killed before its first file."""
    return all(is_lock_file(path) or path.name.startswith(".study.toml.") for path in folder.iterdir())


def move_study_aside(folder: Path) -> Path | None:
    """Move an old study aside and return its new path; None if there is no study."""
    if not is_study(folder):
        return None
    # The lock moves with the folder: no other study can start in it.
    with StudyLock(StudyFolder(folder).lock) as lock:
        moved = _move_aside(folder, "old")
        lock.move(StudyFolder(moved).lock)
    return moved


def write_study(folder: StudyFolder, study: Study, points: Sequence[Point], not_run: Sequence[NotRun] = ()) -> None:
    """Write the resolved study: `study.toml` for people, `points.json` for reports."""
    record = StudyPoints(study=study, points=tuple(points), not_run=tuple(not_run))
    write_atomically(folder.study, study_toml(study).encode())
    write_record(folder.points_file, record)


def finished(folder: RunFolder, run: Run) -> Finished | None:
    """Manifest and result of a finished run; None if it is not finished; StorageError if it is damaged."""
    with _in_words(folder.result):
        if not folder.result.exists():
            return None
    result, manifest = read_record(folder.result, RunResult), read_record(folder.manifest, Manifest)
    wanted = (run.point.point_id, run.number, run.seed)
    for path, found in ((folder.result, result), (folder.manifest, manifest)):
        if (found.point_id, found.run, found.seed) != wanted:
            raise StorageError(f"{path} belongs to another run: run {found.run} of {found.point_id}.")
    return Finished(manifest=manifest, result=result)


def finished_or_none(folder: RunFolder, run: Run) -> Finished | None:
    """Manifest and result of a finished run; None if it is not finished or damaged."""
    try:
        return finished(folder, run)
    except StorageError:
        return None


def unfinished(folder: StudyFolder, runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs that are not finished."""
    return tuple(run for run in runs if finished_or_none(folder.run(run.point.point_id, run.number), run) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The state of a run."""

    finished: Finished | None
    attempt: int
    """The number of the next attempt, from 1 on."""
    note: str | None
    """What was found damaged and moved aside."""


def run_state(folder: RunFolder, run: Run, *, going_on: bool = False) -> RunState:
    """The state of a run; its folder is prepared for the next attempt if it is not finished.

    If its ranks are still running (`going_on`), that is the next attempt, and the folder is not touched.
    """
    try:
        done = finished(folder, run)
        with _in_words(folder.manifest):
            before = read_record(folder.manifest, Manifest).attempt if folder.manifest.exists() else 0
    except StorageError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
            raise  # the disk does not respond: the files may be valid
        moved = _move_aside(folder.path, "damaged")
        return RunState(finished=None, attempt=1, note=f"{error.what} It is run again; the old files are in {moved}.")
    if done is None and not going_on:
        remove_temporary_files(folder.path)
    return RunState(finished=done, attempt=before if going_on else before + 1, note=None)


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files of a killed process; the caller has to be the only writer."""
    with _in_words(folder / "study.toml"):
        for path in folder.glob(".*.tmp"):
            if not is_lock_file(path):
                path.unlink(missing_ok=True)


def failure_of(folder: RunFolder) -> Failure | None:
    """Why the last attempt at a run failed; None if it did not fail, or if the file cannot be read."""
    return optional_record(folder.failure, Failure)


def write_failure(folder: RunFolder, error: RunError, attempt: int) -> None:
    """Write why a run failed, for later reports."""
    failed_at = datetime.now().astimezone().isoformat(timespec="seconds")
    write_record(folder.failure, Failure(message=str(error), failed_at=failed_at, attempt=attempt))


def remove_failure(folder: RunFolder) -> None:
    """Remove the failure of an earlier attempt at a finished run."""
    with _in_words(folder.failure):
        folder.failure.unlink(missing_ok=True)


def _move_aside(path: Path, word: str) -> Path:
    number = 1
    while (target := path.with_name(f"{path.name}.{word}-{number}")).exists():
        number += 1
    with _in_words(target):
        os.rename(path, target)
        sync_folder(path.parent)
    return target


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Convert an OSError about `path` into an error for the user."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error
