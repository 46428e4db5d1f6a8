"""Ranks in a SLURM job, one job per run.

    launcher ── sbatch ──▶ queue ──▶ job.sh on the first host ── srun or mpiexec ──▶ keeper ──▶ rank, on every host
       │                     │                                                        │
       ├── scontrol ◀────────┘ every 2 s at most                                      │
       └── run folder ◀── ranks/*.start, *.pulse, *.json, *.end ◀─────────────────────┘

Ctrl-C cancels the job. A study that is killed, or loses its terminal, leaves it: the next one finds `job.json`
and takes the job over, whether it waits, runs or has ended. A job that is warned before its end (pre-emption, time
limit) writes a checkpoint and leaves; the study then submits the next attempt, which resumes.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from paceline.errors import RankError, RequestError, RunError, StorageError
from paceline.launch import left
from paceline.launch.base import Launcher, Outcome, Placement, Progress, ignore
from paceline.launch.interrupted import Interrupted
from paceline.launch.job_script import JobPlan, check_slurm, slurm_script
from paceline.launch.kept import WrappedRank, wrapper_command
from paceline.launch.lost import unreachable_hosts_error
from paceline.launch.slurm_job import POLL_S as SLURM_LOOK_S
from paceline.launch.slurm_job import SlurmJob, job_to_resume, submitted_job
from paceline.launch.slurm_queue import JobView, end_error, never_starts_error
from paceline.launch.supervise import POLL_S, Watch, interruptible, log_tail
from paceline.records.codec import read_record
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.units import counted

QUEUE_POLL_S = 5.0
"""Between two questions about a job that has waited for a while."""
FRESH_S = 30.0
"""For so long after its submission a job is asked about more often."""
UNAVAILABLE_S = 300.0
"""How long hosts that are down may keep a job waiting."""
_EARLY_S = 65.0
"""SLURM looks at time limits once a minute, and would rather warn too early than too late."""
STOPPED_S, SILENT_S = 60.0, 8.0
"""How long SLURM may take to say how a job ended: after ranks that left on notice, and after ranks without a word."""


class SlurmLauncher(Launcher):
    """Submits one job per run, and watches it."""

    name = "slurm"

    def __init__(self, command: tuple[str, ...] | None = None, settings: LaunchSettings = LaunchSettings()) -> None:
        """`command` stands in for the worker, RUN_DIR is appended to it: tests use one without torch."""
        self._command = command or ()
        self._settings = settings

    def placement(self, point: Point) -> Placement:
        """SLURM chooses hosts and cores; it gives no core to two ranks."""
        text = (
            f"{counted(point.processes, 'rank')} × {counted(point.threads, 'thread')} on {counted(point.hosts, 'host')}"
        )
        where = f" of partition {self._settings.partition}" if self._settings.partition else ""
        return Placement(cores=None, text=f"{text}{where}: SLURM places them", oversubscribed=False)

    def check(self, point: Point) -> None:
        """Raise RequestError where there is no SLURM, or where a setting cannot stand in a job script."""
        check_slurm(point, self._settings)
        if shutil.which("sbatch") is None:
            raise RequestError(
                "There is no sbatch on the path: this machine submits no SLURM jobs.",
                right="The launcher slurm is used where SLURM's commands are, on a cluster's login host as a rule.",
                next="Load the site's slurm module, or choose another with --set run.launcher=local.",
            )

    def script(self, point: Point, folder: RunFolder) -> str:
        """The job script of a run."""
        return slurm_script(point, self._plan(folder, f"paceline-{point.point_id}-{folder.path.name}"))

    def pending(self, folder: RunFolder) -> Manifest | None:
        """What a job was told that an earlier process has left in the queue, running, or done."""
        try:
            manifest = read_record(folder.manifest, Manifest) if folder.manifest.exists() else None
        except StorageError:
            return None
        return manifest if manifest is not None and job_to_resume(folder, manifest) is not None else None

    def run(
        self,
        folder: RunFolder,
        manifest: Manifest,
        *,
        heartbeat_s: float,
        progress: Callable[[Progress], None] = ignore,
    ) -> Outcome:
        """Submit the job or take it over, wait for its ranks, and bring their reports; when this ends, none is left."""
        with interruptible() as check:

            def nap(length_s: float) -> None:
                check()
                time.sleep(length_s)

            job = job_to_resume(folder, manifest) or self._submitted(folder, manifest)
            done = False
            ranks = [WrappedRank(rank, job, folder) for rank in job.program.ranks]
            try:
                _await_start(job, folder, progress, nap)
                watch = Watch(ranks, folder, heartbeat_s, progress, lambda length_s: _nap(job, length_s, progress, nap))
                reports = watch.until_done()
                done = True
            except RankError as error:
                raise self._explained(job, ranks, folder, error, nap) or error from None
            finally:
                if not done:
                    job.end()
            job.settle()
        started_at_ns, ended_at_ns = left.times_ns(folder, manifest)
        return Outcome(started_at_ns=started_at_ns, ended_at_ns=ended_at_ns, reports=reports)

    def cancel(self, folder: RunFolder) -> None:
        """End the job that an earlier process left in this folder, if there is one."""
        manifest = self.pending(folder)
        job = job_to_resume(folder, manifest) if manifest is not None else None
        if job is not None:
            job.end()

    def _submitted(self, folder: RunFolder, manifest: Manifest) -> SlurmJob:
        name = f"paceline-{manifest.point_id}-{manifest.run}-{manifest.launched_at_ns:x}"
        script = slurm_script(manifest.point, self._plan(folder, name))
        return submitted_job(folder, manifest, script, name, self._settings)

    def _plan(self, folder: RunFolder, name: str) -> JobPlan:
        asked = self._settings.mpiexec
        own = Path(sys.executable).parent / asked
        # What modules bring is found through the path; without them this environment's own comes first.
        near = not self._settings.modules and os.sep not in asked and os.access(own, os.X_OK)
        return JobPlan(
            name=name,
            folder=folder,
            settings=self._settings,
            keeper=wrapper_command(folder, self._command),
            mpiexec=str(own) if near else asked,
        )

    def _explained(
        self,
        job: SlurmJob,
        ranks: list[WrappedRank],
        folder: RunFolder,
        error: RankError,
        nap: Callable[[float], None],
    ) -> RunError | None:
        """What SLURM did to the job, where that is why its ranks ended; None where they know better."""
        if left.failed_by_itself(folder, len(ranks)):
            return None
        reports = left.reports(folder, len(ranks))
        step = next((report.steps for report in reports if report.status == "stopped"), None)
        if step is None:
            job.stop()  # its keepers would wait for what the others have to say
        view = job.at_its_end(SILENT_S if step is None else STOPPED_S, nap)
        return (
            _gave_way(view, job.job_id, step)
            or end_error(view, job.job_id, after_step=step, down=job.down_hosts())
            or self._left(view, job.job_id, step)
            or _never_ran(view, job.job_id, folder)
            or unreachable_hosts_error(ranks, folder, error, sleep=nap)
        )

    def _left(self, view: JobView, job_id: str, step: int | None) -> RunError | None:
        """The error for ranks that left on notice: that of their time limit, or any other."""
        if step is None:
            return None
        margin_s = self._settings.grace_s + _EARLY_S
        if view.limit_s is not None and view.ran_s is not None and view.ran_s >= view.limit_s - margin_s:
            return end_error(replace(view, state="TIMEOUT"), job_id, after_step=step)
        return Interrupted(f"SLURM job {job_id} was told to leave, and wrote a checkpoint of step {step}.", step=step)


def _await_start(
    job: SlurmJob, folder: RunFolder, progress: Callable[[Progress], None], nap: Callable[[float], None]
) -> None:
    """Wait until the job leaves the queue; RunError where it never will."""
    began, doubted = time.monotonic(), False
    while not any(folder.rank_start(rank).exists() for rank in job.program.ranks[:1]):
        waited_s = time.monotonic() - began
        view = job.view(SLURM_LOOK_S if waited_s < FRESH_S else QUEUE_POLL_S)
        if not view.waiting:
            return
        error = never_starts_error(view, waited_s, UNAVAILABLE_S)
        if error is not None and doubted:
            raise error
        if error is not None:  # seen twice: a controller that has just started may say so of any job
            doubted = True
            nap(SLURM_LOOK_S)
            continue
        doubted = False
        phase = f"queued ({view.reason.replace('_', ' ')})" if view.reason else "queued"
        progress(Progress(step=0, total_steps=0, phase=phase))  # again and again: none of this time is the run's
        nap(POLL_S)


def _nap(job: SlurmJob, length_s: float, progress: Callable[[Progress], None], nap: Callable[[float], None]) -> None:
    """Sleep; while SLURM holds the job still, nobody has to show a sign of life."""
    nap(length_s)
    if job.view().state in ("SUSPENDED", "STOPPED"):
        progress(Progress(step=0, total_steps=0, phase="suspended"))
        while job.view().state in ("SUSPENDED", "STOPPED"):
            nap(POLL_S)


def _gave_way(view: JobView, job_id: str, step: int | None) -> Interrupted | None:
    """The error for a job that had to make room, or that SLURM has put back into its queue."""
    kept = "" if step is None else f", after it had written a checkpoint of step {step}"
    if view.preempted:
        return Interrupted(f"SLURM job {job_id} was pre-empted by another job{kept}.", step=step)
    if view.restarts or view.waiting:
        return Interrupted(
            f"SLURM has requeued job {job_id}, which was cancelled: the next attempt is a job of its own{kept}.",
            step=step,
        )
    return None


def _never_ran(view: JobView, job_id: str, folder: RunFolder) -> RunError | None:
    """The error for a job that ended before it had started any rank; None where it had."""
    if any(folder.ranks.glob("rank-*.start")) or not view.over:
        return None
    tail = "\n".join(f"  {line}" for line in log_tail(folder.launcher_log).splitlines())
    reason = f", {view.reason}" if view.reason else ""
    said = f"The output of the job, {folder.launcher_log}, ends with:\n{tail}"
    return RunError(
        f"SLURM job {job_id} ended before any rank had started ({view.state}{reason}, exit code {view.exit_code}).",
        right=f"Every host has to see {folder.path} and {sys.executable}: a shared file system, as a rule.",
        next=said if tail else f"It has left no output; its script is {folder.job_script}.",
    )
