"""MPI as the launcher brings it to ranks: MPICH's and Open MPI's mpiexec, on one host and on two."""

import importlib.util
import json
import sys

import pytest

from checks.ci import in_ci
from contract.launchers import LAUNCHERS, require
from light_ranks.light_launch import LIGHT_RANK, launch, manifest, point
from paceline.launch.mpi_launcher import MpiLauncher

COMMAND = (sys.executable, str(LIGHT_RANK.with_name("mpi_rank.py")))
LIBRARIES = {"mpich": "MPICH", "openmpi": "Open MPI"}


@pytest.fixture(params=LIBRARIES)
def kind(request):
    require(LAUNCHERS[request.param].needs)
    if importlib.util.find_spec("mpi4py") is None:
        (pytest.fail if in_ci() else pytest.skip)("mpi4py is not installed")
    return request.param


def said(path, ranks):
    return [json.loads((path / f"mpi-{rank}.json").read_text()) for rank in range(ranks)]


def test_ranks_of_one_host_talk_through_its_library_and_listen_on_loopback_at_most(kind, tmp_path):
    launch(tmp_path, manifest(point(3)), LAUNCHERS[kind].launcher(COMMAND))
    for rank, words in enumerate(said(tmp_path, 3)):
        assert (words["rank"], words["size"], words["sum"]) == (rank, 3, [6.0, 6.0])
        assert words["library"].startswith(LIBRARIES[kind])
        assert set(words["listening"]) <= {"127.0.0.1"}


def test_ranks_of_two_hosts_talk_over_the_named_interface(kind, net_hosts, tmp_path):
    told = manifest(point(4, hosts=2), settings=net_hosts.settings)
    outcome = launch(tmp_path, told, net_hosts.launcher(kind, COMMAND))
    assert [report.host for report in outcome.reports] == ["h1", "h1", "h2", "h2"]
    for words in said(tmp_path, 4):
        assert (words["size"], words["sum"]) == (4, [10.0, 10.0])
        assert words["library"].startswith(LIBRARIES[kind])


def test_an_agent_with_options_of_its_own_reaches_the_other_hosts(kind, net_hosts, tmp_path):
    agent = (net_hosts.agent, "-q", "-x")
    told = manifest(point(2, hosts=2), settings=net_hosts.settings)
    outcome = launch(tmp_path, told, net_hosts.launcher(kind, COMMAND, agent=agent))
    assert [report.host for report in outcome.reports] == ["h1", "h2"]


def test_where_hydra_has_to_start_ranks_of_one_host_they_run_as_well(tmp_path, monkeypatch):
    """Its mpiexec listens on every interface: so it is taken only where there is no mpiexec.gforker beside it."""
    monkeypatch.setattr("paceline.launch.mpi_launcher.PLAIN", "mpiexec.none")
    outcome = launch(tmp_path, manifest(point(2)), MpiLauncher(COMMAND))
    assert [words["sum"] for words in said(tmp_path, 2)] == [[3.0, 3.0]] * 2
    assert len(outcome.reports) == 2
