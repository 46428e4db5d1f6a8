"""What SLURM says of a job, read and judged; and how seldom it is asked."""

import subprocess

import pytest

from light_ranks.light_launch import manifest, point
from paceline.errors import RunError
from paceline.launch.slurm.slurm_job import SlurmJob, job_to_resume, submitted_job
from paceline.launch.slurm.slurm_queue import (
    JobView,
    Queue,
    accounting_view,
    down_hosts,
    end_error,
    job_view,
    never_starts_error,
)
from paceline.records.run import Job
from paceline.records.settings import LaunchSettings
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

LINE = (
    "JobId=7 JobName=paceline-x UserId=me(1000) GroupId=me(1000) MCS_label=N/A Priority=1 Nice=0 Account=(null) "
    "QOS=(null) JobState={state} Reason={reason} Dependency=(null) Requeue=0 Restarts={restarts} BatchFlag=1 Reboot=0 "
    "ExitCode={code} RunTime=00:00:29 TimeLimit=00:10:00 TimeMin=N/A SubmitTime=2026-01-02T03:00:00 "
    "EligibleTime=2026-01-02T03:00:00 StartTime={start} EndTime={end} Deadline=N/A PreemptTime={preempted} "
    "Partition=p AllocNode:Sid=login:1 ReqNodeList=lie "
    "NodeList={hosts} BatchHost=n1 NumNodes=2 Command=/x/JobState=COMPLETED "
    "Reason=Lie ExitCode=0:0 WorkDir=/x y NodeList=lie"
)
NOT_YET = "Unknown"


def line(
    state, reason="None", *, restarts=0, code="0:0", start="2026-01-02T03:01:30", preempted="None", hosts="n[1-2]"
):
    end = "2026-01-02T03:09:30"
    return LINE.format(
        state=state, reason=reason, restarts=restarts, code=code, start=start, end=end, preempted=preempted, hosts=hosts
    )


def test_a_running_job():
    view = job_view(line("RUNNING"))
    assert view is not None
    assert (view.state, view.reason, view.hosts, view.limit_s, view.restarts) == ("RUNNING", "", "n[1-2]", 600, 0)
    assert (view.waiting, view.over, view.queue_s, view.ran_s) == (False, False, 90, 480)


def test_a_waiting_job_has_waited_for_no_known_time():
    view = job_view(line("PENDING", "Resources", start=NOT_YET, hosts="(null)"))
    assert view is not None
    assert (view.waiting, view.over, view.queue_s, view.reason, view.hosts) == (True, False, None, "Resources", "")


def test_what_a_user_has_named_cannot_stand_in_for_what_slurm_says():
    view = job_view(line("FAILED", "NonZeroExitCode", code="75:0"))
    assert view is not None
    assert (view.state, view.reason, view.exit_code, view.hosts) == ("FAILED", "NonZeroExitCode", 75, "n[1-2]")


@pytest.mark.parametrize("text", ["", "slurm_load_jobs error", "JobId=7"])
def test_what_is_no_view(text):
    assert job_view(text) is None


@pytest.mark.parametrize(
    ("state", "preempted", "expected"),
    [("PREEMPTED", "None", True), ("FAILED", "2026-01-02T03:05:00", True), ("FAILED", "None", False)],
)
def test_a_job_that_left_in_time_was_preempted_all_the_same(state, preempted, expected):
    view = job_view(line(state, preempted=preempted))
    assert view is not None and view.preempted == expected


def test_what_accounts_say():
    view = accounting_view(
        "CANCELLED by 1000|0:15|2026-01-02T03:00:00|2026-01-02T03:00:05|2026-01-02T03:10:00|n[1-2]\n"
    )
    assert view is not None
    assert (view.state, view.by, view.exit_signal, view.queue_s, view.over) == ("CANCELLED", "1000", 15, 5, True)
    assert accounting_view("") is None
    assert accounting_view("No accounting here") is None
    never = accounting_view("CANCELLED by 0|0:0|2026-01-02T03:00:00|None|2026-01-02T03:10:00|None assigned")
    assert never is not None and (never.hosts, never.queue_s) == ("", None)


