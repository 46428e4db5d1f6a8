"""What every launcher promises: one suite, run on each. Ranks are light ones, without torch."""

import json
import os
import re
import threading
import time

import psutil
import pytest

from light_launch import ENDLESS, HOST, launch, light, manifest, point, running_ranks, wait_for
from paceline.errors import RankError, RunError
from paceline.launch.local import LocalLauncher
from paceline.records.folder import RunFolder

LAUNCHERS = {"local": LocalLauncher}
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@pytest.fixture(params=LAUNCHERS)
def make(request):
    """Makes a launcher of light ranks that were given some options."""
    yield lambda *options: LAUNCHERS[request.param](light(*options))
    assert not running_ranks(os.getpid()), "a rank was left"


def seen(path, ranks):
    return [json.loads((path / f"seen-{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_rank_is_told_who_it_is_and_its_report_comes_back(make, tmp_path, ranks):
    told = manifest(point(ranks, threads=3))
    outcome = launch(tmp_path, told, make())
    assert [report.rank for report in outcome.reports] == list(range(ranks))
    assert {(report.status, report.steps, report.host) for report in outcome.reports} == {("done", 20, HOST)}
    assert [(at["rank"], at["size"]) for at in seen(tmp_path, ranks)] == [(rank, ranks) for rank in range(ranks)]
    assert len({report.pid for report in outcome.reports}) == ranks
    for at in seen(tmp_path, ranks):
        assert {at["environment"][name] for name in THREAD_VARIABLES} == {"3"}


def test_the_times_of_a_run_enclose_its_ranks(make, tmp_path):
    told = manifest(point(2))
    outcome = launch(tmp_path, told, make())
    assert outcome.started_at_ns == told.launched_at_ns
    last_ns = max(report.ended_at_ns for report in outcome.reports)
    assert told.launched_at_ns < last_ns < outcome.ended_at_ns < time.monotonic_ns()


def test_progress_begins_at_startup_and_never_goes_back(make, tmp_path):
    heard = []
    launch(tmp_path, manifest(point(2)), make("--steps", 60), progress=heard.append)
    assert (heard[0].step, heard[0].phase) == (0, "startup")
    assert [progress.step for progress in heard] == sorted(progress.step for progress in heard)
    assert {progress.total_steps for progress in heard} == {0, 60}
    assert heard[-1].step > 30


def test_an_error_in_a_listener_ends_the_run(make, tmp_path):
    def listener(progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch(tmp_path, manifest(point(2)), make(*ENDLESS), progress=listener)


def test_ranks_keep_to_the_cores_that_the_placement_gave_them(make, tmp_path):
    launcher = make()
    usable = os.sched_getaffinity(0)
    where = point(len(usable))
    placed = launcher.placement(where)
    assert placed.text
    if placed.cores is None:
        pytest.skip(placed.text)
    assert not placed.oversubscribed
    outcome = launch(tmp_path, manifest(where, placed.cores), launcher)
    assert [set(report.affinity) for report in outcome.reports] == [set(own) for own in placed.cores]
    assert set().union(*placed.cores) == usable


def test_without_pinning_ranks_may_use_every_core(make, tmp_path):
    launcher = make()
    where = point(1, pin=False)
    placed = launcher.placement(where)
    assert placed.cores is None
    assert "pinning is off" in placed.text
    outcome = launch(tmp_path, manifest(where, placed.cores), launcher)
    assert set(outcome.reports[0].affinity) == os.sched_getaffinity(0)


def test_more_ranks_than_cores_are_flagged_and_run(make, tmp_path):
    launcher = make()
    where = point(len(os.sched_getaffinity(0)) + 1)
    placed = launcher.placement(where)
    assert placed.oversubscribed
    assert placed.cores is None
    assert len(launch(tmp_path, manifest(where), launcher).reports) == where.ranks


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("raise", r"failed after step 5 of 20 \(exit code 1\): ValueError: told to fail\n.*in misbehave"),
        ("exit", r"ended with exit code 3 after step 5 of 20 and left no report(.|\n)*leaving with 3"),
        ("abort", r"was killed by SIGABRT after step 5 of 20(.|\n)*Fatal Python error: Aborted(.|\n)*in misbehave"),
        ("silent", r"ended without saying that it was done, after step 5 of 20"),
    ],
)
def test_a_rank_that_fails_is_named_with_step_cause_and_log(make, tmp_path, what, words):
    with pytest.raises(RankError, match=words) as caught:
        launch(tmp_path, manifest(point(3)), make("--who", 1, "--what", what))
    assert caught.value.what.startswith(f"Rank 1 of 3 on {HOST} ")
    assert str(RunFolder(tmp_path).rank_log(1)) in str(caught.value)


@pytest.mark.parametrize("who", [0, 1, 2])
def test_peers_that_fail_because_of_another_are_not_named(make, tmp_path, who):
    with pytest.raises(RankError, match=f"^Rank {who} of 3 .*ValueError: told to fail"):
        launch(tmp_path, manifest(point(3)), make("--who", who, "--what", "raise"))
    # and the test is worth something: the others did fail
    kinds = [json.loads(RunFolder(tmp_path).rank_report(rank).read_text())["error_kind"] for rank in range(3)]
    assert kinds == ["own" if rank == who else "peer" for rank in range(3)]


def test_what_an_earlier_attempt_said_is_not_taken_for_this_one(make, tmp_path):
    folder = RunFolder(tmp_path)
    launch(tmp_path, manifest(point(2)), make())
    (folder.checkpoints / "step-000010").mkdir(parents=True)
    folder.rank_spans(1).write_bytes(b"old")
    folder.rank_report(7).write_bytes(b"old")
    with pytest.raises(RankError, match=r"Rank 1 of 2 .* ended without saying that it was done"):
        launch(tmp_path, manifest(point(2), attempt=2), make("--who", 1, "--what", "silent"))
    assert not folder.rank_report(1).exists()
    assert not folder.rank_report(7).exists()
    assert not folder.rank_spans(1).exists()
    assert (folder.checkpoints / "step-000010").is_dir()
    log = folder.rank_log(1).read_text()
    assert log.count("rank 1 starts") == 2
    assert re.findall(r"attempt (\d)", log) == ["1", "2"]


def test_a_rank_that_cannot_even_start_is_told_in_a_sentence(tmp_path):
    for name, launcher in LAUNCHERS.items():
        with pytest.raises(RunError, match="could not be started: /no/such/interpreter: No such file"):
            launch(tmp_path / name, manifest(point(2)), launcher(("/no/such/interpreter", "-m", "x")))


def test_nothing_listens_beyond_loopback(make, tmp_path):
    listening = []

    def look(progress):
        if progress.step:
            for process in running_ranks(os.getpid(), psutil.Process().children()).values():
                listening.extend(c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(tmp_path, manifest(point(3)), make(*ENDLESS), progress=look)
    assert listening == ["127.0.0.1"]
    assert {at["store_host"] for at in seen(tmp_path, 3)} == {"127.0.0.1"}
    loopbacks = {name for name in psutil.net_if_addrs() if name.startswith("lo")}
    for at in seen(tmp_path, 3):
        assert {at["environment"][f"{kind}_SOCKET_IFNAME"] for kind in ("GLOO", "TP", "NCCL")} <= loopbacks


def test_a_run_outside_the_main_thread_works_too(make, tmp_path):
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(launch(tmp_path, manifest(point(2)), make())))
    thread.start()
    thread.join()
    assert len(outcomes[0].reports) == 2


def test_what_a_rank_started_ends_with_it(make, tmp_path):
    launch(tmp_path, manifest(point(2)), make("--who", 1, "--what", "child"))
    child = int((tmp_path / "child-1").read_text())
    assert wait_for(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", 2)
