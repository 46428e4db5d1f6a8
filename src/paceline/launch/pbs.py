"""Ranks in a PBS job, whose script is written here and submitted by hand.

    paceline study ──▶ points/.../job.sh     qsub job.sh ──▶ ranks ──▶ run folder     paceline study ──▶ collected

No PBS was ever at hand to run this against, so nothing is submitted, watched or cancelled: that could only be
guessed. The script has the options of PBS Professional and OpenPBS; what its ranks leave is read like any other's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from paceline.errors import RankError, RunError, StorageError
from paceline.launch import left
from paceline.launch.base import Launcher, Outcome, Placement, Progress, clear_attempt, ignore
from paceline.launch.job_script import JobPlan, check_pbs, pbs_script
from paceline.launch.kept import Program, WrappedRank, wrapper_command
from paceline.launch.supervise import Watch
from paceline.records.codec import read_record, write_atomically, write_record
from paceline.records.folder import RunFolder
from paceline.records.run import Job, Manifest
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.units import counted


class PbsLauncher(Launcher):
    """Writes the script of every run, and collects what its ranks have left."""

    name = "pbs"

    def __init__(self, command: tuple[str, ...] | None = None, settings: LaunchSettings = LaunchSettings()) -> None:
        """`command` stands in for the worker, RUN_DIR is appended to it: tests use one without torch."""
        self._command = command or ()
        self._settings = settings

    def placement(self, point: Point) -> Placement:
        """PBS chooses hosts and cores."""
        text = (
            f"{counted(point.processes, 'rank')} × {counted(point.threads, 'thread')} on {counted(point.hosts, 'host')}"
        )
        return Placement(cores=None, text=f"{text}: PBS places them", oversubscribed=False)

    def check(self, point: Point) -> None:
        """Raise RequestError where a setting cannot stand in a job script."""
        check_pbs(point, self._settings)

    def script(self, point: Point, folder: RunFolder) -> str:
        """The job script of a run."""
        plan = JobPlan(
            name=f"paceline-{point.point_id}-{folder.path.name}",
            folder=folder,
            settings=self._settings,
            keeper=wrapper_command(folder, self._command),
            mpiexec=self._settings.mpiexec,
        )
        return pbs_script(point, plan)

    def pending(self, folder: RunFolder) -> Manifest | None:
        """What the ranks were told whose script was written before: its job may wait in PBS's queue."""
        try:
            manifest, job = read_record(folder.manifest, Manifest), read_record(folder.job, Job)
        except StorageError:
            return None
        ours = job.scheduler == self.name and job.launched_at_ns == manifest.launched_at_ns
        return manifest if ours and not job.over else None

    def run(
        self,
        folder: RunFolder,
        manifest: Manifest,
        *,
        heartbeat_s: float,
        progress: Callable[[Progress], None] = ignore,
    ) -> Outcome:
        """The reports of ranks that are done; RunError with the command to be given where they have not ended."""
        size = manifest.point.processes
        name = f"paceline-{manifest.point_id}-{manifest.run}"
        job = Job(scheduler=self.name, name=name, launched_at_ns=manifest.launched_at_ns, state="WRITTEN")
        if self.pending(folder) != manifest:
            clear_attempt(folder)
            write_atomically(folder.job_script, self.script(manifest.point, folder).encode())
            write_record(folder.job, job)
        if not left.all_ended(folder, size):
            began = any(folder.ranks.glob("rank-*.start"))
            raise RunError(
                "The ranks of this run have not ended: Paceline writes scripts for PBS, and does not submit them.",
                right="Some have started: give them time." if began else f"Submit it: qsub {folder.job_script}",
                next=f"When the job is over, the same command collects it; without {folder.job} it starts anew.",
            )
        ranks = [WrappedRank(rank, _Submitted(size), folder) for rank in range(size)]
        try:
            reports = Watch(ranks, folder, heartbeat_s, progress, time.sleep).until_done()
        except RankError:
            write_record(folder.job, replace(job, over=True))
            raise
        started_at_ns, ended_at_ns = left.times_ns(folder, manifest)
        return Outcome(started_at_ns=started_at_ns, ended_at_ns=ended_at_ns, reports=reports)


class _Submitted:
    """A job of which nothing is known."""

    def __init__(self, size: int) -> None:
        self.ended_at: float | None = None
        self.program = Program(command=("qsub",), ranks=tuple(range(size)), host="a host of PBS's choice")

    def poll(self) -> None:
        """Nobody can be asked."""

    def send(self, number: int) -> None:
        """Nobody can be told."""
