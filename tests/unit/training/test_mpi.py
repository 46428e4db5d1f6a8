"""MPI is started only where it belongs, and says so where it does not. With ranks: cluster/test_mpi_strategies.py."""

import subprocess
import sys

import pytest

from paceline import catalog
from paceline.identity import this_rank, wrapped_rank_environment


def python(text: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: MPI can be started once in one."""
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)


def test_a_library_that_does_not_belong_to_the_mpiexec_is_named():
    """Without its own mpiexec, every process of an MPI thinks that it is alone."""
    done = python("from paceline.training import mpi_session as mpi\nmpi.world(1, 2)")
    assert "This is rank 1 of 2, but MPI calls it 0 of 1." in done.stderr
    assert "loaded was MPICH" in done.stderr and "launch.mpiexec" in done.stderr


def test_errors_of_mpi_are_raised_not_fatal_and_no_thread_but_the_main_one_may_call():
    done = python(
        "from paceline.training import mpi_session as mpi\n"
        "world = mpi.world(0, 1)\n"
        "from mpi4py import MPI\n"
        "assert MPI.Query_thread() == MPI.THREAD_FUNNELED\n"
        "try:\n"
        "    world.Send(b'', dest=7)\n"
        "except MPI.Exception:\n"
        "    mpi.finalize()\n"
        "    mpi.finalize()\n"
        "    assert MPI.Is_finalized()\n"
        "    print('raised')\n"
    )
    assert done.stdout == "raised\n", done.stderr


def test_a_library_that_cannot_be_found_is_an_error_in_words():
    done = python(
        "import os\n"
        "os.environ['MPI4PY_LIBMPI'] = '/nowhere/libmpi.so'\n"
        "from paceline.errors import RequestError\n"
        "from paceline.training import mpi_session as mpi\n"
        "try:\n"
        "    mpi.world(0, 1)\n"
        "except RequestError as error:\n"
        "    print(error.what, error.next)\n"
    )
    assert "MPI cannot be loaded" in done.stdout and "/nowhere/libmpi.so" in done.stdout, done.stderr
    assert "paceline[mpi]" in done.stdout


def test_leaving_what_was_never_joined_loads_nothing():
    done = python(
        "import sys\n"
        "from paceline.training import mpi_session as mpi\n"
        "mpi.finalize()\n"
        "assert not any('mpi4py' in name for name in sys.modules)\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, None),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"PMIX_RANK": "0"}, "openmpi"),
        ({"PMIX_RANK": "0", "MPI4PY_MPIABI": "mpich"}, "mpich"),
        ({"PMIX_RANK": "0", "MPI4PY_LIBMPI": "libmpi.so.40"}, None),
    ],
)
def test_a_rank_of_open_mpi_is_told_to_load_it(monkeypatch, said, expected):
    for name in ("PMIX_RANK", "MPI4PY_MPIABI", "MPI4PY_LIBMPI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert wrapped_rank_environment(this_rank(), parent_pid=1).get("MPI4PY_MPIABI") == expected


def test_every_strategy_names_the_launchers_that_carry_it():
    for strategy in catalog.names("strategy"):
        expected = ("mpi", "slurm") if strategy.startswith("mpi-") else catalog.names("launcher")
        assert catalog.carriers(strategy) == expected


def test_an_entry_says_which_options_a_strategy_takes():
    assert catalog.strategy("local-sgd").options == {"average_every": 8}
    assert catalog.strategy("ddp-powersgd").options == {"compression_rank": 2}
    assert catalog.strategy("ddp").options == {}
