"""One SLURM job: submitted, found again, looked at, cancelled; and its record in the run folder.

    job.json   written before sbatch (its name), after it (its number), and at every change of state

A study that is killed at any moment leaves a record by which the next one finds the job: by its number, or by
its name, which no other job has.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import replace

from paceline.errors import RankError, RunError, StorageError
from paceline.launch import left
from paceline.launch.base import clear_attempt
from paceline.launch.kept import Program
from paceline.launch.slurm_queue import FORGOTTEN, Ask, JobView, Queue, ask, down_hosts, job_named
from paceline.records.codec import read_record, write_atomically, write_record
from paceline.records.folder import RunFolder
from paceline.records.run import Job, Manifest
from paceline.records.settings import LaunchSettings

POLL_S = 2.0
"""Between two questions about a running job: a controller serves a whole cluster."""
END_S = 90.0
"""How long a cancelled job may take: SLURM waits KillWait, 30 s as a rule, before it kills."""
# Defaults of a user or a site that sbatch may take from the environment where the study says nothing.
SCHEDULER = "slurm"
"""In job.json, where the job is one of SLURM's."""
_DEFAULTS = {"account": "SBATCH_ACCOUNT", "partition": "SBATCH_PARTITION", "constraint": "SBATCH_CONSTRAINT"}


