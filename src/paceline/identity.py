"""Rank, size and host of this process, from environment variables: one table per launcher.

A launcher passes a rank its identity through environment variables; settings are in `manifest.json`. This is the only
module that reads the environment.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline import __version__
from paceline.errors import RequestError

# launcher -> (rank, size, local rank, local size); the first whose rank variable is set counts.
# `local` comes first, for ranks that are started inside a SLURM allocation.
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
    "slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}
_SLURM_NODE = "SLURM_NODEID"

# The launcher's name of the host: several nodes of a scheduler may share one machine and its host name.
_NODE_VARIABLES = ("PACELINE_NODE", "SLURMD_NODENAME")

_FORWARDED = (
    *("PYTHONPATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "TORCH_", "PYTORCH_", "NCCL_", "GLOO_", "TP_"),
    *("UCX_", "FI_", "MPI4PY_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "OMPI_MCA_"),
)

PARENT_PID = "PACELINE_PARENT_PID"
STORE_FD = "PACELINE_STORE_FD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The place of this process among the ranks."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    launcher: str
    host: str
    store_host: str
    """Address of the rendezvous; loopback unless hosts are named."""
    store_port: int
    """0 if the launcher has not set it: rank 0 then writes it to the run folder."""
    store_fd: int | None
    """A listening socket that rank 0 inherits, so that no other process can take the port."""
    parent_pid: int | None
    """The process with which this rank ends."""


def this_rank() -> Identity:
    """The identity of this process; rank 0 of 1 if no launcher's variables are set."""
    launcher, names = _launcher()
    rank, size, local_rank, local_size = (0, 1, 0, 1)
    if names:
        rank, size = (int(os.environ[name]) for name in names[:2])
        local_rank = int(os.environ.get(names[2], rank))
        local_size = _on_this_host(os.environ.get(names[3], str(size)))
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


def _launcher() -> tuple[str, tuple[str, ...] | None]:
    """The launcher whose variables are set, and their names.

    One that sets the local rank too comes first: srun sets MPICH's rank and size, but not its local rank.
    """
    found = [(name, names) for name, names in _VARIABLES.items() if names[0] in os.environ]
    return next((entry for entry in found if entry[1][2] in os.environ), found[0] if found else ("none", None))


def _on_this_host(counts: str) -> int:
    """The number of ranks on this host. SLURM lists all hosts: '2(x3),1' is three hosts of two ranks and one of one."""
    if counts.isdecimal():
        return int(counts)
    hosts: list[int] = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", counts):
        hosts += [int(count)] * int(times or 1)
    return hosts[int(os.environ.get(_SLURM_NODE, "0"))]


def local_environment(
    rank: int, size: int, *, store_port: int, store_fd: int | None, parent_pid: int
) -> dict[str, str]:
    """The variables that give a rank its identity under the local launcher."""
    variables = rank_variables(rank, size, rank, size)
    variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store_port), PARENT_PID: str(parent_pid)}
    return variables if store_fd is None else variables | {STORE_FD: str(store_fd)}


def wrapped_rank_environment(identity: Identity, *, parent_pid: int) -> dict[str, str]:
    """The variables of a rank whose identity comes from another program (mpiexec, torchrun, srun, Ray).

    Variables of that program stay, because its library reads them, except its rendezvous address.
    """
    removed = {"MASTER_ADDR", "MASTER_PORT", STORE_FD}
    variables = {name: value for name, value in os.environ.items() if name not in removed}
    # Open MPI or SLURM's PMIx started it. By default mpi4py would load the first library that it finds.
    if "PMIX_RANK" in variables and "MPI4PY_LIBMPI" not in variables:
        variables.setdefault("MPI4PY_MPIABI", "openmpi")
    place = rank_variables(identity.rank, identity.size, identity.local_rank, identity.local_size)
    return variables | place | {PARENT_PID: str(parent_pid)}


def rank_variables(
    rank: int, size: int, local_rank: int, local_size: int, *, launcher: str = "local"
) -> dict[str, str]:
    """The variables of a launcher that give a rank its place."""
    return dict(zip(_VARIABLES[launcher], map(str, (rank, size, local_rank, local_size)), strict=True))


