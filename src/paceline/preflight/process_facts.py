"""The facts of this process: its host, cores, memory, network, versions, and digests of its code. No torch.

    process_facts(identity, manifest, threads=..., device=..., gpus=...)  ──▶ ProcessFacts, exchanged between ranks

The caller passes facts that need torch. Takes about 20 ms, once.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from paceline import host
from paceline.identity import Identity, launcher_variables, node_name, versions
from paceline.records import process_roles
from paceline.records.allocation import ProcessFacts
from paceline.records.run import Manifest
from paceline.storage.codec import plain

PACKAGE = Path(host.__file__).parent
_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"


def process_facts(
    identity: Identity, manifest: Manifest, *, threads: int, device: str, gpus: Sequence[str]
) -> ProcessFacts:
    """The current facts of this process."""
    point, limits = manifest.point, host.cgroup_limits()
    cores, interface = host.affinity(), _interface(manifest)
    return ProcessFacts(
        rank=identity.rank,
        role=point.role(identity.rank),
        host=identity.host,
        node=node_name(),
        boot_id=host.boot_id(),
        machine_id=host.machine_id(),
        time_namespace=host.time_namespace(),
        local_rank=identity.local_rank,
        local_size=identity.local_size,
        cpu=host.cpu_name(),
        platform=platform.platform(),
        cores=os.cpu_count() or 1,
        physical_cores=_physical_cores(),
        cpu_quota=limits.cpus,
        affinity=cores,
        numa_nodes=host.numa_nodes(cores),
        threads_asked=process_roles.threads(point, identity.rank),
        threads=threads,
        memory_bytes=psutil.virtual_memory().total,
        memory_limit_bytes=limits.memory_bytes,
        device=device,
        gpus=tuple(gpus),
        interface=interface,
        addresses=_addresses(interface),
        versions=versions(),
        code_sha256=code_sha256(PACKAGE),
        model_sha256=_file_sha256(manifest.model_file),
        settings_sha256=settings_sha256(manifest),
        variables=launcher_variables(),
        wall_ns=time.time_ns(),
        monotonic_ns=time.monotonic_ns(),
    )


@functools.cache
def code_sha256(package: Path) -> str:
    """SHA-256 of the names and contents of a package's Python files; about 10 ms for a hundred."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def settings_sha256(manifest: Manifest) -> str:
    """SHA-256 of the manifest as this process read it."""
    return hashlib.sha256(json.dumps(plain(manifest), sort_keys=True).encode()).hexdigest()


def _file_sha256(path: str | None) -> str:
    """SHA-256 of a file; empty without a path, `missing` if it cannot be read on this host."""
    if path is None:
        return ""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return "missing"


def _physical_cores() -> int:
    """Physical cores of the host; psutil works without a readable topology."""
    found = {processor.core for processor in host.processors(among=range(os.cpu_count() or 1))}
    return min(len(found), psutil.cpu_count(logical=False) or len(found))


def _interface(manifest: Manifest) -> str:
    """The network interface of the collectives."""
    return _LOOPBACK if manifest.point.hosts == 1 else manifest.launch.interface


def _addresses(interface: str) -> tuple[str, ...]:
    """IP addresses of a network interface of this host."""
    families = (socket.AF_INET, socket.AF_INET6)
    return tuple(found.address for found in psutil.net_if_addrs().get(interface, ()) if found.family in families)
