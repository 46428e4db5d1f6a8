"""Jobs of a real SLURM: submitted, watched, cancelled, lost, out of time, pre-empted, refused, and found again."""

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from light_ranks.light_launch import ENDLESS, launch, light, manifest, point, running_processes, wait_for
from paceline.errors import RunError
from paceline.launch.slurm.slurm_launcher import SlurmLauncher
from paceline.records.run import Job, RunResult
from paceline.records.settings import LaunchSettings
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.execute.events import Note, RunFailed, RunProgress
from paceline.studies.execute.execute import execute
from paceline.studies.load.load import load_study
from testbeds.slurm_cluster import HOSTS

STUDY_PROCESS = Path(__file__).with_name("slurm_study.py")


def on_slurm(ranks, hosts=1):
    return replace(point(ranks, hosts=hosts), launcher="slurm")


def run(path, where, *options, progress=lambda progress: None, **settings):
    """One run of light ranks."""
    asked = LaunchSettings(interface="lo", **settings)
    told = manifest(where, settings=asked)
    return launch(path, told, SlurmLauncher(light(*options), asked), progress=progress)


def job_of(path):
    return read_record(RunFolder(path).job, Job)


def nothing_runs(path):
    return wait_for(lambda: not running_processes(path), 20, every_s=0.1)


@pytest.mark.parametrize("start", ["srun", "mpiexec"])
def test_ranks_are_spread_over_hosts_and_the_time_in_the_queue_is_no_part_of_the_run(slurm, tmp_path, start):
    phases = set()
    began_ns = time.monotonic_ns()
    outcome = run(tmp_path, on_slurm(3, hosts=2), progress=lambda progress: phases.add(progress.phase), start=start)
    assert [report.host for report in outcome.reports] == [HOSTS["pace1"], HOSTS["pace1"], HOSTS["pace2"]]
    assert any(phase.startswith("queued") for phase in phases)
    assert began_ns < outcome.started_at_ns < outcome.ended_at_ns < time.monotonic_ns()
    job = job_of(tmp_path)
    assert (job.hosts, job.scheduler) == ("pace[1-2]", "slurm")
    assert job.queue_s is not None and job.queue_s >= 0
    assert job.submitted_at is not None and job.started_at is not None and job.submitted_at <= job.started_at


@pytest.mark.parametrize(
    ("where", "settings", "words"),
    [
        (on_slurm(1), {"constraint": "nosuch"}, "SLURM rejected the job: .*Invalid feature"),
        (on_slurm(1), {"partition": "nosuch"}, "SLURM rejected the job: .*nvalid partition"),
        (on_slurm(99, hosts=3), {}, r"would never start this job: .*\(PartitionConfig\). It was cancelled"),
        (on_slurm(1), {"time_limit": "05:00:00"}, r"would never start this job: .*\(PartitionTimeLimit\)"),
    ],
)
def test_an_impossible_request_is_refused_in_words(slurm, tmp_path, where, settings, words):
    with pytest.raises(RunError, match=words):
        run(tmp_path, where, **settings)
    assert job_of(tmp_path).over
    assert slurm.jobs() == []


def test_a_hostile_study_reaches_no_shell(slurm, tmp_path):
    path = tmp_path / "a b'c\"d$(touch hacked)`touch hacked`;touch hacked&|*#%j"
    run(path, on_slurm(2))
    assert (path / "logs" / "launcher.log").exists()
    assert not list(tmp_path.rglob("hacked"))


def test_a_job_that_someone_cancels_is_told_apart(slurm, tmp_path):
    def cancel(progress):
        if progress.step:
            slurm.ask("scancel", job_of(tmp_path).job_id)

    with pytest.raises(RunError, match=r"^SLURM job \d+ was cancelled, not by this study\."):
        run(tmp_path, on_slurm(2, hosts=2), *ENDLESS, progress=cancel, grace_s=0.0)
    assert nothing_runs(tmp_path)


def test_a_job_that_waits_shows_why_and_leaves_the_queue_when_it_is_interrupted(slurm, tmp_path):
    blocker = slurm.ask("sbatch", "--parsable", "-N3", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
    phases = []

    def interrupt(progress):
        phases.append(progress.phase)
        if "(" in progress.phase:
            raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, on_slurm(1), progress=interrupt)
        assert phases[-1] in ("queued (Resources)", "queued (Priority)")
        assert slurm.jobs() == [blocker]
        assert job_of(tmp_path).queue_s is None
    finally:
        slurm.ask("scancel", blocker)