@pytest.mark.parametrize(
    "reason", ["BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig", "InvalidAccount"]
)
def test_what_no_waiting_ends_is_refused(reason):
    error = never_starts_error(JobView(state="PENDING", reason=reason), 0.0, 300.0)
    assert error is not None and f"({reason})" in error.what


@pytest.mark.parametrize("reason", ["", "Resources", "Priority", "QOSMaxJobsPerUserLimit", "JobHeldUser", "BeginTime"])
def test_what_waiting_ends_is_waited_for(reason):
    assert never_starts_error(JobView(state="PENDING", reason=reason), 1e6, 300.0) is None


def test_hosts_that_are_down_are_given_time_and_maintenance_all_it_takes():
    down = JobView(state="PENDING", reason="ReqNodeNotAvail,_UnavailableNodes:n[1-2]")
    assert never_starts_error(down, 299.0, 300.0) is None
    error = never_starts_error(down, 301.0, 300.0)
    assert error is not None and "UnavailableNodes:n[1-2]" in error.what
    kept = JobView(state="PENDING", reason="ReqNodeNotAvail,_Reserved_for_maintenance")
    assert never_starts_error(kept, 1e6, 300.0) is None
    assert never_starts_error(JobView(state="RUNNING", reason="BadConstraints"), 0.0, 0.0) is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("CANCELLED", "was cancelled, not by this study"),
        ("TIMEOUT", "reached its time limit of 10 min before the run was done"),
        ("NODE_FAIL", "lost n2, of its hosts n[1-2]: SLURM calls it NODE_FAIL"),
        ("OUT_OF_MEMORY", "used more memory than SLURM had allocated to it on n[1-2]"),
    ],
)
def test_ends_are_told_apart(state, words):
    view = job_view(line(state))
    assert view is not None
    error = end_error(view, "7", after_step=30, down=("n2",))
    assert error is not None and error.what.startswith("SLURM job 7 ") and words in error.what
    assert "A checkpoint of step 30 was saved" in error.next


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "RUNNING", "FORGOTTEN"])
def test_an_end_of_its_own_is_explained_by_the_ranks(state):
    assert end_error(JobView(state=state), "7", after_step=None) is None


def test_hosts_that_do_not_answer():
    assert down_hosts("n1 idle\nn2 down*\nn2 down*\nn3 mixed*\nn4 drained\nn5 down\n") == ("n2", "n3", "n5")
    assert down_hosts("") == ()


