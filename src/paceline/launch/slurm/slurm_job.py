"""One SLURM job: submit, find again, query, cancel; and its record in the run folder.

    job.json   written before sbatch (job name), after it (job id), and at every change of state

After a study was killed, the next one finds the job by this record: by its id, or by its name,
which no other job has.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import replace

from paceline.errors import RankError, RunError
from paceline.launch import rank_outcomes
from paceline.launch.launcher import clear_attempt
from paceline.launch.slurm.slurm_queue import FORGOTTEN, Ask, JobView, Queue, ask, down_hosts, job_named
from paceline.launch.wrapper.wrapped_ranks import Program
from paceline.records.run import Job, Manifest
from paceline.records.settings import LaunchSettings
from paceline.storage.codec import optional_record, write_atomically, write_record
from paceline.storage.folder import RunFolder

POLL_S = 2.0
"""Between two queries about a running job: a controller serves a whole cluster."""
END_S = 90.0
"""How long a cancelled job may take: SLURM waits KillWait, usually 30 s, before it kills."""
SCHEDULER = "slurm"
"""In job.json of a SLURM job."""
# Defaults that sbatch may take from the environment if the study has none.
_DEFAULTS = {"account": "SBATCH_ACCOUNT", "partition": "SBATCH_PARTITION", "constraint": "SBATCH_CONSTRAINT"}


class SlurmJob:
    """The job of one attempt at a run, and the `RankStarter` of its ranks."""

    def __init__(self, folder: RunFolder, manifest: Manifest, record: Job, *, asking: Ask = ask) -> None:
        size = manifest.point.processes
        self.program = Program(command=("srun",), ranks=tuple(range(size)), host="a host that SLURM chooses")
        self.ended_at: float | None = None
        self._folder = folder
        self._record = record
        self._ask = asking
        self._queue = Queue(record.job_id, ask=asking)

    @property
    def job_id(self) -> str:
        return self._record.job_id

    def view(self, every_s: float = POLL_S) -> JobView:
        """The state of the job, at most `every_s` old; changes are written to its record."""
        view = self._queue.view(every_s)
        if view.state != self._record.state and view.state != FORGOTTEN:
            self._update_record(
                state=view.state,
                submitted_at=view.submitted_at or self._record.submitted_at,
                started_at=None if view.waiting else view.started_at or self._record.started_at,
                queue_s=self._record.queue_s if view.queue_s is None else view.queue_s,
                hosts=view.hosts or self._record.hosts,
            )
        return view

    def poll(self) -> int | None:
        """The job's exit code; None while it runs. A requeued job has ended, as far as its first ranks go."""
        view = self.view()
        if not (view.over or view.waiting or view.restarts):
            return None
        if self.ended_at is None:
            self.ended_at = time.monotonic()
        return view.exit_code if view.over else 1

    def send(self, number: int) -> None:
        """SIGKILL goes through SLURM; the rank wrappers handle everything else."""
        if number == signal.SIGKILL:
            self._ask(("scancel", "--signal=KILL", "--full", self.job_id))

    def stop(self) -> None:
        """Make the wrappers end their ranks, without waiting for SLURM."""
        with contextlib.suppress(OSError):
            self._folder.stop.touch()

    def end(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Cancel the job and wait until its ranks have ended."""
        self.stop()
        answer = None if self.view(0).over else self._ask(("scancel", self.job_id))
        if self._ends_within(END_S, sleep):
            self._update_record(over=True)
            return
        reason = (answer.stderr.strip() if answer else "") or f"it is still {self.view().state}"
        raise RankError(
            f"SLURM job {self.job_id} does not end: {reason}.",
            right="It was cancelled, and its ranks were stopped.",
            next=f"Check it with `scontrol show job {self.job_id}` before starting again.",
        )

    def down_hosts(self) -> tuple[str, ...]:
        """Those of its hosts that SLURM cannot reach."""
        hosts = self.view().hosts
        if not hosts:
            return ()
        return down_hosts(self._ask(("sinfo", "--noheader", "--Node", f"--nodes={hosts}", "--format=%N %T")).stdout)

    def release(self, timeout_s: float = 10.0, sleep: Callable[[float], None] = time.sleep) -> None:
        """All ranks are done: wait for the job to end, and cancel it if it would occupy its hosts longer."""
        if not self._ends_within(timeout_s, sleep):
            self._ask(("scancel", self.job_id))

    def final_view(self, timeout_s: float, sleep: Callable[[float], None]) -> JobView:
        """The state of the job when it is over, or after `timeout_s`; a completing job gets more time."""
        return self._until(lambda view: view.over, lambda view: END_S if _completing(view) else timeout_s, sleep)

    def _ends_within(self, timeout_s: float, sleep: Callable[[float], None]) -> bool:
        """Whether the job ends in time; one that is completing has ended when its ranks have."""

        def ended(view: JobView) -> bool:
            return view.over or (_completing(view) and rank_outcomes.all_ended(self._folder, len(self.program.ranks)))

        return ended(self._until(ended, lambda view: timeout_s, sleep))

    def _until(
        self, reached: Callable[[JobView], bool], timeout_s: Callable[[JobView], float], sleep: Callable[[float], None]
    ) -> JobView:
        """The state of the job when `reached` holds, or after the timeout."""
        began, pause_s = time.monotonic(), 0.3
        while not reached(view := self.view(0)) and time.monotonic() - began < timeout_s(view):
            sleep(pause_s)
            pause_s = min(POLL_S, 1.5 * pause_s)
        return view

    def _update_record(self, **changes: object) -> None:
        self._record = replace(self._record, **changes)  # pyright: ignore[reportArgumentType]
        write_record(self._folder.job, self._record)


def _completing(view: JobView) -> bool:
    return view.state == "COMPLETING"


def submitted_job(
    folder: RunFolder, manifest: Manifest, script: str, name: str, settings: LaunchSettings, asking: Ask = ask
) -> SlurmJob:
    """The job of a new attempt, in the queue; RunError with SLURM's reason if it is rejected."""
    clear_attempt(folder)
    write_atomically(folder.job_script, script.encode())
    record = Job(scheduler=SCHEDULER, name=name, launched_at_ns=manifest.launched_at_ns)
    write_record(folder.job, record)
    defaults = tuple(variable for key, variable in _DEFAULTS.items() if not getattr(settings, key))
    command = ("sbatch", "--parsable", str(folder.job_script.resolve()))
    answer = ask(command, defaults) if asking is ask else asking(command)
    # SLURM may have accepted the job although no answer arrived.
    job_id = answer.stdout.strip().split(";")[0] if answer.returncode == 0 else job_named(name, asking)
    if not job_id:
        write_record(folder.job, replace(record, over=True, state="REFUSED"))
        reason = " ".join(line.removeprefix("sbatch: error: ") for line in answer.stderr.strip().splitlines())
        raise RunError(
            f"SLURM rejected the job: {reason or 'no reason given'}",
            right="It requests run.hosts hosts, run.ranks tasks of run.threads cores, and the settings of [launch].",
            next=f"The script is {folder.job_script}; `sinfo --long` shows the cluster.",
        )
    record = replace(record, job_id=job_id, state="PENDING")
    write_record(folder.job, record)
    return SlurmJob(folder, manifest, record, asking=asking)


def job_to_resume(folder: RunFolder, manifest: Manifest, asking: Ask = ask) -> SlurmJob | None:
    """The job of this attempt, if it still runs or has complete results; otherwise None."""
    record = optional_record(folder.job, Job)
    if record is None or record.scheduler != SCHEDULER or record.over:
        return None
    if record.launched_at_ns != manifest.launched_at_ns:
        return None
    if not record.job_id:
        record = replace(record, job_id=job_named(record.name, asking) or "")
    job = SlurmJob(folder, manifest, record, asking=asking)
    if rank_outcomes.all_done(folder, manifest.point.processes):
        return job
    return job if record.job_id and not job.view(0).over else None
