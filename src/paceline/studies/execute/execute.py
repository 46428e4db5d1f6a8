"""Execute a study: resumable at any moment, because a run is finished when its result is on the disk.

    check folder ─▶ data ─▶ points ─▶ memory, preflight ─▶ lock ─▶ study.toml, points.json ─▶ for each run:
        finished? skip : manifest.json ─▶ launcher ─▶ machine.json ─▶ result.json (last, atomically)

Nothing is written into the folder before the data are ready and the model is checked. A failed run
ends its point; other points are still run. A full disk and Ctrl-C end the study; finished runs remain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.data.store import Prepared
from paceline.errors import RankError, RunError, StorageError
from paceline.launch import machine
from paceline.launch.launcher import Interrupted, Launcher, Progress
from paceline.published.folder_copy import write_copy
from paceline.records.run import Manifest, RunResult
from paceline.records.study import Run
from paceline.storage.codec import write_record
from paceline.studies.execute.budget import Budget, check_budget, record_attempts
from paceline.studies.execute.compose import emulated, queue_s, refused, run_result, shares_cores
from paceline.studies.execute.events import (
    Event,
    Note,
    RunFailed,
    RunFinished,
    RunProgress,
    RunSkipped,
    RunStarted,
    StudyStarted,
    StudyStopped,
)
from paceline.studies.execute.job import Job, check_job, end_jobs, make_job, model_key
from paceline.studies.execute.preflight import Built
from paceline.studies.execute.time_left import Pace
from paceline.studies.folder import bookkeeping
from paceline.studies.folder.estimates import Estimates
from paceline.studies.folder.lock import StudyLock
from paceline.studies.load.load import LoadedStudy, overridden


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The outcome of executing a study."""

    folder: Path
    failures: dict[str, str]
    """point_id -> why a run of it failed."""
    prepared: Prepared | None
    """None for a script."""
    ran: int
    """Runs that this execution finished."""
    skipped: int
    """Runs that an earlier execution finished."""
    stopped: str | None = None
    """Why the study ended before its last run; None if it did not."""


def execute(
    loaded: LoadedStudy,
    folder: Path,
    *,
    fresh: bool = False,
    events: Callable[[Event], None] = lambda event: None,
    launcher: Launcher | None = None,
    preflight: bool = True,
    cache: Path | None = None,
    budget_h: float | None = None,
    force: bool = False,
) -> Execution:
    """Execute the unfinished runs of a study; `fresh` first moves an old study in the folder aside.

    With a budget it ends before it spends more than so many rank-hours over all executions.
    """
    check_budget(budget_h)
    folder = folder.absolute()
    bookkeeping.check_folder(folder)
    job = make_job(loaded, folder, events=events, launcher=launcher, cache=cache, force=force)
    missing = job.runs if fresh else bookkeeping.unfinished(job.folder, job.runs)
    # Without a finished run, the first estimate comes from a few timed steps.
    timed = budget_h is not None and len(missing) == len(job.runs)
    built = check_job(job, missing, preflight=preflight, timed=timed)
    if fresh:
        end_jobs(job.folder)
    if fresh and (moved := bookkeeping.move_study_aside(folder)) is not None:
        events(Note(text=f"The old study was moved to {moved}."))
    with StudyLock(job.folder.lock, say=lambda text: events(Note(text=text))) as lock:
        bookkeeping.remove_temporary_files(folder)
        bookkeeping.write_study(job.folder, job.study, job.points, job.not_run)
        write_copy(job.folder, job.study.published, overridden(job.study))
        return _Runner(job, lock, budget_h, built).execution()


_IDLE_ATTEMPTS = 3
"""How often in a row a run may be interrupted without progress."""


class _Patience:
    """Retry policy for interrupted runs: retry as long as a run makes progress."""

    def __init__(self) -> None:
        self._step, self._idle = 0, 0

    def lasts(self, step: int | None) -> bool:
        """Whether to retry; `step` is where the next attempt would resume."""
        if (step or 0) > self._step:
            self._step, self._idle = step or 0, 0
        else:
            self._idle += 1
        return self._idle < _IDLE_ATTEMPTS


