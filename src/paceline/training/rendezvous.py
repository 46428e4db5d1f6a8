"""Where the ranks of a run connect: set by the launcher, or published by rank 0 in the run folder. No torch.

    rank 0   listens (loopback on one host, the named interface between hosts) ──▶ ranks/rendezvous.json
    others   wait for that file ──▶ connect

Every launcher except `local` uses the file. The kernel chooses the port, and rank 0 listens on it before it publishes
it: no other process can take it, and the host of rank 0 need not be known in advance.
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

TIMEOUT_S = 300.0
"""How long ranks wait for rank 0: under a busy scheduler hosts may start minutes apart."""
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address at which the ranks connect."""

    address: str
    port: int
    listening_fd: int | None
    """On rank 0: the listening socket."""


def rendezvous(
    identity: Identity,
    folder: RunFolder,
    manifest: Manifest,
    *,
    timeout_s: float = TIMEOUT_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Endpoint:
    """Endpoint of this run, equal on every rank."""
    if identity.store_port:
        return Endpoint(address=identity.store_host, port=identity.store_port, listening_fd=identity.store_fd)
    if identity.rank == 0:
        return _announced(folder, manifest)
    return _found(folder, manifest, timeout_s, sleep)


def _announced(folder: RunFolder, manifest: Manifest) -> Endpoint:
    """Listen, and publish the endpoint."""
    point = manifest.point
    address = "127.0.0.1" if point.hosts == 1 else interface_address(manifest.launch.interface)
    listening = socket.create_server((address, 0), backlog=max(128, point.processes))
    port = listening.getsockname()[1]
    write_record(folder.rendezvous, Rendezvous(address=address, port=port, launched_at_ns=manifest.launched_at_ns))
    return Endpoint(address=address, port=port, listening_fd=listening.detach())


def _found(folder: RunFolder, manifest: Manifest, timeout_s: float, sleep: Callable[[float], None]) -> Endpoint:
    """Endpoint that rank 0 has published in this attempt."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if folder.rendezvous.exists():
            found = read_record(folder.rendezvous, Rendezvous)
            if found.launched_at_ns == manifest.launched_at_ns:
                return Endpoint(address=found.address, port=found.port, listening_fd=None)
        sleep(_POLL_S)
    raise RunError(
        f"Rank 0 has not published its address within {timeout_s:.0f} s.",
        right=f"It writes {folder.rendezvous}, which every host must see: the study's folder must be on a file system "
        "that all hosts share.",
        next=f"Look at its log: {folder.rank_log(0)}",
    )
