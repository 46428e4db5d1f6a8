"""The strategies that talk through MPI pass the same gate as all others, under real mpiexec.

MPICH's of the wheel always, with 1 to 4 ranks; Debian's Open MPI where it is installed, with 2.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "multiproc"))

import gate
from ranks import MpiRanks

from checks.ci import in_ci
from light_ranks.light_launch import manifest, point
from paceline.data.store import prepare
from paceline.launch.wrapper.wrapped_ranks import Program, run_wrapped, wrapper_command
from paceline.records.settings import DataSettings, TrainSettings
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder

MPICH = (str(Path(sys.executable).with_name("mpiexec")),)
OPEN_MPI = ("mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
# One rank exchanges nothing, whatever the strategy.
MPICH_CASES = [("mpich", 1, gate.MPI[0])] + [("mpich", size, name) for size in (2, 3, 4) for name in gate.MPI]
CASES = MPICH_CASES + [("openmpi", 2, name) for name in gate.MPI]

# Rank 0 ends a second after the others: an mpiexec that takes their end for a loss has the time to kill it.
LATE_RANK_0 = ("sh", "-c", '"$@"; code=$?; [ "$PMI_RANK$OMPI_COMM_WORLD_RANK" = 0 ] && sleep 1; exit $code', "sh")

Groups = Callable[[str, int], MpiRanks]


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    """Live ranks by kind of MPI and world size."""
    made: dict[tuple[str, int], MpiRanks] = {}

    def group(kind: str, size: int) -> MpiRanks:
        if (kind, size) not in made:
            folder = tmp_path_factory.mktemp(f"{kind}-{size}")
            made[kind, size] = _started(kind, size, folder)
        return made[kind, size]

    yield group
    for ranks in made.values():
        ranks.close()


def _started(kind: str, size: int, folder: Path) -> MpiRanks:
    if kind == "mpich":
        return MpiRanks(size, MPICH, folder)
    need_open_mpi()
    return MpiRanks(size, OPEN_MPI, folder, MPI4PY_MPIABI="openmpi")


def need_open_mpi() -> None:
    if shutil.which(OPEN_MPI[0]) is None:
        if in_ci():
            pytest.fail(f"{OPEN_MPI[0]} is not installed")
        pytest.skip(f"{OPEN_MPI[0]} is not installed")


@pytest.fixture(scope="module")
def digits_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    cache = tmp_path_factory.mktemp("cache")
    return str(prepare(DataSettings(dataset="digits"), base=cache, cache=cache).folder)


@pytest.fixture(scope="module")
def one_process(groups: Groups, digits_folder: str, tmp_path_factory: pytest.TempPathFactory) -> gate.Losses:
    return gate.one_process_losses(groups("mpich", 1), digits_folder, tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize(("kind", "size", "strategy"), CASES)
@pytest.mark.parametrize(("optimizer", "batches"), [("sgd", gate.EVEN), ("adam", gate.UNEVEN)], ids=["even", "uneven"])
def test_any_number_of_ranks_follows_one_process(
    groups, digits_folder, tmp_path, one_process, kind, size, strategy, batches, optimizer
):
    settings = {**gate.learning(optimizer, batches), "strategy": strategy}
    gate.follows_one_process(groups(kind, size), digits_folder, tmp_path, one_process(optimizer, batches), settings)


@pytest.mark.parametrize("strategy", gate.MPI)
def test_buffers_are_equal_on_all_ranks(groups, digits_folder, tmp_path, strategy):
    gate.shares_buffers(groups("mpich", 3), digits_folder, tmp_path, strategy)


@pytest.mark.parametrize(("kind", "size", "strategy"), CASES)
def test_the_same_seed_gives_the_same_bits(groups, digits_folder, tmp_path, kind, size, strategy):
    gate.repeats_itself(groups(kind, size), digits_folder, tmp_path, strategy)


@pytest.mark.parametrize(("kind", "size", "strategy"), CASES)
def test_a_stopped_run_resumes_bit_for_bit(groups, digits_folder, tmp_path, kind, size, strategy):
    gate.resumes(groups(kind, size), digits_folder, tmp_path, strategy, random.Random(f"{kind} {size} {strategy}"))


@pytest.mark.parametrize("strategy", gate.MPI)
def test_gradient_noise_is_seen(groups, digits_folder, tmp_path, strategy):
    gate.shows_noise(groups("mpich", 2), digits_folder, tmp_path, strategy)


SHORT = {"data": {"train_samples": 400}, "train": {"batch_global": 40, "epochs": 1, "precision": "float32"}}


@pytest.mark.parametrize(
    ("strategy", "operations"),
    [
        ("mpi-allreduce", ["mpi_allreduce"]),
        ("mpi-reduce-broadcast", ["mpi_reduce", "mpi_bcast"]),
        ("mpi-reduce-broadcast-pickled", ["mpi_reduce_pickled", "mpi_bcast_pickled"]),
    ],
)
def test_every_message_is_in_the_trace_with_its_bytes(groups, digits_folder, tmp_path, strategy, operations):
    settings = {**SHORT, "strategy": strategy}
    for answer in groups("mpich", 2).run(
        "seen_collectives", folder=str(tmp_path), data=digits_folder, settings=settings
    ):
        sent = [(name, bytes_, sequence, step) for name, bytes_, sequence, step in answer["rows"] if "mpi_" in name]
        # Sequence numbers run through all messages of the group, alike on all ranks.
        expected = [(name, step) for step in range(10) for name in operations]
        assert [(name, step) for name, _, _, step in sent] == expected
        assert [sequence for _, _, sequence, _ in sent] == list(range(len(expected)))
        least, most = answer["grad_bytes"], answer["grad_bytes"] * (1.01 if "pickled" in strategy else 1)
        assert all(least <= bytes_ <= most for _, bytes_, _, _ in sent)


@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_a_rank_of_a_study_finds_its_mpi_and_leaves_it_well(digits_folder, tmp_path, kind):
    """Two levels below mpiexec, and nobody but the wrapper to say which library belongs to it."""
    if kind == "openmpi":
        need_open_mpi()
    wanted = replace(point(2, pin=False), strategy="mpi-allreduce", train=TrainSettings(batch_global=64, epochs=1))
    told = replace(manifest(wanted), data_folder=digits_folder)
    folder = RunFolder(tmp_path)
    write_record(folder.manifest, told)
    mpiexec = MPICH if kind == "mpich" else OPEN_MPI
    command = (*mpiexec, "-n", "2", *LATE_RANK_0, *wrapper_command(folder))
    program = Program(command=command, ranks=(0, 1), host="here")
    done = run_wrapped([program], folder, told, heartbeat_s=60, progress=lambda progress: None)
    assert [report.status for report in done.reports] == ["done", "done"]
    assert done.reports[0].training.weights_sha256 == done.reports[1].training.weights_sha256
    assert folder.launcher_log.read_text() == "", "mpiexec complained"


def test_two_kinds_of_mpi_mixed_up_are_told(tmp_path):
    """Open MPI's library under MPICH's mpiexec: every rank is told to be alone."""
    need_open_mpi()
    rank = (
        "from paceline.identity import this_rank\nfrom paceline.training import mpi_session as mpi\nme = this_rank()\n"
    )
    rank += "mpi.world(me.rank, me.size)"
    told = os.environ | {"MPI4PY_MPIABI": "openmpi"}
    command = [*MPICH, "-n", "2", sys.executable, "-c", rank]
    done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "but MPI calls it 0 of 1" in done.stderr and "loaded was Open MPI" in done.stderr