STUDY = """
[study]
name = "two nodes"
[data]
dataset = "digits"
[model]
name = "model.py:build"
[train]
batch_global = 32
steps = 400
seed = 3
[run]
ranks = [2]
hosts = [1, 2]
repeats = 1
strategy = "flat"
device = "cpu"
launcher = "slurm"
[launch]
interface = "lo"
"""


# Steps that take their time on an idle machine too, without computing: so a job is still there when it is to leave.
MODEL = """
import time
from torch import nn

class Model(nn.Sequential):
    def forward(self, images):
        time.sleep({pause_s} if self.training else 0.0)
        return super().forward(images)

def build(shape, classes):
    return Model(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], 32), nn.ReLU(), nn.Linear(32, classes))
"""


def test_a_study_of_one_and_two_hosts_gives_way_twice_and_ends_with_the_same_bits(slurm, tmp_path):
    """Once for a job that matters more, once because it is told to: without train.checkpoint_every."""
    (tmp_path / "two.toml").write_text(STUDY)
    (tmp_path / "model.py").write_text(MODEL.format(pause_s=0.01))
    notes, gave_way, problems = [], set(), []

    def listen(event):
        if isinstance(event, Note):
            notes.append(event.text)
        if isinstance(event, RunFailed):
            problems.append(event.message)
        if (
            isinstance(event, RunProgress)
            and event.step > 120 * event.run.point.hosts - 90
            and event.run.point.hosts not in gave_way
        ):
            gave_way.add(event.run.point.hosts)
            if event.run.point.hosts == 1:
                slurm.ask("sbatch", "--partition=urgent", "-N3", "--exclusive", "--output=/dev/null", "--wrap=true")
            else:
                folder = StudyFolder(tmp_path / "out").run(event.run.point.point_id, 1)
                slurm.ask("scancel", "--signal=USR1", read_record(folder.job, Job).job_id)

    execution = execute(load_study(tmp_path / "two.toml"), tmp_path / "out", events=listen, preflight=False)
    assert (problems, execution.failures) == ([], {})
    assert any("was pre-empted by another job, after it had written a checkpoint" in note for note in notes), notes
    assert any("was asked to exit, and wrote a checkpoint at step" in note for note in notes), notes
    results = [read_record(path, RunResult) for path in sorted(tmp_path.glob("out/points/*/runs/1/result.json"))]
    assert len(results) == 2
    for result in results:
        assert (result.attempt, result.total_s, result.steps) == (2, None, 400)
        assert result.resumed_from_step is not None and 30 < result.resumed_from_step < 400
        assert result.queue_s is not None
    assert len({result.resumed_from_step for result in results}) == 2
    (tmp_path / "model.py").write_text(MODEL.format(pause_s=0.0))
    study = load_study(tmp_path / "two.toml", ["run.launcher=local", "run.hosts=1"])
    execute(study, tmp_path / "local", preflight=False)
    whole = read_record(next(tmp_path.glob("local/points/*/runs/1/result.json")), RunResult)
    assert {result.weights_sha256 for result in results} == {whole.weights_sha256}
    machine = json.loads(next(tmp_path.glob("out/points/*/runs/1/machine.json")).read_text())
    assert machine["hosts"]


