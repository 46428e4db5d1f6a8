"""The state of a SLURM job, and the error for a job that cannot start or was ended.

    scontrol show job   while the controller remembers the job (MinJobAge, usually five minutes)
    sacct               afterwards, if the site has accounting

Parsing and judging are pure. `ask` runs the commands. A controller that does not answer changes nothing: it may be
restarting, and the ranks continue.
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
"""The state of a job that SLURM no longer knows; the name is Paceline's."""
ANSWER_S = 20.0
"""How long an answer may take."""
_VARIABLES = ("SLURM_", "SBATCH_", "SRUN_", "SQUEUE_", "SACCT_", "SCANCEL_")

# Reasons for which a job waits forever, unless the request or the cluster is changed.
_NEVER = {
    "BadConstraints": "no host of the cluster meets all constraints of the job",
    "PartitionConfig": "the partition does not allow so many hosts, cores or so much time",
    "PartitionNodeLimit": "it requests more, or fewer, hosts than the partition allows for a job",
    "PartitionTimeLimit": "it requests more time than the partition allows for a job",
    "AccountNotAllowed": "the account may not use the partition",
    "InvalidAccount": "there is no such account",
    "InvalidQOS": "there is no such quality of service",
    "QOSNotAllowed": "the account may not use that quality of service",
    "DependencyNeverSatisfied": "it depends on a job that failed",
    "DeadLine": "its deadline cannot be met",
}
# Reasons that end when hosts are repaired or returned: the launcher waits for a limited time.
_NOT_NOW = ("ReqNodeNotAvail", "Nodes_required_for_job_are_DOWN", "PartitionDown", "PartitionInactive", "NodeDown")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as SLURM shows it."""

    state: str
    reason: str = ""
    """Why it waits, or why it failed, as SLURM names it."""
    exit_code: int = 0
    exit_signal: int = 0
    restarts: int = 0
    """How often SLURM itself has restarted it."""
    submitted_at: str | None = None
    """Wall-clock time, ISO 8601, of the cluster."""
    started_at: str | None = None
    ended_at: str | None = None
    limit_s: float | None = None
    hosts: str = ""
    preempted: bool = False
    """Whether it was pre-empted. SLURM calls a job FAILED that exits within its grace time."""
    by: str = ""
    """Id of the user who cancelled it, if the site has accounting."""

    @property
    def waiting(self) -> bool:
        return self.state in WAITING

    @property
    def over(self) -> bool:
        """Whether its state is final."""
        return self.state not in WAITING | RUNNING

    @property
    def queue_s(self) -> float | None:
        """From submission to start; None while that is not known."""
        if self.waiting or not self.hosts or self.submitted_at is None or self.started_at is None:
            return None  # a job that is cancelled in the queue has a start time, but no hosts
        waited = datetime.fromisoformat(self.started_at) - datetime.fromisoformat(self.submitted_at)
        return max(0.0, waited.total_seconds())

    @property
    def ran_s(self) -> float | None:
        """From start to end."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (datetime.fromisoformat(self.ended_at) - datetime.fromisoformat(self.started_at)).total_seconds()


