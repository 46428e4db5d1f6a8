"""Ranks in a SLURM job, one job per run.

    launcher ── sbatch ──▶ queue ──▶ job.sh on the first host ── srun or mpiexec ──▶ wrapper ──▶ rank, on every host
       │                     │                                                         │
       ├── scontrol ◀────────┘ every 2 s at most                                       │
       └── run folder ◀── ranks/*.start, *.pulse, *.json, *.end ◀──────────────────────┘

Ctrl-C cancels the job. A study that is killed, or loses its terminal, does not: the next one finds `job.json` and
takes over the job, whether it waits, runs or has ended. A job that is warned before its end (pre-emption, time limit)
writes a checkpoint and exits; the study then submits the next attempt, which resumes.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from paceline.errors import RankError, RequestError, RunError
from paceline.launch import rank_outcomes
from paceline.launch.job_script import JobPlan, check_slurm, slurm_script
from paceline.launch.launcher import Interrupted, Launcher, Listener, Outcome, Placement, Progress, ignore
from paceline.launch.placement import scheduler_placement
from paceline.launch.slurm.slurm_job import POLL_S as SLURM_POLL_S
from paceline.launch.slurm.slurm_job import SlurmJob, job_to_resume, submitted_job
from paceline.launch.slurm.slurm_queue import JobView, end_error, never_starts_error
from paceline.launch.supervision import POLL_S, Watch, interruptible, log_tail
from paceline.launch.wrapper.unreachable_hosts import unreachable_hosts_error
from paceline.launch.wrapper.wrapped_ranks import WrappedRank, wrapper_command
from paceline.records.run import Manifest
from paceline.records.study import Point
from paceline.storage.codec import optional_record
from paceline.storage.folder import RunFolder

QUEUE_POLL_S = 5.0
"""Between two queries about a job that has waited for a while."""
FRESH_S = 30.0
"""For so long after its submission the state of a job is queried more often."""
UNAVAILABLE_S = 300.0
"""How long hosts that are down may keep a job waiting."""
_EARLY_S = 65.0
"""SLURM checks time limits once a minute, so that its warning may be early by this."""
STOPPED_S, SILENT_S = 60.0, 8.0
"""How long SLURM may take to report the end of a job: after ranks that exited on notice, and after ranks without a
report."""


class SlurmLauncher(Launcher):
    """Submits one job per run, and watches it."""

    name = "slurm"

    def placement(self, point: Point) -> Placement:
        """SLURM chooses hosts and cores."""
        return scheduler_placement(point, "SLURM", self._settings.partition)

    def check(self, point: Point) -> None:
        """Raise RequestError if there is no SLURM, or if a setting is not allowed in a job script."""
        check_slurm(point, self._settings)
        if shutil.which("sbatch") is None:
            raise RequestError(
                "There is no sbatch on the path: this machine cannot submit SLURM jobs.",
                right="The launcher slurm runs where SLURM's commands are, usually on the login host of a cluster.",
                next="Load the site's slurm module, or choose another with --set run.launcher=local.",
            )

    def script(self, point: Point, folder: RunFolder) -> str:
        """The job script of a run."""
        return slurm_script(point, self._plan(folder, f"paceline-{point.point_id}-{folder.path.name}"))

    def pending(self, folder: RunFolder) -> Manifest | None:
        """The manifest of a job that an earlier process submitted and that waits, runs, or is done."""
        manifest = optional_record(folder.manifest, Manifest)
        return manifest if manifest is not None and job_to_resume(folder, manifest) is not None else None

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener = ignore) -> Outcome:
        """Submit the job or take it over, wait for its ranks, and return their reports."""
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
            job.release()
        return rank_outcomes.outcome(folder, manifest, reports)

    def cancel(self, folder: RunFolder) -> None:
        """End the job that an earlier process submitted for this folder, if there is one."""
        manifest = self.pending(folder)
        job = job_to_resume(folder, manifest) if manifest is not None else None
        if job is not None:
            job.end()

    def _submitted(self, folder: RunFolder, manifest: Manifest) -> SlurmJob:
        name = f"paceline-{manifest.point_id}-{manifest.run}-{manifest.launched_at_ns:x}"
        script = slurm_script(manifest.point, self._plan(folder, name))
        return submitted_job(folder, manifest, script, name, self._settings)

    def _plan(self, folder: RunFolder, name: str) -> JobPlan:
        mpiexec = self._settings.mpiexec
        own = Path(sys.executable).parent / mpiexec
        # That of a module is found on the path; without modules this environment's own comes first.
        use_own = not self._settings.modules and os.sep not in mpiexec and os.access(own, os.X_OK)
        return JobPlan(
            name=name,
            folder=folder,
            settings=self._settings,
            wrapper=wrapper_command(folder, self._command),
            mpiexec=str(own) if use_own else mpiexec,
        )

    def _explained(
        self,
        job: SlurmJob,
        ranks: list[WrappedRank],
        folder: RunFolder,
        error: RankError,
        nap: Callable[[float], None],
    ) -> RunError | None:
        """The error for what SLURM did to the job, where that ended its ranks; None if a rank failed by itself."""
        if rank_outcomes.failed_by_itself(folder, len(ranks)):
            return None
        reports = rank_outcomes.reports(folder, len(ranks))
        step = next((report.steps for report in reports if report.status == "stopped"), None)
        if step is None:
            job.stop()  # its wrappers would wait for the reports of other ranks
        view = job.final_view(SILENT_S if step is None else STOPPED_S, nap)
        return (
            _interruption(view, job.job_id, step)
            or end_error(view, job.job_id, after_step=step, down=job.down_hosts())
            or self._exit_on_notice(view, job.job_id, step)
            or _never_ran(view, job.job_id, folder)
            or unreachable_hosts_error(ranks, folder, error, sleep=nap)
        )

    def _exit_on_notice(self, view: JobView, job_id: str, step: int | None) -> RunError | None:
        """The error for ranks that exited on notice: of their time limit, or for another reason."""
        if step is None:
            return None
        margin_s = self._settings.grace_s + _EARLY_S
        if view.limit_s is not None and view.ran_s is not None and view.ran_s >= view.limit_s - margin_s:
            return end_error(replace(view, state="TIMEOUT"), job_id, after_step=step)
        return Interrupted(f"SLURM job {job_id} was asked to exit, and wrote a checkpoint at step {step}.", step=step)


def _await_start(job: SlurmJob, folder: RunFolder, progress: Listener, nap: Callable[[float], None]) -> None:
    """Wait until the job leaves the queue; RunError if it never will."""
    began, seen_before = time.monotonic(), False
    while not any(folder.rank_start(rank).exists() for rank in job.program.ranks[:1]):
        waited_s = time.monotonic() - began
        view = job.view(SLURM_POLL_S if waited_s < FRESH_S else QUEUE_POLL_S)
        if not view.waiting:
            return
        error = never_starts_error(view, waited_s, UNAVAILABLE_S)
        if error is not None and seen_before:
            raise error
        seen_before = error is not None
        if error is not None:  # raised if it is seen twice: a controller that has just started reports it for any job
            nap(SLURM_POLL_S)
            continue
        phase = f"queued ({view.reason.replace('_', ' ')})" if view.reason else "queued"
        progress(Progress(step=0, total_steps=0, phase=phase))  # repeatedly: time in the queue is not the run's
        nap(POLL_S)


def _nap(job: SlurmJob, length_s: float, progress: Listener, nap: Callable[[float], None]) -> None:
    """Sleep, and as long as SLURM suspends the job: no rank makes progress then."""
    nap(length_s)
    if job.view().state in ("SUSPENDED", "STOPPED"):
        progress(Progress(step=0, total_steps=0, phase="suspended"))
        while job.view().state in ("SUSPENDED", "STOPPED"):
            nap(POLL_S)


def _interruption(view: JobView, job_id: str, step: int | None) -> Interrupted | None:
    """The error for a job that was pre-empted, or that SLURM has requeued."""
    saved = "" if step is None else f", after it had written a checkpoint of step {step}"
    if view.preempted:
        return Interrupted(f"SLURM job {job_id} was pre-empted by another job{saved}.", step=step)
    if view.restarts or view.waiting:
        what = f"SLURM has requeued job {job_id}, which was cancelled: the next attempt is a new job{saved}."
        return Interrupted(what, step=step)
    return None


def _never_ran(view: JobView, job_id: str, folder: RunFolder) -> RunError | None:
    """The error for a job that ended before any rank had started; None if one had."""
    if any(folder.ranks.glob("rank-*.start")) or not view.over:
        return None
    tail = "\n".join(f"  {line}" for line in log_tail(folder.launcher_log).splitlines())
    reason = f", {view.reason}" if view.reason else ""
    output = f"The output of the job, {folder.launcher_log}, ends with:\n{tail}"
    return RunError(
        f"SLURM job {job_id} ended before any rank had started ({view.state}{reason}, exit code {view.exit_code}).",
        right=f"Every host needs {folder.path} and {sys.executable}, usually on a shared file system.",
        next=output if tail else f"It has no output; its script is {folder.job_script}.",
    )
