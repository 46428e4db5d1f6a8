"""Ranks through Ray, which only starts processes here.

    launcher ──▶ driver (ray_driver.py) ──▶ Ray ──▶ task ──▶ wrapper ──▶ rank      on a node that Ray chooses
       └──▶ sweeper, for a private cluster

launch.ray_address names an existing cluster. Without it a private cluster is started on this machine for the run and
ends with it: on loopback only, with a token, in a folder that the sweeper removes even if the launcher is killed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import RankError, RequestError
from paceline.identity import inherited_environment
from paceline.launch import machine
from paceline.launch.child import python
from paceline.launch.launcher import Launcher, Listener, Outcome, Placement, ignore
from paceline.launch.placement import check_memory, placement_here
from paceline.launch.ray.ray_nodes import Node, check_capacity, lost_ranks_file
from paceline.launch.wrapper.wrapped_ranks import Program, run_wrapped
from paceline.records.run import Manifest
from paceline.records.study import Point
from paceline.storage.codec import from_plain, plain
from paceline.storage.folder import RunFolder
from paceline.units import counted

_DRIVER = "paceline.launch.ray.ray_driver"
_NODES_S = 90.0
_SWEEP_S = 15.0
_PATH_BYTES = 30
"""Ray adds some 70 bytes to its folder for the path of a socket, which may have 107."""


class RayLauncher(Launcher):
    """Starts ranks on the nodes of a Ray cluster."""

    name = "ray"

    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run; the cores of another node are chosen there."""
        if _on_this_machine(self._settings.ray_address) and point.hosts == 1:
            return placement_here(point, range(point.processes))
        how = "spread over" if self._settings.spread else "packed onto at most"
        text = f"{counted(point.processes, 'rank')} × {counted(point.threads, 'thread')} {how} "
        text += f"{counted(point.hosts, 'node')} of the Ray cluster at {self._settings.ray_address}"
        return Placement(cores=None, text=text, oversubscribed=False)

    def check(self, point: Point) -> None:
        """Raise RequestError if Ray is missing, or if its cluster is too small for the ranks of a point."""
        if importlib.util.find_spec("ray") is None:
            raise RequestError(
                "The launcher ray needs Ray, which is not installed.",
                right="It is an extra of Paceline.",
                next="Install it: pip install 'paceline[ray]'",
            )
        address = self._settings.ray_address
        if address:
            check_capacity(point, self._settings, self._nodes, f"the Ray cluster at {address}")
            return
        if point.hosts > 1:
            raise RequestError(
                f"run.hosts = {point.hosts}, and no Ray cluster is named: a private cluster has this machine only.",
                right="Ranks on several hosts need a cluster of these hosts.",
                next="Name it with --set launch.ray_address=ADDRESS.",
            )
        check_memory(point.processes, machine.this_machine().memory_bytes)

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener = ignore) -> Outcome:
        """Start the ranks, wait for them, and return their reports; a private cluster ends with this."""
        address = self._settings.ray_address
        with _cluster_folder() if not address else contextlib.nullcontext("") as cluster:
            arguments = ("run", str(folder.path.resolve()), json.dumps(plain(self._settings)), str(cluster))
            program = Program(
                command=(*python("-m", _DRIVER), *arguments, *self._command),
                ranks=tuple(range(manifest.point.processes)),
                host=f"the Ray cluster at {address}" if address else socket.gethostname(),
            )
            try:
                return run_wrapped([program], folder, manifest, heartbeat_s=heartbeat_s, progress=progress)
            except RankError as error:
                raise _lost_ranks_error(error, folder) or error from None

    @functools.cached_property
    def _nodes(self) -> list[Node]:
        return _cluster_nodes(self._settings.ray_address)


def _cluster_nodes(address: str) -> list[Node]:
    """The nodes of a cluster; RequestError if it does not answer."""
    _check_listening(address)
    command = (*python("-m", _DRIVER), "look", address)
    try:
        done = subprocess.run(
            command, env=inherited_environment(), capture_output=True, text=True, timeout=_NODES_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RequestError(
            f"The Ray cluster at {address} has not answered within {_NODES_S:.0f} s.",
            next=f"Try: ray status --address={address}",
        ) from None
    if done.returncode:
        what, *rest = done.stderr.strip().splitlines()[-3:] or ["The Ray cluster does not answer."]
        raise RequestError(what, right="\n".join(rest))
    return [from_plain(Node, node) for node in json.loads(done.stdout.splitlines()[-1])]


def _check_listening(address: str) -> None:
    """Raise RequestError if nothing listens at an address: Ray would try for a minute."""
    if address.startswith("ray://"):
        raise RequestError(
            f"launch.ray_address = {address!r} is the address of Ray's client server.",
            right="A study runs on one of the cluster's nodes, and needs the address of the cluster itself.",
            next="Use the address that `ray start --head` printed, such as 10.0.0.1:6379.",
        )
    host, _, port = address.rpartition(":")
    if not port.isdigit() or "/" in address:
        return  # "auto", or a form that only Ray knows
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise RequestError(
            f"There is no Ray cluster at {address}: {getattr(error, 'strerror', None) or error}.",
            right="launch.ray_address is the address that `ray start --head` printed, such as 10.0.0.1:6379.",
            next="Without it, a private cluster is started on this machine for every run.",
        ) from error


def _on_this_machine(address: str) -> bool:
    return address.rpartition(":")[0] in ("", "127.0.0.1", "localhost") and address != "auto"


def _lost_ranks_error(error: RankError, folder: RunFolder) -> RankError | None:
    """The error for ranks that ended with their Ray worker or node; None if none did."""
    try:
        lines = lost_ranks_file(folder).read_text().splitlines()
    except OSError:
        return None
    return RankError(
        "\n  ".join([*lines, error.what]),
        right="A rank ends with its Ray worker. A failure of the machine, its network or memory, or a user ended that.",
        next=error.next,
    )


@contextlib.contextmanager
def _cluster_folder() -> Iterator[Path]:
    """The folder of a private cluster; the sweeper ends the cluster and removes the folder, even after a kill."""
    default = tempfile.gettempdir()
    path = Path(tempfile.mkdtemp(prefix="paceline-ray-", dir=default if len(default) <= _PATH_BYTES else "/tmp"))
    sweeper = subprocess.Popen(
        (*python("-m", "paceline.launch.sweeper"), str(path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it must survive the end of the launcher
    )
    try:
        yield path
    finally:
        sweeper.communicate(timeout=_SWEEP_S)
