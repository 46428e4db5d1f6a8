"""Execute a study: resumable at any moment, because a run is finished when its result is on the disk.

    check folder ─▶ data ─▶ points ─▶ memory, preflight ─▶ lock ─▶ study.toml, points.json ─▶ for each run:
        finished? skip : manifest.json ─▶ launcher ─▶ machine.json ─▶ result.json (last, atomically)

Nothing is written into the folder before the data are there and the model fits. A run that fails
ends its point; the other points go on. A full disk and Ctrl-C end the study; what is finished stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paceline import catalog
from paceline.data import store
from paceline.data.store import Prepared
from paceline.errors import RunError, StorageError
from paceline.launch import machine
from paceline.launch.base import Launcher, Placement, Progress
from paceline.records.codec import write_record
from paceline.records.folder import RunFolder, StudyFolder
from paceline.records.run import Manifest, RunResult
from paceline.records.study import Point, Run, Study
from paceline.studies import bookkeeping
from paceline.studies.compose import new_manifest, run_result
from paceline.studies.events import (
    DataReady,
    Event,
    Note,
    RunFailed,
    RunFinished,
    RunProgress,
    RunSkipped,
    RunStarted,
    StudyStarted,
)
from paceline.studies.expand import expand, schedule
from paceline.studies.files import model_digest, model_path, with_absolute_paths
from paceline.studies.load import LoadedStudy
from paceline.studies.lock import StudyLock
from paceline.studies.pace import Pace
from paceline.studies.preflight import check_model

# What the digits, which stand in where MNIST cannot be had, are too small for, and what fits them.
_SMALLER_MODELS = {"cnn-690k": "cnn-small"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What became of a study."""

    folder: Path
    failures: dict[str, str]
    """point_id -> why a run of it failed."""
    prepared: Prepared
    ran: int
    """Runs that this execution finished."""
    skipped: int
    """Runs that an earlier one had finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A study with everything that its runs need."""

    study: Study
    folder: StudyFolder
    points: tuple[Point, ...]
    runs: tuple[Run, ...]
    prepared: Prepared
    model_file: Path | None
    launcher: Launcher
    events: Callable[[Event], None]

    def manifest(self, run: Run, placement: Placement, attempt: int) -> Manifest:
        return new_manifest(
            run,
            study=self.study.name,
            data_folder=self.prepared.folder,
            model_file=self.model_file,
            placement=placement,
            attempt=attempt,
        )

    def run_folder(self, run: Run) -> RunFolder:
        return self.folder.run(run.point.point_id, run.number)


def execute(
    loaded: LoadedStudy,
    folder: Path,
    *,
    fresh: bool = False,
    events: Callable[[Event], None] = lambda event: None,
    launcher: Launcher | None = None,
    preflight: bool = True,
    cache: Path | None = None,
) -> Execution:
    """Run what is not finished yet of a study; `fresh` moves an old study in the folder aside first."""
    folder = folder.absolute()
    bookkeeping.check_folder(folder)
    job = _job(loaded, folder, events, launcher, cache)
    _check(job, job.runs if fresh else bookkeeping.unfinished(job.folder, job.runs), preflight=preflight)
    if fresh and (moved := bookkeeping.set_aside(folder)) is not None:
        events(Note(text=f"The old study was moved to {moved}."))
    with StudyLock(job.folder.lock, say=lambda text: events(Note(text=text))) as lock:
        bookkeeping.sweep(folder)
        bookkeeping.write_study(job.folder, job.study, job.points)
        return _Runner(job, lock).execution()


def _job(
    loaded: LoadedStudy,
    folder: Path,
    events: Callable[[Event], None],
    launcher: Launcher | None,
    cache: Path | None,
) -> _Job:
    study, prepared = _with_data(with_absolute_paths(loaded.study, loaded.base), loaded.base, events, cache)
    events(DataReady(prepared=prepared))
    file = model_path(study.model.name, loaded.base)
    points = expand(study, data_digest=prepared.dataset.digest, model_digest=model_digest(file))
    return _Job(
        study=study,
        folder=StudyFolder(folder),
        points=points,
        runs=schedule(points, study.run.repeats),
        prepared=prepared,
        model_file=file,
        launcher=launcher or catalog.load("launcher", study.run.launcher)(),
        events=events,
    )


def _check(job: _Job, runs: Sequence[Run], *, preflight: bool) -> None:
    """Refuse what would fail in any of the runs to come: the one with the most ranks asks for the most."""
    if not runs:
        return
    widest = max(runs, key=lambda run: run.point.ranks)
    job.launcher.check(widest.point)
    if preflight:
        check_model(job.manifest(widest, job.launcher.placement(widest.point), attempt=1))


