"""Three hosts on one machine: network namespaces joined by a bridge of their own, with a name each.

    h1 10.77.0.1 eth0 ──┐
    h2 10.77.0.2 eth0 ──┼── bridge, in a namespace of its own: nothing of this machine's network is in reach
    h3 10.77.0.3 eth0 ──┘

    def test_something(net_hosts, tmp_path):
        net_hosts.run("h2", ["ping", "-c", "1", "h1"])         # CompletedProcess of a command on a host, output as text
        net_hosts.start("h1", ["python", "server.py"])         # Popen of one; to be ended by whoever started it
        with net_hosts.shaped("100mbit"): ...                  # all links, both ways; shape(rate) and shape(None) alike
        net_hosts.cut("h3"); net_hosts.mend()                  # its link is down; all links are up again
        with net_hosts.clock_off("h3", 1000): ...              # what is started there reads a clock 1,000 s ahead
        launcher = net_hosts.launcher("torchrun", light())     # or mpich, openmpi: ranks on h1, h2, h3
        launch(tmp_path, manifest(point(4, hosts=2), settings=net_hosts.settings), launcher)

`net_hosts.agent` is a program that stands in for ssh: AGENT HOST COMMAND-LINE. `net_hosts.settings` is a LaunchSettings
that names machines, agent and interface. All hosts share this machine's files, processes and cores. Names carry the
number of the test process, so that two sessions do not meet; what a killed session left is removed by the next.

Needs root, ip and tc; without them tests are skipped, and fail in CI.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from checks.ci import in_ci
from contract.launchers import LAUNCHERS
from paceline.launch.launcher import Launcher
from paceline.records.settings import LaunchSettings

_PREFIX = "paceline-"
_NETNS = Path("/etc/netns")
# As sshd does: the words after the host make one line for its shell.
_AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
if [ -e FOLDER/clock-"$host" ]; then
    set -- unshare --time --monotonic "$(cat FOLDER/clock-"$host")" --fork --kill-child sh -c "$*"
else
    set -- sh -c "$*"
fi
exec ip netns exec PREFIX"$host" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" "$@"
"""


