"""Which mpiexec is meant, whose it is, and what each kind is told. What it does with ranks is in tests/contract."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from light_ranks.light_launch import point
from paceline.errors import RequestError
from paceline.launch import mpi_launcher
from paceline.launch.mpi_launcher import MpiLauncher, flavour, mpiexec
from paceline.records.settings import LaunchSettings

HOSTS = LaunchSettings(machines=("h1", "h2"), interface="eth0", agent=("ssh", "-p", "22"))


@pytest.fixture
def program(tmp_path):
    """Makes an mpiexec that says something about itself."""

    def make(said: str, code: int = 0, name: str = "mpiexec") -> LaunchSettings:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
        path.chmod(0o755)
        return LaunchSettings(mpiexec=str(path))

    return make


@pytest.mark.parametrize(
    ("said", "whose"),
    [
        ("HYDRA build details:", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.12", "mpich"),
        ("mpirun (Open MPI) 5.0.3", "openmpi"),
        ("mpiexec.openmpi (OpenRTE) 4.1.4", "openmpi"),
        ("prterun (PRRTE) 3.0.5", "openmpi"),
    ],
)
def test_the_flavour_is_what_it_says_of_itself(program, said, whose):
    assert flavour(mpiexec(program(said))) == whose


@pytest.mark.parametrize(("said", "code"), [("something else 1.0", 0), ("", 3)])
def test_an_unknown_mpiexec_is_refused_with_its_words(program, said, code):
    with pytest.raises(RequestError, match=f"unknown MPI implementation.*prints: {said or 'nothing'}"):
        MpiLauncher(settings=program(said, code)).check(point(2))


def test_a_missing_mpiexec_is_refused_with_the_way_to_get_one():
    with pytest.raises(RequestError, match="'no-such-mpiexec' is neither in the folder of this Python") as caught:
        MpiLauncher(settings=LaunchSettings(mpiexec="no-such-mpiexec")).check(point(2))
    assert "pip install 'paceline[mpi]'" in caught.value.next


def test_the_environments_own_comes_before_any_other(program, monkeypatch):
    settings = program("HYDRA")
    monkeypatch.setenv("PATH", str(Path(settings.mpiexec).parent))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert mpiexec(LaunchSettings()) == settings.mpiexec
    (Path(settings.mpiexec).parent / "bin").mkdir()
    own = program("HYDRA", name="bin/mpiexec").mpiexec
    monkeypatch.setattr(sys, "executable", str(Path(own).with_name("python")))
    assert mpiexec(LaunchSettings()) == own


def test_an_agent_that_an_mpiexec_would_tear_apart_is_refused(program):
    settings = replace(HOSTS, agent=("ssh", "-o", "User x"), mpiexec=program("HYDRA").mpiexec)
    with pytest.raises(RequestError, match="white space"):
        MpiLauncher(settings=settings).check(point(2, hosts=2))


def command(settings, where):
    return MpiLauncher(settings=settings)._mpiexec(where)


def test_mpich_on_one_host_needs_no_hydra_where_its_plain_sibling_is_there(program):
    settings = program("HYDRA")
    assert command(settings, point(3))[1:] == ("-launcher", "fork", "-bind-to", "none", "-n", "3")
    plain = program("", name=mpi_launcher.PLAIN).mpiexec
    assert command(settings, point(3)) == (plain, "-n", "3")


def test_mpich_on_hosts_is_told_slots_interface_and_agent(program):
    said = command(replace(HOSTS, mpiexec=program("HYDRA").mpiexec), point(3, hosts=2))
    assert said[:2] == ("env", "HYDRA_LAUNCHER_EXTRA_ARGS=-p 22")
    words = " ".join(said)
    assert "-launcher rsh -launcher-exec ssh -localhost h1 -iface eth0 -bind-to none -hosts h1:2,h2:1 -n 3" in words


def test_open_mpi_is_told_the_same_in_its_words(program, monkeypatch):
    settings = replace(HOSTS, mpiexec=program("Open MPI").mpiexec)
    for user, root in ((0, True), (1000, False)):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        said = command(settings, point(3, hosts=2))
        assert ("--allow-run-as-root" in said) == root
    words = " ".join(said)
    assert "--bind-to none --host h1:2,h2:1" in words
    assert said[said.index("plm_rsh_agent") + 1] == "ssh -p 22"
    assert "--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0" in words
    here = " ".join(command(settings, point(1)))
    assert "--mca oob_tcp_if_include lo --mca btl self,vader -n 1" in here


def test_ranks_yield_to_one_another_where_there_are_more_than_cores(program):
    settings = program("Open MPI")
    assert "mpi_yield_when_idle" in command(settings, point(500))
    assert "mpi_yield_when_idle" not in command(settings, point(1))
