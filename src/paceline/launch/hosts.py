"""Ranks on several hosts: their names, how a command reaches them, and checks of these settings.

    [*agent, host, "one quoted command line"]          agent: ssh, or any program that runs a command on a host

Python, Paceline and the study's folder are at the same paths on every host (a shared file system). Every word of
a remote command line is quoted: the name of a folder cannot become a command.
"""

from __future__ import annotations

import re
import shlex
import socket

from paceline.errors import RequestError
from paceline.identity import forwarded_environment, interface_address
from paceline.launch import machine
from paceline.launch.launcher import Launcher, Placement
from paceline.launch.placement import check_memory, placement_here
from paceline.launch.wrapper.wrapped_ranks import Program, watchdog_command
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.units import counted

# Neither an option of the agent nor, to an mpiexec, a list of hosts or slots.
_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
_INTERFACE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*")


class HostsLauncher(Launcher):
    """A launcher that starts ranks on the hosts of launch.machines."""

    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run, with the reason."""
        return placement_on_hosts(point, self._settings)

    def check(self, point: Point) -> None:
        """Raise RequestError if the hosts or the interface between them are not named."""
        check_hosts(point, self._settings)


def point_hosts(point: Point, settings: LaunchSettings) -> tuple[str, ...]:
    """Names of the hosts of a point; this host if launch.machines is empty."""
    return settings.machines[: point.hosts] or (socket.gethostname(),)


def ranks_by_host(point: Point) -> tuple[tuple[int, ...], ...]:
    """The ranks of each host: 0, 1, ... on the first, and so on."""
    shares, first = [], 0
    for count in point.ranks_on_hosts:
        shares.append(tuple(range(first, first + count)))
        first += count
    return tuple(shares)


def is_this_host(host: str) -> bool:
    """Whether `host` is a name of this host."""
    own = socket.gethostname()
    return host in ("localhost", "127.0.0.1", own) or host.split(".")[0] == own.split(".")[0]


def program_on(
    hosts: tuple[str, ...], command: tuple[str, ...], ranks: tuple[int, ...], settings: LaunchSettings
) -> Program:
    """The program that starts `ranks`, one per entry of `hosts`; it runs on the first of these hosts.

    On another host it gets this working folder, and the environment variables that libraries read.
    """
    host = hosts[0]
    if is_this_host(host):
        return Program(command=command, ranks=ranks, host=host, hosts=hosts)
    variables = tuple(f"{name}={value}" for name, value in sorted(forwarded_environment().items()))
    line = shlex.join(("env", *variables, *watchdog_command(command)))
    return Program(command=(*settings.agent, host, line), ranks=ranks, host=host, hosts=hosts, through_agent=True)


def check_hosts(point: Point, settings: LaunchSettings) -> None:
    """Raise RequestError if the hosts of a point, or the interface between them, are not named properly."""
    named, hosts = settings.machines, counted(point.hosts, "host")
    if point.hosts > point.processes:
        raise RequestError(
            f"{hosts} are requested for {counted(point.processes, 'rank')}.",
            right="Every host runs at least one rank.",
            next="Request fewer hosts with --set run.hosts=N, or more ranks.",
        )
    if point.hosts > max(1, len(named)):
        raise RequestError(
            f"{hosts} are requested, and launch.machines names {len(named) or 'none'}.",
            right="It lists the hosts that ranks may run on, in the order in which they are used.",
            next='--set \'launch.machines=["h1", "h2"]\', or machines = [...] under [launch].',
        )
    for host in point_hosts(point, settings):
        if not _HOST_NAME.fullmatch(host):
            raise RequestError(
                f"launch.machines has {host!r}, which is not the name of a host.",
                right="Letters, digits, dots, dashes and underscores, as in node-07.cluster; user@host if the agent "
                "is ssh.",
                next="Correct launch.machines.",
            )
    if point.hosts > 1:
        _check_interface(point, settings)
    elif any(is_this_host(host) for host in point_hosts(point, settings)):
        check_memory(point.processes, machine.this_machine().memory_bytes)


def placement_on_hosts(point: Point, settings: LaunchSettings) -> Placement:
    """Where the ranks of a point would run. On another host the wrapper of each rank chooses its cores.

    Assumes that the hosts have as many cores as this one.
    """
    hosts, shares = point_hosts(point, settings), ranks_by_host(point)
    found = [placement_here(point, range(own[0], own[-1] + 1)) for own in shares if own]
    if point.hosts == 1 and is_this_host(hosts[0]):
        return found[0]
    ranks = f"{point.processes} processes" if point.servers else counted(point.processes, "rank")
    spread = ", ".join(f"{len(own)} on {host}" for own, host in zip(shares, hosts, strict=True))
    pinned = "each host pins its own" if point.pin else "pinning is off"
    text = f"{ranks} × {counted(point.threads, 'thread')}: {spread}; {pinned}"
    return Placement(cores=None, text=text, oversubscribed=any(own.oversubscribed for own in found))


def _check_interface(point: Point, settings: LaunchSettings) -> None:
    name = settings.interface
    if not _INTERFACE_NAME.fullmatch(name):
        problem = f"is {name!r}, which is not the name of an interface" if name else "is not set"
        raise RequestError(
            f"{counted(point.hosts, 'host')} are requested, and launch.interface {problem}.",
            right="Ranks of several hosts listen on the network interface that connects them, and on no other.",
            next="Name it with --set launch.interface=eth0; `ip -brief address` lists them.",
        )
    if any(is_this_host(host) for host in point_hosts(point, settings)):
        interface_address(name)
