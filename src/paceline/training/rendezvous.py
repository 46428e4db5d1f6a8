"""Where the ranks of a run meet: told by the launcher, or by rank 0 through the run folder. No torch.

    rank 0   listens (loopback on one host, the named interface between hosts) ──▶ ranks/meeting.json
    others   wait for that file ──▶ connect

Every launcher but `local` uses the file: the port is the kernel's choice and taken before it is told, so
no port can be lost, and nobody has to know beforehand on which host rank 0 will be.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from paceline.errors import RunError
from paceline.identity import Identity, interface_address
from paceline.records.run import Manifest, Rendezvous
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

PATIENCE_S = 300.0
"""How long ranks wait for rank 0: under a busy scheduler hosts may start minutes apart."""
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the ranks meet."""

    address: str
    port: int
    listening_fd: int | None
    """On rank 0: the socket that listens there."""


def meet(
    identity: Identity,
    folder: RunFolder,
    manifest: Manifest,
    *,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Place:
    """The meeting place of this run, the same on every rank."""
    if identity.store_port:
        return Place(address=identity.store_host, port=identity.store_port, listening_fd=identity.store_fd)
    if identity.rank == 0:
        return _announced(folder, manifest)
    return _found(folder, manifest, patience_s, sleep)


def _announced(folder: RunFolder, manifest: Manifest) -> Place:
    """Listen, and say where."""
    point = manifest.point
    address = "127.0.0.1" if point.hosts == 1 else interface_address(manifest.launch.interface)
    listening = socket.create_server((address, 0), backlog=max(128, point.processes))
    port = listening.getsockname()[1]
    write_record(folder.meeting, Rendezvous(address=address, port=port, launched_at_ns=manifest.launched_at_ns))
    return Place(address=address, port=port, listening_fd=listening.detach())


def _found(folder: RunFolder, manifest: Manifest, patience_s: float, sleep: Callable[[float], None]) -> Place:
    """What rank 0 said in this attempt."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if folder.meeting.exists():
            said = read_record(folder.meeting, Rendezvous)
            if said.launched_at_ns == manifest.launched_at_ns:
                return Place(address=said.address, port=said.port, listening_fd=None)
        sleep(_LOOK_S)
    raise RunError(
        f"Rank 0 has not said within {patience_s:.0f} s where the ranks meet.",
        right=f"It writes {folder.meeting}, which every host has to see: the study's folder must be on a file system "
        "that all hosts share.",
        next=f"Look at its log: {folder.rank_log(0)}",
    )
