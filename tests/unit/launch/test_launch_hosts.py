"""Which hosts, how a command reaches them, and what is refused before anything is started."""

import json
import shlex
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from light_ranks.light_launch import point
from paceline.errors import RequestError
from paceline.launch.child import interface_environment
from paceline.launch.hosts import (
    check_hosts,
    is_this_host,
    placement_on_hosts,
    point_hosts,
    program_on,
    ranks_by_host,
)
from paceline.records.settings import LaunchSettings

TWO = LaunchSettings(machines=("h1", "h2", "h3"), interface="eth0", agent=("ssh", "-q"))


def test_the_first_named_hosts_are_used_and_this_one_where_none_is_named():
    assert point_hosts(point(4, hosts=2), TWO) == ("h1", "h2")
    assert point_hosts(point(4), TWO) == ("h1",)
    assert point_hosts(point(4), LaunchSettings()) == (socket.gethostname(),)


def test_ranks_are_numbered_over_the_hosts_larger_shares_first():
    assert ranks_by_host(point(5, hosts=2)) == ((0, 1, 2), (3, 4))
    assert ranks_by_host(point(2)) == ((0, 1),)


def test_a_host_is_known_by_its_short_name_too():
    own = socket.gethostname()
    assert is_this_host(own) and is_this_host("localhost") and is_this_host(f"{own.split('.')[0]}.elsewhere")
    assert not is_this_host("h1")


@pytest.mark.parametrize(
    ("changes", "hosts", "words"),
    [
        ({"machines": ("h1",)}, 2, "2 hosts are requested, and launch.machines names 1"),
        ({"machines": ()}, 3, "3 hosts are requested, and launch.machines names none"),
        ({"interface": ""}, 2, "launch.interface is not set"),
        ({"interface": "eth0; rm"}, 2, "not the name of an interface"),
        ({"machines": ("h1", "-oProxyCommand=reboot")}, 2, "not the name of a host"),
        ({"machines": ("h1", "h2 h3")}, 2, "not the name of a host"),
        ({"machines": ("h1", "h2,h3")}, 2, "not the name of a host"),
        ({"machines": ("$(id)",)}, 1, "not the name of a host"),
        ({"machines": (socket.gethostname(), "h2"), "interface": "none0"}, 2, "has no network interface 'none0'"),
    ],
)
def test_hosts_that_cannot_be_meant_are_refused(changes, hosts, words):
    with pytest.raises(RequestError, match=words.replace("$", r"\$")) as caught:
        check_hosts(point(4, hosts=hosts), replace(TWO, **changes))
    assert caught.value.right and caught.value.next


def test_a_host_without_a_rank_is_refused():
    with pytest.raises(RequestError, match="3 hosts are requested for 2 ranks"):
        check_hosts(point(2, hosts=3), TWO)
    assert placement_on_hosts(point(2, hosts=3), TWO).text.endswith("1 on h1, 1 on h2, 0 on h3; each host pins its own")


def test_hosts_as_they_should_be_pass():
    check_hosts(point(4, hosts=3), TWO)
    check_hosts(point(2), LaunchSettings())
    check_hosts(point(2, hosts=2), replace(TWO, machines=("user@node-1.cluster_a", "10.0.0.2")))


def test_a_program_of_this_host_is_run_as_it_is():
    here = socket.gethostname()
    program = program_on((here,) * 2, ("mpiexec", "-n", "2"), (0, 1), TWO)
    assert (program.command, program.through_agent) == (("mpiexec", "-n", "2"), False)


def test_what_goes_through_an_agent_comes_out_word_for_word(monkeypatch, tmp_path):
    """The agent here is a shell, which is what a remote one would be."""
    hostile = ["a b", "it's", '"', "$(touch hit)", "`touch hit`", "; touch hit", "&", "> hit", "\\", "*", "\n", "ü"]
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/a b/$HOME")
    monkeypatch.setenv("SECRET_TOKEN", "not for others")
    monkeypatch.chdir(tmp_path)
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['LD_LIBRARY_PATH'], os.getcwd()]))"
    command = (sys.executable, "-c", code, *hostile)
    program = program_on(("h1",), command, (0,), TWO)
    assert program.command[:3] == ("ssh", "-q", "h1")
    assert (program.host, program.through_agent, len(program.command)) == ("h1", True, 4)
    assert "SECRET_TOKEN" not in program.command[3]
    shell = subprocess.Popen(["sh", "-c", program.command[3]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        said = shell.stdout.read().decode()
    finally:
        shell.communicate()
    assert json.loads(said) == [hostile, "/opt/a b/$HOME", str(tmp_path)]
    assert not (tmp_path / "hit").exists()
    assert shlex.split(program.command[3])[0] == "env"


def test_the_placement_of_several_hosts_says_who_gets_how_many():
    placed_there = placement_on_hosts(point(5, hosts=2), TWO)
    assert placed_there.cores is None
    assert placed_there.text == "5 ranks × 1 thread: 3 on h1, 2 on h2; each host pins its own"
    assert "pinning is off" in placement_on_hosts(point(4, hosts=2, pin=False), TWO).text


def test_a_single_host_that_is_another_pins_by_itself():
    assert placement_on_hosts(point(1), TWO).cores is None
    assert placement_on_hosts(point(1), TWO).text == "1 rank × 1 thread: 1 on h1; each host pins its own"


def test_what_lies_behind_an_interface_is_named_to_mpi_too(tmp_path):
    (tmp_path / "ib0" / "device" / "infiniband" / "mlx5_0").mkdir(parents=True)
    (tmp_path / "eth0").mkdir()
    assert interface_environment("ib0", tmp_path)["UCX_NET_DEVICES"] == "ib0,mlx5_0:1"
    assert interface_environment("eth0", tmp_path)["UCX_NET_DEVICES"] == "eth0"
    assert interface_environment("eth0", tmp_path)["GLOO_SOCKET_IFNAME"] == "eth0"
