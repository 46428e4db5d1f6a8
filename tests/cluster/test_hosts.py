"""Ranks on several hosts: three network namespaces, torchrun and mpiexec across them, links that are cut."""

import json
import subprocess
import sys
import time

import pytest

from contract.launchers import LAUNCHERS, require
from light_ranks.light_launch import (
    ENDLESS,
    LIGHT_RANK,
    launch,
    light,
    manifest,
    point,
    running_processes,
    running_ranks,
    wait_for,
)
from paceline.errors import RankError, RunError
from paceline.records.run import Rendezvous
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder

KINDS = ("torchrun", "mpich", "openmpi")


@pytest.fixture(params=KINDS)
def kind(request, net_hosts):
    """Name of a launcher; when the test is over, nothing is left on any host."""
    require(LAUNCHERS[request.param].needs)
    yield request.param
    assert wait_for(lambda: not net_hosts.processes(), 10), net_hosts.processes()


def test_the_hosts_have_names_of_their_own_and_reach_one_another(net_hosts):
    for host in net_hosts.names:
        assert net_hosts.run(host, ["hostname"]).stdout == f"{host}\n"
        assert net_hosts.run(host, ["getent", "hosts", "h3"]).stdout.split() == ["10.77.0.3", "h3"]
    assert net_hosts.run("h1", ["echo", "a b", "$(id)", "'"]).stdout == "a b $(id) '\n"
    assert net_hosts.run("h4", ["true"]).returncode


def test_ranks_are_spread_in_order_and_a_hostile_folder_stays_a_folder(net_hosts, tmp_path, kind):
    folder = RunFolder(tmp_path / 'it\'s $(touch hit); `touch hit` & a "run" > hit')
    where, listening, ranks = point(5, hosts=2), [], []

    def look(progress):
        if progress.step and not listening:
            listening.extend(net_hosts.run("h1", ["ss", "-H", "-l", "-t", "-n", "-p"]).stdout.splitlines())
            ranks.extend(f"pid={rank.pid}," for rank in running_ranks(folder.path).values())

    launcher = net_hosts.launcher(kind, light("--steps", 400))
    launcher.check(where)
    assert "3 on h1, 2 on h2" in launcher.placement(where).text
    outcome = launch(folder.path, manifest(where, settings=net_hosts.settings), launcher, progress=look)
    assert [report.host for report in outcome.reports] == ["h1", "h1", "h1", "h2", "h2"]
    seen = [json.loads((folder.path / f"seen-{rank}.json").read_text()) for rank in range(5)]
    assert [(at["rank"], at["size"]) for at in seen] == [(rank, 5) for rank in range(5)]
    assert [int(at["environment"]["PACELINE_LOCAL_RANK"]) for at in seen] == [0, 1, 2, 0, 1]
    assert {at["environment"]["GLOO_SOCKET_IFNAME"] for at in seen} == {"eth0"}
    assert not list(tmp_path.rglob("hit"))
    # Ranks meet at the named interface. Those of an mpiexec that listens everywhere have inherited its socket as well.
    own = {line.split()[3].rsplit(":", 1)[0] for line in listening if any(rank in line for rank in ranks)}
    assert own - {"0.0.0.0"} == {"10.77.0.1"} == {read_record(folder.rendezvous, Rendezvous).address}, listening


def test_a_host_whose_link_is_cut_is_named_with_its_ranks(net_hosts, tmp_path, kind):
    cut_at = []

    def listen(progress):
        if progress.step >= 3 and not cut_at:
            net_hosts.cut("h3")
            cut_at.append(time.monotonic())

    told, launcher = manifest(point(6, hosts=3), settings=net_hosts.settings), net_hosts.launcher(kind, light(*ENDLESS))
    try:
        with pytest.raises(RankError) as caught:
            launch(tmp_path, told, launcher, heartbeat_s=20, progress=listen)  # less, and a busy machine seems to hang
        assert cut_at, f"It failed before the link was cut: {caught.value}"
        took_s = time.monotonic() - cut_at[0]
    finally:
        net_hosts.mend()
    assert caught.value.what.startswith("Host h3 no longer answers: ranks 4 and 5 of 6 were there."), str(caught.value)
    assert "its network interface is down" in caught.value.what
    assert "2 hosts of 3 still answered" in caught.value.right
    assert took_s < 90


LAUNCHING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from contract.launchers import LAUNCHERS
from light_ranks.light_launch import ENDLESS, launch, light, manifest, point
from paceline.records.settings import LaunchSettings
_, _, kind, path, agent = sys.argv
settings = LaunchSettings(machines=("h1", "h2"), agent=(agent,), interface="eth0")
launch(Path(path), manifest(point(4, hosts=2), settings=settings), LAUNCHERS[kind].launcher(light(*ENDLESS), settings))
"""


def test_nothing_is_left_on_any_host_when_the_launcher_is_killed(net_hosts, tmp_path, kind):
    tests = str(LIGHT_RANK.parents[1])
    with subprocess.Popen([sys.executable, "-c", LAUNCHING, tests, kind, str(tmp_path), net_hosts.agent]) as launcher:
        try:
            assert wait_for(lambda: len(running_ranks(tmp_path)) == 4, 90, 0.1)
        finally:
            launcher.kill()
    assert wait_for(lambda: not running_processes(tmp_path), 15), running_processes(tmp_path)
    assert wait_for(lambda: not net_hosts.processes(), 15), net_hosts.processes()


def test_a_host_that_is_not_there_is_said_with_the_words_of_the_agent(net_hosts, tmp_path):
    settings = {"machines": ("h1", "h9")}
    launcher = net_hosts.launcher("torchrun", light(), **settings)
    with pytest.raises(RunError, match=r"for h9 ended with exit code 255 before any rank had started") as caught:
        launch(tmp_path, manifest(point(2, hosts=2), settings=net_hosts.settings), launcher)
    assert "h9" in caught.value.next and "No such file" in caught.value.next
    assert wait_for(lambda: not net_hosts.processes(), 10)