class _Runner:
    """Executes the runs of a job in order, with the folder locked."""

    def __init__(self, job: Job, lock: StudyLock, budget_h: float | None, built: Mapping[str, Built]) -> None:
        self._job = job
        self._lock = lock
        self._estimates = Estimates(job.num_train, lambda point: built.get(model_key(point), Built()).sample_s)
        self._pace = Pace(self._estimates)
        self._budget = Budget(budget_h, job.folder, self._estimates)
        self._failures: dict[str, str] = {}

    def execution(self) -> Execution:
        """Run everything that is not finished."""
        job, ran, skipped, stopped = self._job, 0, 0, None
        self._announce()
        for index, run in enumerate(job.runs, start=1):
            pending = job.launcher(run.point).pending(job.run_folder(run))
            state = bookkeeping.run_state(job.run_folder(run), run, going_on=pending is not None)
            if state.note is not None:
                job.events(Note(text=state.note))
            if state.finished is not None:
                skipped += 1
                job.events(RunSkipped(run=run, index=index, total=len(job.runs), result=state.finished.result))
            elif run.point.point_id in self._failures:
                job.events(RunSkipped(run=run, index=index, total=len(job.runs), result=None))
            elif (stopped := self._refusal(run)) is not None:
                job.events(StudyStopped(run=run, index=index, total=len(job.runs), reason=stopped))
                break
            else:
                ran += self._try(run, index, state.attempt, pending)
        return Execution(
            folder=job.folder.path,
            failures=self._failures,
            prepared=job.prepared,
            ran=ran,
            skipped=skipped,
            stopped=stopped,
        )

    def _refusal(self, run: Run) -> str | None:
        """Why the study ends before this run; None if it may run, or if its ranks are already running."""
        reason = self._budget.refusal(run.point)
        if reason is None or self._job.launcher(run.point).pending(self._job.run_folder(run)) is not None:
            return None
        return f"Stopped: {reason}. What is finished is kept; a larger --budget goes on with the rest."

    def _announce(self) -> None:
        """Send StudyStarted, and add the finished runs to the estimates."""
        job, num_finished = self._job, 0
        for run in job.runs:
            done = bookkeeping.finished_or_none(job.run_folder(run), run)
            if done is not None:
                num_finished += 1
                self._estimates.add(run.point, done.result)
        job.events(
            StudyStarted(
                study=job.study,
                folder=job.folder.path,
                points=job.points,
                placements=tuple(job.launcher(point).placement(point).text for point in job.points),
                total=len(job.runs),
                finished=num_finished,
                not_run=job.not_run,
            )
        )

    def _try(self, run: Run, index: int, attempt: int, pending: Manifest | None) -> bool:
        """Execute one run and retry it if it is interrupted; False if it failed, which ends its point."""
        job, total, patience = self._job, len(self._job.runs), _Patience()
        classes = job.classes(run.point)
        job.events(RunStarted(run=run, index=index, total=total, attempt=attempt, classes=classes))
        try:
            while True:
                try:
                    result = self._run(run, index, attempt, pending)
                    break
                except Interrupted as error:
                    if not patience.lasts(error.step) or self._refusal(run) is not None:
                        raise
                    attempt, pending = attempt + 1, None
                    job.events(Note(text=f"{error} Attempt {attempt} follows."))
        except StorageError:
            raise  # a full disk would fail every other run, too
        except RunError as error:
            self._failures[run.point.point_id] = str(error)
            bookkeeping.write_failure(job.run_folder(run), error, attempt)
            job.events(RunFailed(run=run, index=index, total=total, message=str(error)))
            return False
        self._estimates.add(run.point, result)
        job.events(RunFinished(run=run, result=result, index=index, total=total))
        return True

    def _run(self, run: Run, index: int, attempt: int, manifest: Manifest | None) -> RunResult:
        """Launch one run, or attach to its running ranks (`manifest`), and write its result."""
        job, folder = self._job, self._job.run_folder(run)
        launcher = job.launcher(run.point)
        placement = launcher.placement(run.point)
        self._lock.check()
        self._pace.start()
        if manifest is None:
            record_attempts(folder)
            manifest = job.manifest(run, placement, attempt)
            write_record(folder.manifest, manifest)
        try:
            outcome = launcher.run(
                folder,
                manifest,
                heartbeat_s=job.study.run.heartbeat_s,
                progress=lambda progress: self._show(run, index, progress),
            )
        except RankError as error:
            raise refused(folder) or error from None
        finally:
            self._budget.spend(folder, manifest, self._pace.elapsed_s)
        check = machine.allocation_record(folder)
        result = run_result(
            manifest,
            outcome,
            oversubscribed=placement.oversubscribed or shares_cores(check),
            emulated=emulated(check),
            queue_s=queue_s(folder, manifest),
            classes=job.classes(run.point),
        )
        self._budget.spend(folder, manifest, result.wall_s)
        self._lock.check()
        write_record(folder.machine, machine.machine(outcome.reports, check))
        write_record(folder.result, result)
        bookkeeping.remove_failure(folder)
        return result

    def _show(self, run: Run, index: int, progress: Progress) -> None:
        self._pace.waiting(progress)
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
