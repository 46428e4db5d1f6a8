"""Real ranks with real servers: the gate, the staleness bound, who talks to whom, and what is said when one dies."""

from __future__ import annotations

import itertools
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "multiproc"))

import gate
from ranks import SpawnedRanks
from server_group import Crewed, Pool

from light_ranks.light_launch import running_ranks, wait_for
from paceline import catalog
from paceline.analyze.run.ledger import ledgers
from paceline.analyze.run.messages import COLLECTIVE
from paceline.errors import RankError
from paceline.launch.launcher import clear_attempt
from paceline.launch.local import LocalLauncher
from paceline.launch.mpi_launcher import MpiLauncher
from paceline.launch.supervision import end_ranks
from paceline.records.run import Manifest, RankReport
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import pulse
from paceline.storage.span_stream import read_spans
from paceline.studies.execute.compose import run_result

FAULTS = int(os.environ.get("FAULTS", "1"))
SYNC, ASYNC = "parameter-server", "parameter-server-async"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    from paceline.data.store import prepare
    from paceline.records.settings import DataSettings

    cache = tmp_path_factory.mktemp("cache")
    return str(prepare(DataSettings(dataset="digits"), base=cache, cache=cache).folder)


@pytest.fixture(scope="module")
def one_process(digits: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[gate.Losses]:
    alone = SpawnedRanks(1)
    yield gate.one_process_losses(alone, digits, tmp_path_factory.mktemp("one"))
    alone.close()


@pytest.mark.parametrize(("optimizer", "servers"), [("sgd", 1), ("adam", 2)])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("batches", [gate.EVEN, gate.UNEVEN], ids=["even", "uneven"])
def test_synchronous_servers_follow_one_process(
    pool, digits, tmp_path, one_process, ranks, servers, batches, optimizer
):
    settings = {**gate.learning(optimizer, batches), "strategy": SYNC}
    gate.follows_one_process(Crewed(pool, ranks, servers), digits, tmp_path, one_process(optimizer, batches), settings)


@pytest.mark.parametrize(("strategy", "optimizer"), [(SYNC, "adam"), (SYNC, "sgd"), (ASYNC, "sgd")])
def test_servers_follow_a_rate_that_changes(pool, digits, tmp_path, one_process, strategy, optimizer):
    """It comes with the gradients; without staleness, asynchronous servers take the same steps."""
    rates = {"lr_rule": "sqrt", "lr_batch": 10, "warmup_epochs": 2.0, "schedule": "cosine", "accumulate": 2}
    batches = {**gate.UNEVEN, "train": {**gate.UNEVEN["train"], **rates}}
    settings = {**gate.learning(optimizer, batches), "strategy": strategy}
    context = Crewed(pool, 2, 2, **({"staleness": 0} if strategy == ASYNC else {}))
    gate.follows_one_process(context, digits, tmp_path, one_process(optimizer, batches), settings)


def test_buffers_are_equal_on_all_ranks(pool, digits, tmp_path):
    gate.shares_buffers(Crewed(pool, 3, 1), digits, tmp_path, SYNC)


def test_the_same_seed_gives_the_same_bits(pool, digits, tmp_path):
    gate.repeats_itself(Crewed(pool, 4, 2), digits, tmp_path, SYNC)


@pytest.mark.parametrize("seed", range(FAULTS))
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_stopped_run_resumes_bit_for_bit(pool, digits, tmp_path, seed, ranks):
    chance = random.Random(100 * seed + ranks)
    gate.resumes(Crewed(pool, ranks, chance.choice((1, 2))), digits, tmp_path, SYNC, chance)


@pytest.mark.parametrize(("ranks", "servers", "batches"), [(2, 1, gate.EVEN), (3, 2, gate.UNEVEN)])
def test_asynchronous_servers_without_staleness_follow_one_process(
    pool, digits, tmp_path, one_process, ranks, servers, batches
):
    """With a bound of 0 all gradients of a step are of the same parameters, and plain SGD adds them up."""
    settings = {**gate.learning("sgd", batches), "strategy": ASYNC}
    context = Crewed(pool, ranks, servers, staleness=0)
    gate.follows_one_process(context, digits, tmp_path, one_process("sgd", batches), settings)
    assert [server["staleness"] for server in context.others[:-1]] == [(100 * ranks,)] * servers


def test_one_asynchronous_rank_resumes_bit_for_bit(pool, digits, tmp_path):
    """More than one have no fixed order; what servers and ranks tell one another about a checkpoint is the same."""
    gate.resumes(Crewed(pool, 1, 2, staleness=4), digits, tmp_path, ASYNC, random.Random(7))


def test_asynchronous_ranks_end_equal_and_resume(pool, digits, tmp_path):
    train = {"epochs": 3, "checkpoint_every": 5, "lr": 0.003}
    settings = gate.with_model(tmp_path, gate.NORMED, {"strategy": ASYNC, "data": {"validation": 200}, "train": train})
    context = Crewed(pool, 3, 2, staleness=2)
    context.run("train", folder=str(tmp_path), data=digits, settings=settings, stop_at=13)
    answers = context.run("train", folder=str(tmp_path), data=digits, settings=settings, sleep_s={2: 0.02})
    assert {answer["resumed_from"] for answer in answers} == {10}
    assert len({answer["weights"] for answer in answers}) == 1
    assert len({answer["curves"] for answer in answers}) == 1


def staleness(pool: Pool, digits: str, folder: Path, bound: int) -> list[tuple[int, ...]]:
    """Of each of two servers, with a rank that is far slower than the other two."""
    settings = gate.with_model(folder, gate.SMALL, {"strategy": ASYNC, "train": {"epochs": 2, "batch_global": 64}})
    context = Crewed(pool, 3, 2, staleness=bound)
    context.run("train", folder=str(folder), data=digits, settings=settings, sleep_s={1: 0.15})
    return [server["staleness"] for server in context.others[:-1]]


def test_the_bound_on_staleness_is_kept_and_reached(pool, digits, tmp_path):
    for counts in staleness(pool, digits, tmp_path, 3):
        assert sum(counts) == 3 * 20, "every gradient of every rank is counted"
        assert len(counts) - 1 == 3
        assert counts[3] > 10, "the fast ones are held at the bound most of the time"


def test_without_a_bound_it_would_be_exceeded(pool, digits, tmp_path):
    for counts in staleness(pool, digits, tmp_path, 1000):
        assert len(counts) - 1 > 3


def test_parameters_that_all_pull_at_the_end_of_an_epoch_are_not_stale(pool, digits, tmp_path):
    """Epochs of one step: whoever is ahead when it gives a gradient has pulled with the others before the next."""
    told = {"strategy": ASYNC, "data": {"train_samples": 64}, "train": {"epochs": 5, "batch_global": 64}}
    context = Crewed(pool, 3, 2, staleness=3)
    context.run("train", folder=str(tmp_path), data=digits, settings=gate.with_model(tmp_path, gate.SMALL, told))
    assert [server["staleness"] for server in context.others[:-1]] == [(3 * 5,)] * 2


@pytest.mark.parametrize("strategy", [SYNC, ASYNC])
def test_no_byte_goes_from_rank_to_rank(pool, digits, tmp_path, strategy):
    """As the traces of all processes show, batch normalisation and checkpoints included."""
    train = {"epochs": 2, "checkpoint_every": 7}
    settings = gate.with_model(
        tmp_path, gate.NORMED, {"strategy": strategy, "data": {"validation": 200}, "train": train}
    )
    context = Crewed(pool, 3, 2, **({"staleness": 4} if strategy == ASYNC else {}))
    answers = context.run("train", folder=str(tmp_path), data=digits, settings=settings)
    ranks, servers, coordinator = [0, 1, 2], [3, 4], 5
    sent = {process: messages(tmp_path, process) for process in range(6)}
    for process in ranks:
        assert {operation for operation, _, _, _ in sent[process]} == {"send", "recv_"}
        assert {peer for _, peer, _, _ in sent[process]} == {*servers, coordinator}
    for process in servers:
        assert {peer for _, peer, _, _ in sent[process]} == set(ranks)
    assert {peer for _, peer, _, _ in sent[coordinator]} == set(ranks)
    parameters, number_bytes = answers[0]["parameters"], 8
    for process, step in itertools.product(ranks, range(1, 7)):  # the first checkpoint is at step 7
        for operation, header in (("send", 2), ("recv_", 0)):  # what is asked for, and the learning rate
            told = [
                (peer, size) for o, peer, size, at in sent[process] if (o, at) == (operation, step) and peer in servers
            ]
            assert [peer for peer, _ in told] == servers, "one message each way to each server"
            assert sum(size for _, size in told) == number_bytes * (parameters + header * len(servers))


def messages(folder: Path, process: int) -> list[tuple[str, int, int, int]]:
    """Operation, peer, bytes and step of all that a process sent and received."""
    trace = read_spans(RunFolder(folder).rank_spans(process), process)
    return [
        (trace.operation[i] or "", int(trace.peer[i]), int(trace.bytes[i]), int(trace.step[i]))
        for i in range(len(trace))
        if trace.kind[i] == COLLECTIVE
    ]


# From here on processes as launchers start them.


@pytest.fixture
def told(digits, tmp_path) -> Callable[..., Manifest]:
    def manifest(
        strategy: str,
        launcher: str = "local",
        *,
        ranks: int = 2,
        epochs: int = 2_000,
        read: str = "mapped",
        **options: int,
    ) -> Manifest:
        point = Point(
            data=DataSettings(dataset="digits", read=read),
            data_digest="",
            model=ModelSettings(name="mlp", options={"layers": 1, "neurons": 32}),
            model_digest="",
            train=TrainSettings(batch_global=300, epochs=epochs, lr=0.01),
            ranks=ranks,
            strategy=strategy,
            launcher=launcher,
            options={**catalog.strategy(strategy).options, **options},
        )
        made = Manifest(
            study="servers",
            point_id=point.point_id,
            point=point,
            run=1,
            seed=3,
            data_folder=digits,
            model_file=None,
            cores=None,
            placement="",
            launched_at_ns=time.monotonic_ns(),
            launched_at="",
        )
        write_record(RunFolder(tmp_path).manifest, made)
        return made

    return manifest


def kill_after_step(folder: RunFolder, victim: int, step: int = 5) -> Callable[[], None]:
    """Kill a process of this test's run, once rank 0 has come to a step."""

    def act() -> None:
        def stepping() -> bool:
            seen = pulse(folder.rank_pulse(0))
            return seen is not None and seen.step >= step

        if wait_for(stepping, within_s=120, every_s=0.05):
            running_ranks(folder.path)[victim].kill()

    return act


def test_a_killed_server_is_named(told, tmp_path):
    folder, progress = RunFolder(tmp_path), []
    killer = threading.Thread(target=kill_after_step(folder, 1, step=300))
    killer.start()
    with pytest.raises(RankError) as caught:
        LocalLauncher().run(folder, told(SYNC, ranks=1), heartbeat_s=60, progress=progress.append)
    killer.join()
    assert re.match(r"Server 0 \(process 1 of 3\) on \S+ was killed by SIGKILL after step \d+\.", caught.value.what)
    assert str(folder.rank_log(1)) in caught.value.next
    assert max(shown.step for shown in progress) >= 4, "the progress is that of the ranks: a server shows no total"
    assert {shown.total_steps for shown in progress if shown.step} == {10_000}


def test_whoever_loses_a_rank_says_so_and_ends(told, tmp_path):
    """Nobody ends them here: servers and coordinator notice it themselves, asynchronous ones too."""
    folder, manifest, processes = RunFolder(tmp_path), told(ASYNC), []
    clear_attempt(folder)
    try:
        LocalLauncher()._start(processes, folder, manifest)
        kill_after_step(folder, 1)()
        assert wait_for(lambda: all(process.poll() is not None for process in processes), within_s=60)
    finally:
        end_ranks(processes, nap=time.sleep)
    assert [process.poll() for process in processes] == [1, -9, 1, 1]
    for process, role in ((0, "rank"), (2, "server"), (3, "coordinator")):
        report = read_record(folder.rank_report(process), RankReport)
        assert (report.status, report.role, report.error_kind) == ("failed", role, "peer"), report.traceback


def test_a_run_under_mpiexec_has_its_roles_threads_and_staleness(told, tmp_path):
    pytest.importorskip("mpi4py")
    # Ranks that read through MPI start it, which waits for servers and coordinator to do the same.
    manifest = told(ASYNC, "mpi", epochs=3, read="mpi-io", server_threads=2, staleness=2)
    folder = RunFolder(tmp_path)
    outcome = MpiLauncher().run(folder, manifest, heartbeat_s=60)
    result = run_result(manifest, outcome, oversubscribed=True)
    assert [(report.role, report.threads) for report in outcome.reports] == [
        ("rank", 1),
        ("rank", 1),
        ("server", 2),
        ("coordinator", 1),
    ]
    assert (result.ranks, result.steps, len(result.epochs)) == (2, 15, 3)
    assert outcome.reports[2].parameters == result.parameters
    assert sum(outcome.reports[2].staleness) == 2 * 15
    assert result.staleness_max is not None and result.staleness_max <= 2
    assert result.test_accuracy > 0.5
    for rank in (0, 1):
        assert {peer for _, peer, _, _ in messages(tmp_path, rank)} == {2, 3}
    traces = [read_spans(folder.rank_spans(rank), rank) for rank in range(result.ranks)]
    ended_at_ns = result.launched_at_ns + round(result.wall_s * 1e9)
    for book in ledgers(traces, started_at_ns=result.launched_at_ns, ended_at_ns=ended_at_ns, ranks=result.ranks):
        assert sum(value or 0.0 for value in book.values()) == pytest.approx(result.wall_s, rel=1e-6)
