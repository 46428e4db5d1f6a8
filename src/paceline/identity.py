"""Who this process is among the ranks, and what it is made of: one table of environment variables per launcher.

A launcher tells a rank its place through the environment and nothing else; settings travel in
`manifest.json`. This is the only module that reads the environment.
"""

from __future__ import annotations

import functools
import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path

from paceline import __version__

# launcher -> (rank, size, local rank, local size); the first whose rank variable is set wins.
# `local` comes first so that ranks started inside a SLURM allocation keep their own numbers.
_VARIABLES = {
    "local": ("PACELINE_RANK", "PACELINE_SIZE", "PACELINE_LOCAL_RANK", "PACELINE_LOCAL_SIZE"),
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "openmpi": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "mpich": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
}

PARENT_PID = "PACELINE_PARENT_PID"
STORE_FD = "PACELINE_STORE_FD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """This process's place among the ranks."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    launcher: str
    host: str
    store_host: str
    """Where the ranks meet; loopback unless hosts are named."""
    store_port: int
    store_fd: int | None
    """A listening socket inherited by rank 0, so that no port can be lost between choice and use."""
    parent_pid: int | None
    """The process this rank must not outlive."""


def this_rank() -> Identity:
    """The identity of this process; rank 0 of 1 where no launcher has said anything."""
    launcher, names = next(
        ((name, names) for name, names in _VARIABLES.items() if names[0] in os.environ), ("none", None)
    )
    rank, size, local_rank, local_size = (0, 1, 0, 1)
    if names:
        rank, size = (int(os.environ[name]) for name in names[:2])
        local_rank = int(os.environ.get(names[2], rank))
        local_size = int(os.environ.get(names[3], size))
    return Identity(
        rank=rank,
        size=size,
        local_rank=local_rank,
        local_size=local_size,
        launcher=launcher,
        host=socket.gethostname(),
        store_host=os.environ.get("MASTER_ADDR", "127.0.0.1"),
        store_port=int(os.environ.get("MASTER_PORT", "0")),
        store_fd=_optional_int(STORE_FD),
        parent_pid=_optional_int(PARENT_PID),
    )


def local_environment(
    rank: int, size: int, *, store_port: int, store_fd: int | None, parent_pid: int
) -> dict[str, str]:
    """The variables by which the local launcher tells a rank who it is."""
    names = _VARIABLES["local"]
    told = dict(zip(names, map(str, (rank, size, rank, size)), strict=True))
    told |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store_port), PARENT_PID: str(parent_pid)}
    if store_fd is not None:
        told[STORE_FD] = str(store_fd)
    return told


def inherited_environment() -> dict[str, str]:
    """This process's environment without any launcher's rank variables: the base of a child's."""
    ours = {name for names in _VARIABLES.values() for name in names} | {PARENT_PID, STORE_FD}
    return {name: value for name, value in os.environ.items() if name not in ours}


def versions() -> dict[str, str]:
    """Versions of what computes, asked of the installation: importing torch would cost seconds."""
    return {"python": platform.python_version(), "paceline": __version__, **_installed("torch", "numpy")}


@functools.cache
def _installed(*packages: str) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # 25 ms, and most who import this ask for no versions

    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"  # put on the path without being installed
    return found


def cache_folder() -> Path:
    """Where decoded data sets are kept: $PACELINE_CACHE, or the user's cache folder."""
    chosen = os.environ.get("PACELINE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "paceline"


def in_ci() -> bool:
    """Whether this is a continuous-integration run, where falling back is a failure."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def _optional_int(name: str) -> int | None:
    value = os.environ.get(name)
    return None if value is None else int(value)
