"""Ranks in a PBS job. Paceline writes the job script; the user submits it.

    paceline study ──▶ points/.../job.sh     qsub job.sh ──▶ ranks ──▶ run folder     paceline study ──▶ collected

There was no PBS to test against, so nothing is submitted, watched or cancelled. The script has the options of PBS
Professional and OpenPBS; the results of its ranks are read as those of any other launcher.
"""

from __future__ import annotations

import time
from dataclasses import replace

from paceline.errors import RankError, RunError
from paceline.launch import rank_outcomes
from paceline.launch.job_script import JobPlan, check_pbs, pbs_script
from paceline.launch.launcher import Launcher, Listener, Outcome, Placement, clear_attempt, ignore
from paceline.launch.placement import scheduler_placement
from paceline.launch.supervision import Watch
from paceline.launch.wrapper.wrapped_ranks import Program, WrappedRank, wrapper_command
from paceline.records.run import Job, Manifest
from paceline.records.study import Point
from paceline.storage.codec import optional_record, write_atomically, write_record
from paceline.storage.folder import RunFolder


class PbsLauncher(Launcher):
    """Writes the job script of every run, and collects the results of its ranks."""

    name = "pbs"

    def placement(self, point: Point) -> Placement:
        """PBS chooses hosts and cores."""
        return scheduler_placement(point, "PBS")

    def check(self, point: Point) -> None:
        """Raise RequestError if a setting is not allowed in a job script."""
        check_pbs(point, self._settings)

    def script(self, point: Point, folder: RunFolder) -> str:
        """The job script of a run."""
        plan = JobPlan(
            name=f"paceline-{point.point_id}-{folder.path.name}",
            folder=folder,
            settings=self._settings,
            wrapper=wrapper_command(folder, self._command),
            mpiexec=self._settings.mpiexec,
        )
        return pbs_script(point, plan)

    def pending(self, folder: RunFolder) -> Manifest | None:
        """The manifest of a run whose script was written before: its job may be in the queue."""
        manifest, job = optional_record(folder.manifest, Manifest), optional_record(folder.job, Job)
        if manifest is None or job is None or job.scheduler != self.name or job.over:
            return None
        return manifest if job.launched_at_ns == manifest.launched_at_ns else None

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener = ignore) -> Outcome:
        """The reports of ranks that are done; RunError with the command to submit if they have not ended."""
        size = manifest.point.processes
        name = f"paceline-{manifest.point_id}-{manifest.run}"
        job = Job(scheduler=self.name, name=name, launched_at_ns=manifest.launched_at_ns, state="WRITTEN")
        if self.pending(folder) != manifest:
            clear_attempt(folder)
            write_atomically(folder.job_script, self.script(manifest.point, folder).encode())
            write_record(folder.job, job)
        if not rank_outcomes.all_ended(folder, size):
            began = any(folder.ranks.glob("rank-*.start"))
            raise RunError(
                "The ranks of this run have not ended: Paceline writes scripts for PBS, and does not submit them.",
                right="Some ranks have started: wait for them." if began else f"Submit it: qsub {folder.job_script}",
                next=f"When the job is over, the same command collects it; delete {folder.job} to start over.",
            )
        ranks = [WrappedRank(rank, _SubmittedJob(size), folder) for rank in range(size)]
        try:
            reports = Watch(ranks, folder, heartbeat_s, progress, time.sleep).until_done()
        except RankError:
            write_record(folder.job, replace(job, over=True))
            raise
        return rank_outcomes.outcome(folder, manifest, reports)


class _SubmittedJob:
    """A job whose state is unknown and that cannot be signalled."""

    def __init__(self, size: int) -> None:
        self.ended_at: float | None = None
        self.program = Program(command=("qsub",), ranks=tuple(range(size)), host="a host that PBS chooses")

    def poll(self) -> None:
        """None: PBS is not asked."""

    def send(self, number: int) -> None:
        """Does nothing."""