def script_environment(
    identity: Identity, ranks_on_hosts: tuple[int, ...], *, address: str, port: int
) -> dict[str, str]:
    """The variables that torchrun sets for a script: its place, and the rendezvous of its ranks.

    With them frameworks start no ranks of their own. The store of the agent is off, so that a script can use another
    port for its ranks.
    """
    place = rank_variables(identity.rank, identity.size, identity.local_rank, identity.local_size, launcher="torchrun")
    host = next(host for host in range(len(ranks_on_hosts)) if identity.rank < sum(ranks_on_hosts[: host + 1]))
    return place | {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "GROUP_RANK": str(host),
        "GROUP_WORLD_SIZE": str(len(ranks_on_hosts)),
        "ROLE_RANK": str(identity.rank),
        "ROLE_WORLD_SIZE": str(identity.size),
        "TORCHELASTIC_RUN_ID": "paceline",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }


def set_variables(variables: dict[str, str]) -> None:
    """Set variables of this process, for libraries that read them when they load and for child processes."""
    os.environ.update(variables)


@contextmanager
def temporary_variables(variables: dict[str, str]) -> Iterator[None]:
    """Set variables of this process inside a `with` block, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def inherited_environment() -> dict[str, str]:
    """This process's environment without the rank variables of any launcher, for a child process."""
    ours = {name for names in _VARIABLES.values() for name in names} | {PARENT_PID, STORE_FD}
    return {name: value for name, value in os.environ.items() if name not in ours}


def launcher_variables() -> dict[str, str]:
    """All variables of launchers that are set in this process."""
    known = (*(name for names in _VARIABLES.values() for name in names), *_NODE_VARIABLES)
    return {name: os.environ[name] for name in known if name in os.environ}


def node_name() -> str:
    """The launcher's name of this host; empty if it has none."""
    return next((os.environ[name] for name in _NODE_VARIABLES if os.environ.get(name)), "")


def forwarded_environment() -> dict[str, str]:
    """The variables of this process that are passed to other hosts: paths and settings of libraries.

    Only listed ones, because all users of another host can read a command line there.
    """
    return {name: value for name, value in inherited_environment().items() if name.startswith(_FORWARDED)}


def interface_address(name: str) -> str:
    """The IPv4 address of a network interface of this host."""
    import psutil  # few importers of this module need it

    found = psutil.net_if_addrs()
    for address in found.get(name, ()):
        if address.family == socket.AF_INET:
            return address.address
    usable = sorted(key for key, own in found.items() if any(a.family == socket.AF_INET for a in own))
    raise RequestError(
        f"This host ({socket.gethostname()}) has no network interface {name!r} with an IPv4 address.",
        right=f"It has {', '.join(usable)}.",
        next="Name the one that connects the hosts: --set launch.interface=NAME.",
    )


def versions() -> dict[str, str]:
    """Versions of Python, Paceline, torch and numpy, from package metadata: importing torch would take seconds."""
    return {"python": platform.python_version(), "paceline": __version__, **_installed("torch", "numpy")}


@functools.cache
def _installed(*packages: str) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # 25 ms, and few importers need it

    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"  # on the path without being installed
    return found


def restarts() -> int:
    """How often torchrun has restarted the ranks."""
    return _optional_int("TORCHELASTIC_RESTART_COUNT") or 0


def step_of_job() -> str:
    """SLURM's id of this job step, equal on all its hosts; empty under any other launcher."""
    job, step = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_STEP_ID")
    return f"{job}.{step}" if job and step else ""


def cache_folder() -> Path:
    """The folder of decoded data sets: $PACELINE_CACHE, or the user's cache folder."""
    chosen = os.environ.get("PACELINE_CACHE")
    return Path(chosen).expanduser() if chosen else _user_folder("XDG_CACHE_HOME", ".cache") / "paceline"


def torch_folder() -> Path:
    """The folder of files that PyTorch libraries download: $TORCH_HOME, or the user's cache folder."""
    chosen = os.environ.get("TORCH_HOME")
    return Path(chosen).expanduser() if chosen else _user_folder("XDG_CACHE_HOME", ".cache") / "torch"


def config_folder() -> Path:
    """The folder of the user's settings and site profiles."""
    return _user_folder("XDG_CONFIG_HOME", ".config") / "paceline"


def _user_folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable)
    return Path(base) if base else Path.home() / default


def _optional_int(name: str) -> int | None:
    value = os.environ.get(name)
    return None if value is None else int(value)
