"""Child processes: the command, log and library environment of a rank, and signals to its process group."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from io import FileIO
from pathlib import Path

import psutil

from paceline.errors import RunError
from paceline.records.run import Manifest
from paceline.storage.codec import storage_error

LOG_HEADER = "=== "
"""Begins the line that a log has before each attempt."""

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

    -P: a file in the current folder must not shadow a module of the standard library.
    """
    return (sys.executable, "-P", *arguments)


def thread_environment(threads: int) -> dict[str, str]:
    """The variables that limit every numerical library to `threads` threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def loopback_environment() -> dict[str, str]:
    """The variables that restrict collectives to the loopback interface."""
    return interface_environment(_LOOPBACK)


def interface_environment(name: str, tree: Path = _NETWORK_TREE) -> dict[str, str]:
    """The variables that restrict collectives and MPI to one network interface and its RDMA devices."""
    rdma = sorted(device.name for device in (tree / name / "device" / "infiniband").glob("*"))
    devices = ",".join((name, *(f"{device}:1" for device in rdma)))
    return dict.fromkeys(_INTERFACE_VARIABLES, name) | {"UCX_NET_DEVICES": devices}


def library_environment(threads: int, interface: str = _LOOPBACK) -> dict[str, str]:
    """The variables that a rank's libraries read when they load: number of threads and network interface."""
    variables = thread_environment(threads) | interface_environment(interface)
    # A crash in native code leaves its Python stack in the log; output is not buffered.
    return variables | {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}


def opened_log(path: Path, rank: int, manifest: Manifest) -> FileIO:
    """The log of a rank, opened for its output, with a header for this attempt."""
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


def start_rank(
    rank: int,
    command: Sequence[str],
    environment: dict[str, str],
    log: FileIO,
    *,
    pass_fds: Sequence[int] = (),
    close_fds: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a rank's process in a session of its own, so that its children can be ended with it."""
    try:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
            close_fds=close_fds,
        )
    except OSError as error:
        raise RunError(
            f"Rank {rank} could not be started: {command[0]}: {error.strerror or error}.",
            right=f"The command was: {shlex.join(command)}",
            next="Check this machine: paceline doctor",
        ) from error


def signal_group(pid: int, *numbers: int) -> None:
    """Send signals to a process group; nothing happens if it has ended."""
    for number in numbers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)


def process_state(pid: int) -> str | None:
    """The operating system's state of a process of this host, in psutil's words; None if it has ended."""
    try:
        return psutil.Process(pid).status()
    except psutil.Error:
        return None
