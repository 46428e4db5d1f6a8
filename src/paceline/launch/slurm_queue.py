"""What SLURM says of a job, and what that means.

    scontrol show job   while the controller remembers the job (MinJobAge, five minutes as a rule)
    sacct               afterwards, where the site keeps accounts

Parsing and judging are pure. Asking is one function, which counts a controller that does not answer as no news:
it may be restarting, and the ranks go on meanwhile.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from paceline.errors import RunError
from paceline.identity import inherited_environment
from paceline.launch.job_script import time_limit_s

WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
FORGOTTEN = "FORGOTTEN"
"""Our word for a job that SLURM no longer knows."""
ANSWER_S = 20.0
"""How long an answer may take."""
_VARIABLES = ("SLURM_", "SBATCH_", "SRUN_", "SQUEUE_", "SACCT_", "SCANCEL_")

# Reasons for waiting that no waiting ends, unless the request or the cluster is changed.
_NEVER = {
    "BadConstraints": "no host of the cluster has all that was asked for together",
    "PartitionConfig": "the partition is not made for so many hosts, cores or so much time",
    "PartitionNodeLimit": "it asks for more, or fewer, hosts than the partition gives to a job",
    "PartitionTimeLimit": "it asks for more time than the partition gives to a job",
    "AccountNotAllowed": "the account may not use the partition",
    "InvalidAccount": "there is no such account",
    "InvalidQOS": "there is no such quality of service",
    "QOSNotAllowed": "the account may not use that quality of service",
    "DependencyNeverSatisfied": "it depends on a job that did not end as it should",
    "DeadLine": "its deadline cannot be met",
}
# Reasons that end when somebody repairs or returns hosts: worth some patience, not all of it.
_NOT_NOW = ("ReqNodeNotAvail", "Nodes_required_for_job_are_DOWN", "PartitionDown", "PartitionInactive", "NodeDown")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as SLURM shows it."""

    state: str
    reason: str = ""
    """Why it waits, or why it failed, in SLURM's word."""
    exit_code: int = 0
    exit_signal: int = 0
    restarts: int = 0
    """How often SLURM itself has started it again."""
    submitted_at: str | None = None
    """Wall-clock time, ISO 8601, of the cluster."""
    started_at: str | None = None
    ended_at: str | None = None
    limit_s: float | None = None
    hosts: str = ""
    preempted: bool = False
    """Whether it had to make room. One that leaves within its time of grace is FAILED to SLURM all the same."""
    by: str = ""
    """Number of the user who cancelled it, where accounts are kept."""

    @property
    def waiting(self) -> bool:
        return self.state in WAITING

    @property
    def over(self) -> bool:
        """Whether it will not change any more."""
        return self.state not in WAITING | RUNNING

    @property
    def queue_s(self) -> float | None:
        """From being submitted to being started; None while that is not known."""
        if self.waiting or not self.hosts or self.submitted_at is None or self.started_at is None:
            return None  # one that is cancelled in the queue has a time of start too
        waited = datetime.fromisoformat(self.started_at) - datetime.fromisoformat(self.submitted_at)
        return max(0.0, waited.total_seconds())

    @property
    def ran_s(self) -> float | None:
        """From being started to its end."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (datetime.fromisoformat(self.ended_at) - datetime.fromisoformat(self.started_at)).total_seconds()


def job_view(text: str) -> JobView | None:
    """The view from a line of `scontrol show job --oneliner`; None where it is none.

    Only what stands before the user's own words (a command's path may hold anything) is looked at: of each name the
    first occurrence, and the job's name is one of ours.
    """

    def field(name: str) -> str:
        found = re.search(rf"(?:^| ){name}=(\S*)", text)
        return found.group(1) if found else ""

    if not field("JobState"):
        return None
    code, _, number = field("ExitCode").partition(":")
    return JobView(
        state=field("JobState"),
        reason=field("Reason") if field("Reason") != "None" else "",
        exit_code=_number(code),
        exit_signal=_number(number),
        restarts=_number(field("Restarts")),
        submitted_at=_instant(field("SubmitTime")),
        started_at=_instant(field("StartTime")),
        ended_at=_instant(field("EndTime")),
        limit_s=time_limit_s(field("TimeLimit")),
        hosts=field("NodeList").replace("(null)", ""),
        preempted=field("JobState") == "PREEMPTED" or _instant(field("PreemptTime")) is not None,
    )


ACCOUNT_FIELDS = "State,ExitCode,Submit,Start,End,NodeList"


def accounting_view(text: str) -> JobView | None:
    """The view from what sacct prints for ACCOUNT_FIELDS with --parsable2; None where it knows no such job."""
    parts = text.strip().splitlines()[-1].split("|") if text.strip() else []
    if len(parts) != 6:
        return None
    state, _, by = parts[0].partition(" by ")
    code, _, number = parts[1].partition(":")
    return JobView(
        state=state,
        exit_code=_number(code),
        exit_signal=_number(number),
        submitted_at=_instant(parts[2]),
        started_at=_instant(parts[3]),
        ended_at=_instant(parts[4]),
        hosts="" if parts[5].startswith("None") else parts[5],
        preempted=state == "PREEMPTED",
        by=by,
    )


def never_starts_error(view: JobView, waited_s: float, patience_s: float) -> RunError | None:
    """The error for a job that waits for what will not come; None where waiting may help."""
    if not view.waiting:
        return None
    why = _NEVER.get(view.reason)
    if why is None:
        maintained = "maintenance" in view.reason.lower()
        if maintained or waited_s < patience_s or not view.reason.startswith(_NOT_NOW):
            return None
        why = f"the hosts that it needs have been unavailable for {waited_s:.0f} s"
    return RunError(
        f"SLURM would never start this job: {why} ({view.reason.replace('_', ' ')}). It was cancelled.",
        right="A job asks for run.hosts hosts, run.ranks tasks and run.threads cores each, and for what [launch] says.",
        next="`sinfo --long` shows what there is, --dry-run what is asked for.",
    )


def down_hosts(text: str) -> tuple[str, ...]:
    """The hosts that do not answer, from lines of `sinfo --Node --format="%N %T"`: down, or with a star."""
    lines = dict.fromkeys(line.strip() for line in text.splitlines())
    pairs = [line.split() for line in lines if len(line.split()) == 2]
    return tuple(dict.fromkeys(host for host, state in pairs if state.endswith("*") or state.startswith("down")))


def end_error(view: JobView, job_id: str, *, after_step: int | None, down: Sequence[str] = ()) -> RunError | None:
    """The error for a job that was ended from outside; None where it ended by itself: its ranks know better why."""
    job, where = f"SLURM job {job_id}", f" on {view.hosts}" if view.hosts else ""
    kept = "" if after_step is None else f" A checkpoint of step {after_step} is kept."
    again = f"The same command takes the study up again.{kept}"
    match view.state:
        case "CANCELLED" | "REVOKED":
            by = f" by user {view.by}" if view.by else ""
            return RunError(f"{job} was cancelled{by}, not by this study.", next=again)
        case "TIMEOUT" | "DEADLINE":
            limit = f" of {view.limit_s / 60:g} min" if view.limit_s else ""
            return RunError(
                f"{job} reached its time limit{limit} before the run was done.",
                right="Raise launch.time_limit. With launch.grace_s the ranks write a checkpoint before the end, with "
                "train.checkpoint_every also in between, and a later attempt resumes from it.",
                next=again,
            )
        case "NODE_FAIL" | "BOOT_FAIL":
            lost = f"lost {', '.join(down)}, of its hosts {view.hosts}" if down else f"lost a host{where}"
            return RunError(
                f"{job} {lost}: SLURM calls it {view.state}.",
                right=f"`sinfo --Node --long --nodes={view.hosts or 'HOST'}` shows what became of them.",
                next=again,
            )
        case "OUT_OF_MEMORY":
            return RunError(
                f"{job} used more memory than SLURM had given it{where}, and was killed for it.",
                right='Ask for more, directives = ["--mem-per-cpu=4G"] under [launch], or for fewer ranks per host.',
                next=again,
            )
    return None


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _instant(text: str) -> str | None:
    return text if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text) else None


def ask(command: Sequence[str], defaults: Collection[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run one of SLURM's commands; one that does not answer in time, or is not there, has failed.

    Without what an enclosing job, or a user's habits, say in the environment: it would change what these commands do,
    and override what stands in a job script. `defaults` may stay.
    """
    kept = {
        name: value
        for name, value in inherited_environment().items()
        if not name.startswith(_VARIABLES) or name in ("SLURM_CONF", *defaults)
    }
    try:
        return subprocess.run(
            command,
            env=kept | {"SLURM_TIME_FORMAT": "standard", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
            check=False,
            start_new_session=True,  # a terminal's Ctrl-C reaches the launcher alone
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"{command[0]} did not answer within {ANSWER_S:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", f"{command[0]}: {error.strerror}")


Ask = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]


