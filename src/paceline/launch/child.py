"""A Python process of our own, whoever starts it: its command, its log, and what its libraries read when they load."""

from __future__ import annotations

import contextlib
import sys
from io import FileIO
from pathlib import Path

from paceline.records.codec import storage_error
from paceline.records.run import Manifest

LOG_HEADER = "=== "
"""Begins the line that stands in a log before each attempt."""

_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
_INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "FI_TCP_IFACE")
_NETWORK_TREE = Path("/sys/class/net")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def python(*arguments: str) -> tuple[str, ...]:
    """The command that runs this Python, e.g. with "-m" and a module.

    -P: a file in the current folder that is called like a module of Python must not stand in for it.
    """
    return (sys.executable, "-P", *arguments)


def thread_environment(threads: int) -> dict[str, str]:
    """The variables that keep every library that computes to so many threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def loopback_environment() -> dict[str, str]:
    """The variables that keep collectives to this machine: nothing listens beyond it."""
    return interface_environment(_LOOPBACK)


def interface_environment(name: str, tree: Path = _NETWORK_TREE) -> dict[str, str]:
    """The variables that keep collectives and MPI to one network interface, and to what RDMA there is behind it."""
    rdma = sorted(device.name for device in (tree / name / "device" / "infiniband").glob("*"))
    devices = ",".join((name, *(f"{device}:1" for device in rdma)))
    return dict.fromkeys(_INTERFACE_VARIABLES, name) | {"UCX_NET_DEVICES": devices}


def library_environment(threads: int, interface: str = _LOOPBACK) -> dict[str, str]:
    """What a rank's libraries read when they load: numbers of threads, and where collectives may listen."""
    told = thread_environment(threads) | interface_environment(interface)
    # A crash in native code leaves its Python stack in the log, and output is there as soon as it is made.
    return told | {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}


def opened_log(path: Path, rank: int, manifest: Manifest) -> FileIO:
    """A rank's log, opened for what it prints, with a line for this attempt."""
    header = f"{LOG_HEADER}rank {rank} of {manifest.point.processes}, run {manifest.run}, attempt {manifest.attempt}, "
    header += f"launched {manifest.launched_at}\n"
    try:
        with contextlib.ExitStack() as on_failure:
            log = on_failure.enter_context(path.open("ab", buffering=0))
            log.write(header.encode())
            on_failure.pop_all()
            return log
    except OSError as error:
        raise storage_error(path, error) from error