class Slurm:
    """Stands in for the controller: says what it is told to, and counts how often it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, command):
        self.asked.append(command)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        code, text = answer if isinstance(answer, tuple) else (0, answer)
        return subprocess.CompletedProcess(command, code, text if code == 0 else "", text if code else "")


def test_the_controller_is_asked_no_more_often_than_it_must():
    slurm, now = Slurm(line("PENDING", "Priority"), line("RUNNING")), [0.0]
    queue = Queue("7", ask=slurm, clock=lambda: now[0])
    seen = []
    for tenths in range(60):
        now[0] = tenths / 10
        seen.append(queue.view(every_s=2.0).state)
    assert seen == ["PENDING"] * 20 + ["RUNNING"] * 40
    assert len(slurm.asked) == 3


def test_an_end_is_an_end_and_not_asked_about_again():
    slurm = Slurm(line("RUNNING"), line("COMPLETED"))
    queue = Queue("7", ask=slurm)
    assert [queue.view(0.0).state for _ in range(4)] == ["RUNNING", "COMPLETED", "COMPLETED", "COMPLETED"]
    assert len(slurm.asked) == 2


def test_a_controller_that_does_not_answer_is_no_news():
    slurm = Slurm(line("RUNNING"), (1, "Unable to contact slurm controller (connect failure)"))
    queue = Queue("7", ask=slurm)
    assert [queue.view(0.0).state for _ in range(3)] == ["RUNNING"] * 3


def test_a_job_that_the_controller_has_forgotten_is_looked_up_in_the_accounts():
    gone = (1, "slurm_load_jobs error: Invalid job id specified")
    accounts = "COMPLETED|0:0|2026-01-02T03:00:00|2026-01-02T03:00:05|2026-01-02T03:10:00|n1"
    assert Queue("7", ask=Slurm(gone, accounts)).view(0.0).state == "COMPLETED"
    assert Queue("7", ask=Slurm(gone, (1, "Slurm accounting storage is disabled"))).view(0.0).state == "FORGOTTEN"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ranks").mkdir()
    return RunFolder(tmp_path)


def recorded(folder, told, **fields):
    job = Job(scheduler="slurm", name="paceline-x", launched_at_ns=told.launched_at_ns, **fields)
    write_record(folder.job, job)
    return job


def test_the_record_of_a_job_follows_it(folder):
    told = manifest(point(2))
    slurm = Slurm(line("PENDING", start=NOT_YET, hosts=""), line("RUNNING"), line("COMPLETED"))
    job = SlurmJob(folder, told, recorded(folder, told, job_id="7"), asking=slurm)
    kept = []
    for _ in range(3):
        job.view(0.0)
        kept.append(read_record(folder.job, Job))
    assert [(each.state, each.queue_s, each.hosts) for each in kept] == [
        ("PENDING", None, ""),
        ("RUNNING", 90.0, "n[1-2]"),
        ("COMPLETED", 90.0, "n[1-2]"),
    ]


def test_a_job_is_over_for_its_ranks_when_slurm_starts_it_again(folder):
    told = manifest(point(2))
    job = SlurmJob(folder, told, recorded(folder, told, job_id="7"), asking=Slurm(line("RUNNING", restarts=1)))
    assert job.poll() == 1
    assert job.ended_at is not None


def test_a_job_is_found_by_its_number_or_by_its_name(folder):
    told = manifest(point(2))
    recorded(folder, told, job_id="7")
    assert job_to_resume(folder, told, Slurm(line("RUNNING"))) is not None
    assert job_to_resume(folder, told, Slurm(line("FAILED"))) is None, "nothing to be had from it"
    recorded(folder, told)
    slurm = Slurm("8\n", line("PENDING"))
    job = job_to_resume(folder, told, slurm)
    assert job is not None and job.job_id == "8"
    assert "--name=paceline-x" in slurm.asked[0]
    assert read_record(folder.job, Job).job_id == "8"
    recorded(folder, told)
    assert job_to_resume(folder, told, Slurm("")) is None, "killed before it was submitted"
    recorded(folder, told, job_id="7", over=True)
    assert job_to_resume(folder, told, Slurm(line("RUNNING"))) is None
    later = manifest(point(2))
    recorded(folder, told, job_id="7")
    assert job_to_resume(folder, later, Slurm(line("RUNNING"))) is None, "the job of another attempt"


def test_a_submission_whose_answer_was_lost_is_found_by_its_name(folder):
    told = manifest(point(2))
    slurm = Slurm((1, "sbatch: error: Socket timed out on send/recv operation"), "9\n")
    job = submitted_job(folder, told, "#!/bin/bash\n", "paceline-x", LaunchSettings(), asking=slurm)
    assert job.job_id == "9"
    with pytest.raises(RunError, match="rejected the job: Batch job submission failed: Invalid qos"):
        refusal = Slurm((1, "sbatch: error: Batch job submission failed: Invalid qos"), "")
        submitted_job(folder, told, "#!/bin/bash\n", "paceline-x", LaunchSettings(), asking=refusal)
    assert read_record(folder.job, Job).over