class SlurmJob:
    """The job of one attempt at a run; to its ranks, what started them."""

    def __init__(self, folder: RunFolder, manifest: Manifest, record: Job, *, asking: Ask = ask) -> None:
        size = manifest.point.processes
        self.program = Program(command=("srun",), ranks=tuple(range(size)), host="a host of SLURM's choice")
        self.ended_at: float | None = None
        self._folder = folder
        self._record = record
        self._ask = asking
        self._queue = Queue(record.job_id, ask=asking)

    @property
    def job_id(self) -> str:
        return self._record.job_id

    def view(self, every_s: float = POLL_S) -> JobView:
        """The job as it was seen at most `every_s` ago; what changed is noted in its record."""
        view = self._queue.view(every_s)
        if view.state != self._record.state and view.state != FORGOTTEN:
            self._keep(
                state=view.state,
                submitted_at=view.submitted_at or self._record.submitted_at,
                started_at=None if view.waiting else view.started_at or self._record.started_at,
                queue_s=self._record.queue_s if view.queue_s is None else view.queue_s,
                hosts=view.hosts or self._record.hosts,
            )
        return view

    def poll(self) -> int | None:
        """The job's exit code; None while it runs. A job that SLURM starts again is over for the ranks it had."""
        view = self.view()
        if not (view.over or view.waiting or view.restarts):
            return None
        if self.ended_at is None:
            self.ended_at = time.monotonic()
        return view.exit_code if view.over else 1

    def send(self, number: int) -> None:
        """SIGKILL alone goes through SLURM; anything else the ranks' keepers see to."""
        if number == signal.SIGKILL:
            self._ask(("scancel", "--signal=KILL", "--full", self.job_id))

    def stop(self) -> None:
        """Have the keepers end their ranks, without waiting for SLURM."""
        with contextlib.suppress(OSError):
            self._folder.stop.touch()

    def end(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Cancel the job and wait until its ranks are gone."""
        self.stop()
        said = None
        if not self.view(0).over:
            said = self._ask(("scancel", self.job_id))
        if self._gone_within(END_S, sleep):
            self._keep(over=True)
            return
        reason = (said.stderr.strip() if said else "") or f"it is still {self.view().state}"
        raise RankError(
            f"SLURM job {self.job_id} does not end: {reason}.",
            right="It was cancelled, and its ranks were told to end.",
            next=f"Look at it with `scontrol show job {self.job_id}` before starting again.",
        )

    def down_hosts(self) -> tuple[str, ...]:
        """Those of its hosts that do not answer SLURM."""
        hosts = self.view().hosts
        if not hosts:
            return ()
        return down_hosts(self._ask(("sinfo", "--noheader", "--Node", f"--nodes={hosts}", "--format=%N %T")).stdout)

    def settle(self, patience_s: float = 10.0, sleep: Callable[[float], None] = time.sleep) -> None:
        """All ranks are done: let the job end, and cancel what would hold its hosts for nothing."""
        if not self._gone_within(patience_s, sleep):
            self._ask(("scancel", self.job_id))

    def at_its_end(self, patience_s: float, sleep: Callable[[float], None]) -> JobView:
        """The job when it is over, or as it is after so long; one that SLURM is ending is given more time."""
        return self._until(lambda view: view.over, lambda view: END_S if _ending(view) else patience_s, sleep)

    def _gone_within(self, patience_s: float, sleep: Callable[[float], None]) -> bool:
        """Whether the job is over, but for SLURM's own tidying up, within so long."""

        def gone(view: JobView) -> bool:
            return view.over or (_ending(view) and left.all_ended(self._folder, len(self.program.ranks)))

        return gone(self._until(gone, lambda view: patience_s, sleep))

    def _until(
        self, enough: Callable[[JobView], bool], patience_s: Callable[[JobView], float], sleep: Callable[[float], None]
    ) -> JobView:
        """The job once it is as it should be, or once patience is at its end."""
        began, pause_s = time.monotonic(), 0.3
        while not enough(view := self.view(0)) and time.monotonic() - began < patience_s(view):
            sleep(pause_s)
            pause_s = min(POLL_S, 1.5 * pause_s)
        return view

    def _keep(self, **changes: object) -> None:
        self._record = replace(self._record, **changes)  # pyright: ignore[reportArgumentType]
        write_record(self._folder.job, self._record)


def _ending(view: JobView) -> bool:
    return view.state == "COMPLETING"


def submitted_job(
    folder: RunFolder, manifest: Manifest, script: str, name: str, settings: LaunchSettings, asking: Ask = ask
) -> SlurmJob:
    """The job of a new attempt, in the queue; RunError with SLURM's own words where it is refused."""
    clear_attempt(folder)
    write_atomically(folder.job_script, script.encode())
    record = Job(scheduler=SCHEDULER, name=name, launched_at_ns=manifest.launched_at_ns)
    write_record(folder.job, record)
    defaults = tuple(variable for key, variable in _DEFAULTS.items() if not getattr(settings, key))
    command = ("sbatch", "--parsable", str(folder.job_script.resolve()))
    said = ask(command, defaults) if asking is ask else asking(command)
    # It may have been taken although no answer came back.
    job_id = said.stdout.strip().split(";")[0] if said.returncode == 0 else job_named(name, asking)
    if not job_id:
        write_record(folder.job, replace(record, over=True, state="REFUSED"))
        reason = " ".join(line.removeprefix("sbatch: error: ") for line in said.stderr.strip().splitlines())
        raise RunError(
            f"SLURM did not take the job: {reason or 'no reason given'}",
            right="It asks for run.hosts hosts, run.ranks tasks of run.threads cores each, and for what [launch] says.",
            next=f"The script is {folder.job_script}; `sinfo --long` shows what there is.",
        )
    record = replace(record, job_id=job_id, state="PENDING")
    write_record(folder.job, record)
    return SlurmJob(folder, manifest, record, asking=asking)


def job_to_resume(folder: RunFolder, manifest: Manifest, asking: Ask = ask) -> SlurmJob | None:
    """The job of this very attempt, where it goes on or has left whole results; None where there is none."""
    record = _read_job(folder)
    if record is None or record.over or record.launched_at_ns != manifest.launched_at_ns:
        return None
    if not record.job_id:
        record = replace(record, job_id=job_named(record.name, asking) or "")
    job = SlurmJob(folder, manifest, record, asking=asking)
    if left.all_done(folder, manifest.point.processes):
        return job
    return job if record.job_id and not job.view(0).over else None


def _read_job(folder: RunFolder) -> Job | None:
    try:
        record = read_record(folder.job, Job) if folder.job.exists() else None
    except StorageError:
        return None
    return record if record is not None and record.scheduler == SCHEDULER else None