class NetHosts:
    """The hosts, and what can be done to them."""

    names = ("h1", "h2", "h3")
    interface = "eth0"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prefix = f"{_PREFIX}{os.getpid()}-"
        self._switch = f"{self._prefix}switch"
        agent = folder / "agent"
        agent.write_text(_AGENT.replace("FOLDER", shlex.quote(str(folder))).replace("PREFIX", self._prefix))
        agent.chmod(0o755)
        self.agent = str(agent)
        self.settings = LaunchSettings(machines=self.names, agent=(self.agent,), interface=self.interface)

    def up(self) -> None:
        """Make them."""
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "bridge", "up")
        table = "".join(f"{self.address(host)} {host}\n" for host in self.names)
        for host in self.names:
            space, port = self._space(host), f"to-{host}"
            (_NETNS / space).mkdir(parents=True)
            (_NETNS / space / "hosts").write_text(f"127.0.0.1 localhost\n{table}")
            (_NETNS / space / "resolv.conf").touch()  # else every look-up waits for a name server
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", self._switch, "link", "add", port, "type", "veth", "peer", "name", self.interface, "netns", space)
            _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
            _ip("-n", space, "address", "add", f"{self.address(host)}/24", "dev", self.interface)
            _ip("-n", space, "link", "set", self.interface, "up")

    def down(self) -> None:
        """Remove them, with whatever still runs there."""
        for space in (*map(self._space, self.names), self._switch):
            _remove(space)

    def address(self, host: str) -> str:
        return f"10.77.0.{self.names.index(host) + 1}"

    def command(self, host: str, words: Sequence[str]) -> list[str]:
        """The command that runs another on a host."""
        return [self.agent, host, shlex.join(words)]

    def run(self, host: str, words: Sequence[str], timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command on a host to its end; its exit code is for the caller to look at."""
        return subprocess.run(
            self.command(host, words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s
        )

    def start(self, host: str, words: Sequence[str], **options) -> subprocess.Popen:
        """Start a command on a host."""
        return subprocess.Popen(self.command(host, words), **options)

    def launcher(self, kind: str, command: tuple[str, ...] | None = None, **settings) -> Launcher:
        """torchrun, mpich or openmpi over these hosts; `settings` replaces what launch.* would say."""
        return LAUNCHERS[kind].launcher(command, replace(self.settings, **settings))

    def shape(self, rate: str | None) -> None:
        """Limit all links both ways to a rate as tc writes it (100mbit, 1gbit); None lifts the limit."""
        for host in self.names:
            for space, device in ((self._space(host), self.interface), (self._switch, f"to-{host}")):
                if rate is None:
                    subprocess.run(["tc", "-n", space, "qdisc", "del", "dev", device, "root"], capture_output=True)
                else:
                    limit = ("tbf", "rate", rate, "burst", "256kb", "latency", "100ms")
                    _run("tc", "-n", space, "qdisc", "replace", "dev", device, "root", *limit)

    @contextlib.contextmanager
    def shaped(self, rate: str) -> Iterator[None]:
        """The same, for as long as it lasts."""
        self.shape(rate)
        try:
            yield
        finally:
            self.shape(None)

    def cut(self, host: str) -> None:
        """Take a host's link away, as if its cable were pulled."""
        _ip("-n", self._switch, "link", "set", f"to-{host}", "down")

    def mend(self) -> None:
        """Give all hosts their links back."""
        for host in self.names:
            _ip("-n", self._switch, "link", "set", f"to-{host}", "up")

    @contextlib.contextmanager
    def clock_off(self, host: str, seconds: int) -> Iterator[None]:
        """What is started on a host meanwhile reads a monotonic clock that is off by so much."""
        mark = self._folder / f"clock-{host}"
        mark.write_text(str(seconds))
        try:
            yield
        finally:
            mark.unlink()

    def processes(self) -> list[psutil.Process]:
        """All that runs on the hosts."""
        return [process for host in self.names for process in _processes(self._space(host))]

    def _space(self, host: str) -> str:
        return f"{self._prefix}{host}"


@pytest.fixture(scope="session")
def net_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetHosts]:
    """Three hosts, for the length of the session."""
    missing = [program for program in ("ip", "tc", "unshare") if shutil.which(program) is None]
    reason = f"not installed: {', '.join(missing)}" if missing else "network namespaces need root"
    if missing or os.geteuid():
        (pytest.fail if in_ci() else pytest.skip)(reason)
    _sweep()
    hosts = NetHosts(tmp_path_factory.mktemp("net-hosts"))
    try:
        try:
            hosts.up()
        except subprocess.CalledProcessError as error:
            (pytest.fail if in_ci() else pytest.skip)(f"no network namespaces here: {error.stderr.strip()}")
        yield hosts
    finally:
        hosts.down()


def _sweep() -> None:
    """Remove what sessions left that are no more."""
    for line in _run("ip", "netns", "list").splitlines():
        space = line.split()[0]
        owner = space.removeprefix(_PREFIX).split("-")[0]
        if space.startswith(_PREFIX) and owner.isdigit() and not psutil.pid_exists(int(owner)):
            _remove(space)


def _remove(space: str) -> None:
    for process in _processes(space):
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
    subprocess.run(["ip", "netns", "del", space], capture_output=True)
    shutil.rmtree(_NETNS / space, ignore_errors=True)
    with contextlib.suppress(OSError):
        _NETNS.rmdir()  # where it was made for these alone


def _processes(space: str) -> list[psutil.Process]:
    found = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True).stdout.split()
    alive = []
    for pid in map(int, found):
        with contextlib.suppress(psutil.Error):
            alive.append(psutil.Process(pid))
    return alive


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=30).stdout
