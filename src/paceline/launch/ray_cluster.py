"""Ranks through Ray, which is used as a starter of processes and for nothing else.

    launcher ──▶ driver (ray_driver.py) ──▶ Ray ──▶ task ──▶ keeper ──▶ rank      on whichever node Ray gives
       └──▶ sweeper, where the cluster is our own

A cluster that exists is named by launch.ray_address; without it one is started on this machine for the run and ends
with it: on loopback alone, behind a token, in a folder of its own that the sweeper removes even when we are killed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paceline.errors import RankError, RequestError
from paceline.identity import inherited_environment
from paceline.launch import machine
from paceline.launch.base import Launcher, Outcome, Placement, Progress, ignore
from paceline.launch.child import python
from paceline.launch.kept import Program, run_wrapped
from paceline.launch.placement import check_memory, placement_here
from paceline.launch.ray_nodes import Node, check_capacity, lost_ranks_file
from paceline.records.codec import from_plain, plain
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.units import counted

_DRIVER = "paceline.launch.ray_driver"
_LOOK_S = 90.0
_SWEEP_S = 15.0
_PATH_BYTES = 30
"""Ray puts sockets some 70 bytes below its folder, and the path of one may have 107."""


class RayLauncher(Launcher):
    """Starts ranks on the nodes of a Ray cluster."""

    name = "ray"

    def __init__(self, command: tuple[str, ...] | None = None, settings: LaunchSettings = LaunchSettings()) -> None:
        self._command = command or ()
        self._settings = settings
        self._known_nodes: list[Node] | None = None

    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run; which cores on a node elsewhere is decided there."""
        if _on_this_machine(self._settings.ray_address) and point.hosts == 1:
            return placement_here(point, range(point.processes))
        how = "spread over" if self._settings.spread else "packed onto at most"
        text = f"{counted(point.processes, 'rank')} × {counted(point.threads, 'thread')} {how} "
        text += f"{counted(point.hosts, 'node')} of the Ray cluster at {self._settings.ray_address}"
        return Placement(cores=None, text=text, oversubscribed=False)

    def check(self, point: Point) -> None:
        """Raise RequestError where Ray is missing, or where its cluster can never hold the ranks of a point."""
        if importlib.util.find_spec("ray") is None:
            raise RequestError(
                "The launcher ray needs Ray, which is not installed.",
                right="It is an extra of Paceline's.",
                next="Install it: pip install 'paceline[ray]'",
            )
        address = self._settings.ray_address
        if address:
            check_capacity(point, self._settings, self._nodes(), f"the Ray cluster at {address}")
            return
        if point.hosts > 1:
            raise RequestError(
                f"run.hosts = {point.hosts}, and no Ray cluster is named: the one that is started for a run is this "
                "machine alone.",
                right="Ranks on several hosts need a cluster that spans them.",
                next="Name it with --set launch.ray_address=ADDRESS.",
            )
        check_memory(point.processes, machine.this_machine().memory_bytes)

    def run(
        self,
        folder: RunFolder,
        manifest: Manifest,
        *,
        heartbeat_s: float,
        progress: Callable[[Progress], None] = ignore,
    ) -> Outcome:
        """Start the ranks, wait for them, and bring their reports; when this ends, nothing of ours is left."""
        address = self._settings.ray_address
        with _cluster_folder() if not address else contextlib.nullcontext("") as cluster:
            program = Program(
                command=(
                    *python("-m", _DRIVER),
                    "run",
                    str(folder.path.resolve()),
                    json.dumps(plain(self._settings)),
                    str(cluster),
                    *self._command,
                ),
                ranks=tuple(range(manifest.point.processes)),
                host=f"the Ray cluster at {address}" if address else socket.gethostname(),
            )
            try:
                return run_wrapped([program], folder, manifest, heartbeat_s=heartbeat_s, progress=progress)
            except RankError as error:
                raise _lost(error, folder) or error from None

    def _nodes(self) -> list[Node]:
        """The nodes of the cluster, asked for once."""
        if self._known_nodes is None:
            self._known_nodes = _look(self._settings.ray_address)
        return self._known_nodes


def _look(address: str) -> list[Node]:
    """The nodes of a cluster; RequestError where it does not answer."""
    _check_listening(address)
    command = (*python("-m", _DRIVER), "look", address)
    try:
        done = subprocess.run(
            command, env=inherited_environment(), capture_output=True, text=True, timeout=_LOOK_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RequestError(
            f"The Ray cluster at {address} has not answered within {_LOOK_S:.0f} s.",
            next=f"Try: ray status --address={address}",
        ) from None
    if done.returncode:
        what, *rest = done.stderr.strip().splitlines()[-3:] or ["The Ray cluster gives no answer."]
        raise RequestError(what, right="\n".join(rest))
    return [from_plain(Node, node) for node in json.loads(done.stdout.splitlines()[-1])]


def _check_listening(address: str) -> None:
    """Refuse an address where nobody is: Ray would try for a minute."""
    if address.startswith("ray://"):
        raise RequestError(
            f"launch.ray_address = {address!r} is the address of Ray's client server.",
            right="A study is started on one of the cluster's nodes, and takes the address of the cluster itself.",
            next="Give what `ray start --head` printed, such as 10.0.0.1:6379.",
        )
    host, _, port = address.rpartition(":")
    if not port.isdigit() or "/" in address:
        return  # "auto", or what only Ray knows
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise RequestError(
            f"There is no Ray cluster at {address}: {getattr(error, 'strerror', None) or error}.",
            right="launch.ray_address is what `ray start --head` printed, such as 10.0.0.1:6379.",
            next="Leave it out, and a cluster is started on this machine for every run.",
        ) from error


def _on_this_machine(address: str) -> bool:
    return address.rpartition(":")[0] in ("", "127.0.0.1", "localhost") and address != "auto"


def _lost(error: RankError, folder: RunFolder) -> RankError | None:
    """The error for ranks that went with their Ray worker or node; None where none did."""
    try:
        lines = lost_ranks_file(folder).read_text().splitlines()
    except OSError:
        return None
    return RankError(
        "\n  ".join([*lines, error.what]),
        right="What Ray keeps ends with it: the machine, its network, memory that ran out, or somebody ended it.",
        next=error.next,
    )


@contextlib.contextmanager
def _cluster_folder() -> Iterator[Path]:
    """A private folder for a cluster of our own; what is left of both is gone afterwards, also when we are killed."""
    usual = tempfile.gettempdir()
    path = Path(tempfile.mkdtemp(prefix="paceline-ray-", dir=usual if len(usual) <= _PATH_BYTES else "/tmp"))
    sweeper = subprocess.Popen(
        (*python("-m", "paceline.launch.sweeper"), str(path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it has to survive whatever ends us
    )
    try:
        yield path
    finally:
        sweeper.communicate(timeout=_SWEEP_S)