def _with_data(study: Study, base: Path, events: Callable[[Event], None], cache: Path | None) -> tuple[Study, Prepared]:
    """The data set, and the study as it then applies."""
    prepared, data = store.prepare_or_digits(
        study.data, base=base, cache=cache, say=lambda text: events(Note(text=text))
    )
    smaller = _SMALLER_MODELS.get(study.model.name)
    if data.dataset != study.data.dataset and smaller is not None:
        note = f"{prepared.note}, and the model {smaller} in place of {study.model.name}, which needs larger images"
        prepared = replace(prepared, note=note)
        study = replace(study, model=replace(study.model, name=smaller))
    store.split(prepared.dataset, data)  # refuses what the data set is too small for, before anything is started
    return replace(study, data=data), prepared


class _Runner:
    """Takes the runs of a job in turn, under the folder's lock."""

    def __init__(self, job: _Job, lock: StudyLock) -> None:
        self._job = job
        self._lock = lock
        self._pace = Pace()
        self._failures: dict[str, str] = {}

    def execution(self) -> Execution:
        """Run everything that is not finished."""
        job, ran, skipped = self._job, 0, 0
        self._announce()
        for index, run in enumerate(job.runs, start=1):
            settled = bookkeeping.settle(job.run_folder(run), run)
            if settled.note is not None:
                job.events(Note(text=settled.note))
            if settled.finished is not None:
                skipped += 1
                job.events(RunSkipped(run=run, index=index, total=len(job.runs), result=settled.finished.result))
            elif run.point.point_id in self._failures:
                job.events(RunSkipped(run=run, index=index, total=len(job.runs), result=None))
            else:
                ran += self._try(run, index, settled.attempt)
        return Execution(
            folder=job.folder.path, failures=self._failures, prepared=job.prepared, ran=ran, skipped=skipped
        )

    def _announce(self) -> None:
        """Say what is about to be run, and learn from the runs that are finished how long one takes."""
        job, num_finished = self._job, 0
        for run in job.runs:
            done = bookkeeping.finished_or_none(job.run_folder(run), run)
            if done is not None:
                num_finished += 1
                self._pace.add(run, done.result.wall_s)
        job.events(
            StudyStarted(
                study=job.study,
                folder=job.folder.path,
                points=job.points,
                placements=tuple(job.launcher.placement(point).text for point in job.points),
                total=len(job.runs),
                finished=num_finished,
            )
        )

    def _try(self, run: Run, index: int, attempt: int) -> bool:
        """Execute one run; False where it failed, which ends its point."""
        job, total = self._job, len(self._job.runs)
        job.events(RunStarted(run=run, index=index, total=total, attempt=attempt))
        try:
            result = self._run(run, index, attempt)
        except StorageError:
            raise  # a full disk fails every other run too
        except RunError as error:
            self._failures[run.point.point_id] = str(error)
            bookkeeping.write_failure(job.run_folder(run), error, attempt)
            job.events(RunFailed(run=run, index=index, total=total, message=str(error)))
            return False
        self._pace.add(run, result.wall_s)
        job.events(RunFinished(run=run, result=result, index=index, total=total))
        return True

    def _run(self, run: Run, index: int, attempt: int) -> RunResult:
        """One run, from its manifest to its result on the disk."""
        job, folder = self._job, self._job.run_folder(run)
        placement = job.launcher.placement(run.point)
        self._lock.check()
        self._pace.start()
        manifest = job.manifest(run, placement, attempt)
        write_record(folder.manifest, manifest)
        outcome = job.launcher.run(
            folder,
            manifest,
            heartbeat_s=job.study.run.heartbeat_s,
            progress=lambda progress: self._show(run, index, progress),
        )
        result = run_result(manifest, outcome, oversubscribed=placement.oversubscribed)
        self._lock.check()
        write_record(folder.machine, machine.machine(outcome.reports))
        write_record(folder.result, result)
        bookkeeping.remove_failure(folder)
        return result

    def _show(self, run: Run, index: int, progress: Progress) -> None:
        pending = [other for other in self._job.runs[index:] if other.point.point_id not in self._failures]
        self._job.events(
            RunProgress(
                run=run,
                index=index,
                total=len(self._job.runs),
                phase=progress.phase,
                step=progress.step,
                total_steps=progress.total_steps,
                fraction=progress.step / progress.total_steps if progress.total_steps else 0.0,
                left_s=self._pace.left_s(run, progress, pending),
            )
        )