def job_view(text: str) -> JobView | None:
    """The view from a line of `scontrol show job --oneliner`; None if it is none.

    The first occurrence of each name counts: values that the user chooses (the path of a command) come later, and
    Paceline chooses the job's name.
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
    """The view from the output of sacct for ACCOUNT_FIELDS with --parsable2; None if it does not know the job."""
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
    """The error for a job that will never start; None if waiting may help."""
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
        right="A job requests run.hosts hosts, run.ranks tasks of run.threads cores, and the settings of [launch].",
        next="`sinfo --long` shows the cluster, --dry-run the request.",
    )


def down_hosts(text: str) -> tuple[str, ...]:
    """The unreachable hosts from lines of `sinfo --Node --format="%N %T"`: down, or marked by a star."""
    lines = dict.fromkeys(line.strip() for line in text.splitlines())
    pairs = [line.split() for line in lines if len(line.split()) == 2]
    return tuple(dict.fromkeys(host for host, state in pairs if state.endswith("*") or state.startswith("down")))


def end_error(view: JobView, job_id: str, *, after_step: int | None, down: Sequence[str] = ()) -> RunError | None:
    """The error for a job that was ended from outside; None if it ended by itself."""
    job, where = f"SLURM job {job_id}", f" on {view.hosts}" if view.hosts else ""
    saved = "" if after_step is None else f" A checkpoint of step {after_step} was saved."
    again = f"The same command continues the study.{saved}"
    match view.state:
        case "CANCELLED" | "REVOKED":
            by = f" by user {view.by}" if view.by else ""
            return RunError(f"{job} was cancelled{by}, not by this study.", next=again)
        case "TIMEOUT" | "DEADLINE":
            limit = f" of {view.limit_s / 60:g} min" if view.limit_s else ""
            return RunError(
                f"{job} reached its time limit{limit} before the run was done.",
                right="Raise launch.time_limit. With launch.grace_s the ranks write a checkpoint before the end, with "
                "train.checkpoint_every also in between; a later attempt resumes from it.",
                next=again,
            )
        case "NODE_FAIL" | "BOOT_FAIL":
            lost = f"lost {', '.join(down)}, of its hosts {view.hosts}" if down else f"lost a host{where}"
            return RunError(
                f"{job} {lost}: SLURM calls it {view.state}.",
                right=f"`sinfo --Node --long --nodes={view.hosts or 'HOST'}` shows their state.",
                next=again,
            )
        case "OUT_OF_MEMORY":
            return RunError(
                f"{job} used more memory than SLURM had allocated to it{where}, and was killed.",
                right='Request more, directives = ["--mem-per-cpu=4G"] under [launch], or fewer ranks per host.',
                next=again,
            )
    return None


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _instant(text: str) -> str | None:
    return text if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text) else None


def ask(command: Sequence[str], defaults: Collection[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a SLURM command; one that does not answer in time, or does not exist, has failed.

    SLURM variables of an enclosing job, or of the user, are removed from its environment except `defaults`: they would
    change the command, and override directives of a job script.
    """
    environment = {
        name: value
        for name, value in inherited_environment().items()
        if not name.startswith(_VARIABLES) or name in ("SLURM_CONF", *defaults)
    }
    try:
        return subprocess.run(
            command,
            env=environment | {"SLURM_TIME_FORMAT": "standard", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
            check=False,
            start_new_session=True,  # Ctrl-C of a terminal reaches only the launcher
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"{command[0]} did not answer within {ANSWER_S:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", f"{command[0]}: {error.strerror}")


Ask = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]


class Queue:
    """One job in the queue; the controller is queried at most every `every_s`."""

    def __init__(self, job_id: str, *, ask: Ask = ask, clock: Callable[[], float] = time.monotonic) -> None:
        self.job_id = job_id
        self._ask = ask
        self._clock = clock
        self._view = JobView(state="PENDING")
        self._asked_at: float | None = None

    def view(self, every_s: float) -> JobView:
        """The state of the job, at most `every_s` old."""
        now = self._clock()
        if not self._view.over and (self._asked_at is None or now - self._asked_at >= every_s):
            self._asked_at = now
            self._view = self._current() or self._view
        return self._view

    def _current(self) -> JobView | None:
        """The current state from SLURM; None if it does not answer."""
        shown = self._ask(("scontrol", "show", "job", "--oneliner", self.job_id))
        if shown.returncode == 0:
            return job_view(shown.stdout)
        if "Invalid job id" not in shown.stderr:
            return None
        fields = f"--format={ACCOUNT_FIELDS}"
        account = self._ask(("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={self.job_id}", fields))
        return (accounting_view(account.stdout) if account.returncode == 0 else None) or JobView(state=FORGOTTEN)


def job_named(name: str, ask: Ask = ask) -> str | None:
    """The id of the waiting or running job of that name; None if there is none."""
    answer = ask(("squeue", "--noheader", f"--name={name}", "--format=%i"))
    return answer.stdout.split()[0] if answer.returncode == 0 and answer.stdout.split() else None