class Queue:
    """One job in the queue; the controller is asked no more often than every `every_s`."""

    def __init__(self, job_id: str, *, ask: Ask = ask, clock: Callable[[], float] = time.monotonic) -> None:
        self.job_id = job_id
        self._ask = ask
        self._clock = clock
        self._view = JobView(state="PENDING")
        self._asked_at: float | None = None

    def view(self, every_s: float) -> JobView:
        """The job as it was seen at most `every_s` ago."""
        now = self._clock()
        if not self._view.over and (self._asked_at is None or now - self._asked_at >= every_s):
            self._asked_at = now
            self._view = self._asked() or self._view
        return self._view

    def _asked(self) -> JobView | None:
        """What SLURM says now; None where it says nothing."""
        said = self._ask(("scontrol", "show", "job", "--oneliner", self.job_id))
        if said.returncode == 0:
            return job_view(said.stdout)
        if "Invalid job id" not in said.stderr:
            return None
        fields = f"--format={ACCOUNT_FIELDS}"
        kept = self._ask(("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={self.job_id}", fields))
        return (accounting_view(kept.stdout) if kept.returncode == 0 else None) or JobView(state=FORGOTTEN)


def job_named(name: str, ask: Ask = ask) -> str | None:
    """The number of the job of that name, should it wait or run; None where there is none."""
    said = ask(("squeue", "--noheader", f"--name={name}", "--format=%i"))
    return said.stdout.split()[0] if said.returncode == 0 and said.stdout.split() else None