@pytest.fixture(scope="module")
def slow_ends(slurm_cluster, tmp_path_factory):
    """A run that loses a host and one that reaches its time limit, as futures of what is said about them.

    SLURM looks for either twice a minute only: they are begun here, and other tests run meanwhile.
    """
    path = tmp_path_factory.mktemp("slow")
    begun = {name: threading.Event() for name in ("lost", "late")}

    def end(name, hosts, **settings):
        with pytest.raises(RunError) as caught:
            run(
                path / name,
                on_slurm(hosts, hosts=hosts),
                *(*ENDLESS, "--step-s", 0.05),
                progress=lambda progress: begun[name].set() if progress.step else None,
                partition="beside",
                **settings,
            )
        assert nothing_runs(path / name)
        return job_of(path / name).job_id, str(caught.value)

    slurm_cluster.busy = True
    slurm_cluster.write_configuration(patience_s=5)
    slurm_cluster.ask("scontrol", "reconfigure")
    with ThreadPoolExecutor(2) as both:
        lost = both.submit(end, "lost", 2, directives=("--nodelist=pace[2-3]",))
        late = both.submit(end, "late", 1, time_limit="1", grace_s=0.0)
        assert begun["lost"].wait(60) and begun["late"].wait(60)
        slurm_cluster.kill_node("pace3")
        slurm_cluster.ask("scontrol", "update", f"JobId={job_of(path / 'late').job_id}", "EndTime=now+1seconds")
        yield lost, late
    slurm_cluster.write_configuration()
    slurm_cluster.ask("scontrol", "reconfigure")
    slurm_cluster.start_node("pace3")
    slurm_cluster.busy = False
    assert wait_for(slurm_cluster.all_idle, 60, every_s=0.1), slurm_cluster.logs()


LIGHT_STUDY = """
[study]
name = "left"
[data]
dataset = "digits"
[model]
name = "mlp"
[train]
batch_global = 8
epochs = 1
[run]
ranks = [2]
repeats = 2
launcher = "slurm"
"""


@pytest.fixture
def light_study(slurm, slow_ends, tmp_path):
    """Starts processes that execute one and the same study."""
    (tmp_path / "left.toml").write_text(LIGHT_STUDY)
    started = []

    def start(seconds):
        told = (tmp_path / "left.toml", tmp_path / "out", tmp_path / "ledger", seconds)
        command = (sys.executable, str(STUDY_PROCESS), *map(str, told))
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def run_folder(tmp_path, number):
    found = list((tmp_path / "out").glob(f"points/*/runs/{number}"))
    return RunFolder(found[0]) if found else None


def begun(tmp_path, number):
    """Whether the ranks of a run have begun."""
    folder = run_folder(tmp_path, number)
    return folder is not None and folder.rank_start(0).exists() and folder.rank_start(1).exists()


def test_a_study_that_is_killed_finds_its_jobs_again(slurm, tmp_path, light_study):
    first = light_study(4)
    assert wait_for(lambda: begun(tmp_path, 1), 60)
    first.kill()
    first.wait()
    assert len(slurm.jobs()) == 1, "the job goes on"
    second = light_study(4)
    assert wait_for(lambda: begun(tmp_path, 2), 60), "taken over while it ran"
    second.kill()
    second.wait()
    assert wait_for(lambda: slurm.jobs() == [], 60, every_s=0.1)
    assert light_study(4).wait(60) == 0, "collected after it had ended"
    lines = [line.split() for line in (tmp_path / "ledger").read_text().splitlines()]
    assert [(number, attempt) for _, number, attempt in lines] == [("1", "1"), ("2", "1")], "none was started twice"
    for number in (1, 2):
        folder = run_folder(tmp_path, number)
        result = read_record(folder.result, RunResult)
        assert result.attempt == 1
        assert result.queue_s == read_record(folder.job, Job).queue_s
        assert 4 <= result.wall_s < 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_cancels_the_job_and_a_lost_terminal_does_not(slurm, tmp_path, light_study, number):
    study = light_study(600)
    assert wait_for(lambda: begun(tmp_path, 1), 60)
    study.send_signal(number)
    assert study.wait(60) == (130 if number == signal.SIGINT else -signal.SIGHUP)
    left = slurm.jobs()
    assert len(left) == (0 if number == signal.SIGINT else 1)
    if left:
        SlurmLauncher().cancel(run_folder(tmp_path, 1))
        assert slurm.jobs() == []
    assert nothing_runs(tmp_path / "out")


def test_a_lost_host_is_named(slow_ends):
    job_id, said = slow_ends[0].result(120)
    assert said.startswith(f"SLURM job {job_id} lost pace3, of its hosts pace[2-3]: SLURM calls it NODE_FAIL.")


def test_a_time_limit_that_is_reached_is_called_that(slow_ends):
    job_id, said = slow_ends[1].result(120)
    assert said.startswith(f"SLURM job {job_id} reached its time limit of 1 min before the run was done.")
    assert "Raise launch.time_limit" in said
