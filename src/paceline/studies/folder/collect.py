"""A study folder -> its study, points and finished runs: the input of a report.

Reads only that folder and writes nothing: the study file, the data and the model may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paceline.errors import FolderError, StorageError
from paceline.records.results import NotRun
from paceline.records.run import Machine, Manifest, RunResult
from paceline.records.study import Point, Run, Study
from paceline.records.trace_summary import RunTrace
from paceline.storage.codec import optional_record, read_record
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.expand.expand import schedule
from paceline.studies.folder import bookkeeping


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run with its result."""

    result: RunResult
    folder: RunFolder
    manifest: Manifest
    machine: Machine | None
    """None if `machine.json` is missing or damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The contents of a study folder."""

    study: Study
    points: tuple[Point, ...]
    """In the order of the study file."""
    runs: tuple[FinishedRun, ...]
    """By point, then by number."""
    machine: Machine | None
    """Of a finished run with the most ranks: a single rank does not show cores and backend."""
    failures: dict[str, str]
    """point_id -> why runs of it are missing."""
    commit: str | None
    """Paceline's, of the finished runs; several are separated by commas."""
    not_run: tuple[NotRun, ...] = ()
    """Points that were not run, and why."""

    def run_of(self, result: RunResult) -> FinishedRun:
        """The run of a result."""
        named = (result.point_id, result.run)
        return next(run for run in self.runs if (run.result.point_id, run.result.run) == named)


def collect(folder: Path) -> Collected:
    """The study in a folder with its finished runs; FolderError if there is none."""
    place = _study_folder(folder)
    known = read_record(place.points_file, bookkeeping.StudyPoints)
    runs: list[FinishedRun] = []
    failures: dict[str, str] = {}
    for point in known.points:
        for run in schedule([point], known.study.run.repeats):
            where = place.run(point.point_id, run.number)
            finished, reason = _finished(where, run)
            if finished is not None:
                runs.append(finished)
            elif reason is not None:
                failures.setdefault(point.point_id, reason)
    return Collected(
        study=known.study,
        points=known.points,
        runs=tuple(runs),
        machine=next((run.machine for run in sorted(runs, key=_ranks, reverse=True) if run.machine is not None), None),
        failures=failures,
        commit=", ".join(dict.fromkeys(run.manifest.commit for run in runs if run.manifest.commit)) or None,
        not_run=known.not_run,
    )


def traces(run: FinishedRun) -> RunTrace:
    """The spans of a run's ranks on the launcher's clock."""
    from paceline.storage.run_trace import read_run  # imports pyarrow, which most callers do not need

    return read_run(run.folder)


def _study_folder(folder: Path) -> StudyFolder:
    if not bookkeeping.is_study(folder):
        missing, foreign = f"There is no folder {folder}.", f"{folder} is not a study: it has no study.toml."
        raise FolderError(
            foreign if folder.exists() else missing,
            right="A report is made from the folder of a study.",
            next="paceline study makes one.",
        )
    place = StudyFolder(folder)
    if not place.points_file.exists():
        raise FolderError(
            f"The study in {folder} was stopped before its first run.",
            right="There is nothing to report yet.",
            next=f"Continue it: paceline study {place.study} --out {folder}",
        )
    return place


def _finished(folder: RunFolder, run: Run) -> tuple[FinishedRun | None, str | None]:
    """A finished run, or why it is missing; neither if it was not run yet."""
    try:
        done = bookkeeping.finished(folder, run)
    except StorageError as error:
        return None, error.what
    if done is None:
        failure = bookkeeping.failure_of(folder)
        return None, failure.message if failure else None
    return FinishedRun(
        result=done.result, folder=folder, manifest=done.manifest, machine=optional_record(folder.machine, Machine)
    ), None


def _ranks(run: FinishedRun) -> int:
    return run.result.ranks
