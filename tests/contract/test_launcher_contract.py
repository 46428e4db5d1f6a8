"""What every launcher promises: one suite, run on each. Ranks are light ones, without torch."""

import contextlib
import json
import os
import re
import threading
import time

import psutil
import pytest

from contract.launchers import LAUNCHERS, factory
from light_ranks.light_launch import (
    ENDLESS,
    HOST,
    launch,
    light,
    manifest,
    point,
    running_processes,
    running_ranks,
    wait_for,
)
from paceline.errors import RankError, RunError
from paceline.storage.folder import RunFolder

variation = pytest.mark.variation
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@pytest.fixture(params=LAUNCHERS)
def kind(request):
    """Name of a launcher."""
    return request.param


@pytest.fixture
def make(kind, request, tmp_path):
    """Makes a launcher of light ranks that were given some options."""
    made = factory(kind, request)
    yield lambda *options: made(light(*options))
    assert not running_ranks(tmp_path), "a rank was left"
    assert wait_for(lambda: not running_processes(tmp_path), 5), running_processes(tmp_path)


def seen(path, ranks):
    return [json.loads((path / f"seen-{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=variation), 2, pytest.param(4, marks=variation)])
def test_every_rank_is_told_who_it_is_and_its_report_comes_back(make, tmp_path, ranks):
    told = manifest(point(ranks, threads=3))
    outcome = launch(tmp_path, told, make())
    assert [report.rank for report in outcome.reports] == list(range(ranks))
    assert {(report.status, report.steps, report.host) for report in outcome.reports} == {("done", 20, HOST)}
    assert [(at["rank"], at["size"]) for at in seen(tmp_path, ranks)] == [(rank, ranks) for rank in range(ranks)]
    assert len({report.pid for report in outcome.reports}) == ranks
    for at in seen(tmp_path, ranks):
        assert {at["environment"][name] for name in THREAD_VARIABLES} == {"3"}


@variation
def test_the_times_of_a_run_enclose_its_ranks(make, tmp_path):
    told = manifest(point(2))
    outcome = launch(tmp_path, told, make())
    assert outcome.started_at_ns == told.launched_at_ns
    last_ns = max(report.ended_at_ns for report in outcome.reports)
    assert told.launched_at_ns < last_ns < outcome.ended_at_ns < time.monotonic_ns()


def test_progress_begins_at_startup_and_never_goes_back(make, kind, tmp_path):
    heard = []
    steps = 600 if kind == "slurm" else 60  # a queue is looked at once a second: the ranks must still be there
    launch(tmp_path, manifest(point(2)), make("--steps", steps), progress=heard.append)
    heard = [progress for progress in heard if not progress.phase.startswith("queued")]
    # A scheduler starts ranks when it likes: on a busy machine they are at work before they are first looked at.
    assert (heard[0].step, heard[0].phase) == (0, "startup") or kind == "slurm"
    assert [progress.step for progress in heard] == sorted(progress.step for progress in heard)
    assert {progress.total_steps for progress in heard} <= {0, steps}
    assert heard[-1].total_steps == steps
    assert 0 < heard[-1].step <= steps


@variation
def test_an_error_in_a_listener_ends_the_run(make, tmp_path):
    def listener(progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch(tmp_path, manifest(point(2)), make(*ENDLESS), progress=listener)


@pytest.mark.parametrize("kind", [name for name, kind in LAUNCHERS.items() if kind.gives_cores])
def test_ranks_keep_to_the_cores_that_the_placement_gave_them(make, tmp_path):
    launcher = make()
    usable = os.sched_getaffinity(0)
    where = point(len(usable))
    placed = launcher.placement(where)
    assert placed.text
    assert not placed.oversubscribed
    outcome = launch(tmp_path, manifest(where, placed.cores), launcher)
    assert [set(report.affinity) for report in outcome.reports] == [set(own) for own in placed.cores]
    assert set().union(*placed.cores) == usable


@variation
def test_without_pinning_ranks_may_use_every_core(make, tmp_path):
    launcher = make()
    where = point(1, pin=False)
    placed = launcher.placement(where)
    assert placed.cores is None
    assert "pinning is off" in placed.text
    outcome = launch(tmp_path, manifest(where, placed.cores), launcher)
    assert set(outcome.reports[0].affinity) == os.sched_getaffinity(0)


@variation
def test_more_ranks_than_cores_are_flagged_and_run(make, tmp_path):
    launcher = make()
    where = point(len(os.sched_getaffinity(0)) + 1)
    placed = launcher.placement(where)
    assert placed.oversubscribed
    assert placed.cores is None
    assert len(launch(tmp_path, manifest(where), launcher).reports) == where.ranks


FAILURES = {
    "raise": r"failed after step 5 of 20 \(exit code 1\): ValueError: told to fail\n.*in misbehave",
    "exit": r"ended with exit code 3 after step 5 of 20 and wrote no report(.|\n)*leaving with 3",
    "abort": r"was killed by SIGABRT after step 5 of 20(.|\n)*Fatal Python error: Aborted(.|\n)*in misbehave",
    "silent": r"ended without a report, after step 5 of 20",
}


@pytest.mark.parametrize(
    "what", ["exit", *(pytest.param(what, marks=variation) for what in FAILURES if what != "exit")]
)
def test_a_rank_that_fails_is_named_with_step_cause_and_log(make, tmp_path, what):
    with pytest.raises(RankError, match=FAILURES[what]) as caught:
        launch(tmp_path, manifest(point(3)), make("--who", 1, "--what", what))
    assert caught.value.what.startswith(f"Rank 1 of 3 on {HOST} ")
    assert str(RunFolder(tmp_path).rank_log(1)) in str(caught.value)


@pytest.mark.parametrize("who", [pytest.param(0, marks=variation), 1, pytest.param(2, marks=variation)])
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
    with pytest.raises(RankError, match=r"Rank 1 of 2 .* ended without a report"):
        launch(tmp_path, manifest(point(2), attempt=2), make("--who", 1, "--what", "silent"))
    assert not folder.rank_report(1).exists()
    assert not folder.rank_report(7).exists()
    assert not folder.rank_spans(1).exists()
    assert (folder.checkpoints / "step-000010").is_dir()
    log = folder.rank_log(1).read_text()
    assert log.count("rank 1 starts") == 2
    assert re.findall(r"attempt (\d)", log) == ["1", "2"]


def test_a_rank_that_cannot_even_start_is_told_in_a_sentence(kind, request, tmp_path):
    launcher = factory(kind, request)(("/no/such/interpreter", "-m", "x"))
    with pytest.raises(RunError, match="could not be started: /no/such/interpreter: No such file") as caught:
        launch(tmp_path, manifest(point(2)), launcher)
    assert "Traceback" not in str(caught.value)


def test_nothing_listens_beyond_loopback(kind, make, tmp_path):
    ranks, others = [], {}

    def look(progress):
        if progress.step:
            # More than one look: the kernel's table of sockets can skip lines while others are opened and closed.
            ranks.extend(wait_for(lambda: [a for rank in running_ranks(tmp_path).values() for a in listening(rank)], 5))
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    others.setdefault(process.name(), set()).update(listening(process))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(tmp_path, manifest(point(3)), make(*ENDLESS), progress=look)
    assert ranks == ["127.0.0.1"]
    beyond = {name for name, addresses in others.items() if addresses - {"127.0.0.1"}}
    # What cannot be held to loopback is known by name, and would be noticed if it could be one day.
    assert beyond == ({LAUNCHERS[kind].beyond_loopback} - {""})
    assert {at["store_host"] for at in seen(tmp_path, 3)} == {"127.0.0.1"}
    loopbacks = {name for name in psutil.net_if_addrs() if name.startswith("lo")}
    for at in seen(tmp_path, 3):
        assert {at["environment"][f"{name}_SOCKET_IFNAME"] for name in ("GLOO", "TP", "NCCL")} <= loopbacks


def listening(process):
    """Addresses at which a process listens; an IPv4 address stays one on a socket that could take IPv6 too."""
    found = [c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    return [address.removeprefix("::ffff:") for address in found]


@variation
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
