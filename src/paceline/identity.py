"""Who this process is among the ranks, and what it is made of: one table of environment variables per launcher.

A launcher tells a rank its place through the environment and nothing else; settings travel in
`manifest.json`. This is the only module that reads the environment.
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
    "slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}
_SLURM_NODE = "SLURM_NODEID"

# The host's name in the launcher's words: several nodes of a scheduler may share one machine and its name.
_NODE_VARIABLES = ("PACELINE_NODE", "SLURMD_NODENAME")

_FORWARDED = (
    *("PYTHONPATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "TORCH_", "PYTORCH_", "NCCL_", "GLOO_", "TP_"),
    *("UCX_", "FI_", "MPI4PY_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "OMPI_MCA_"),
)

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
    """0 where no launcher has said: rank 0 then says it through the run folder."""
    store_fd: int | None
    """A listening socket inherited by rank 0, so that no port can be lost between choice and use."""
    parent_pid: int | None
    """The process this rank must not outlive."""


def this_rank() -> Identity:
    """The identity of this process; rank 0 of 1 where no launcher has said anything."""
    launcher, names = _told_by()
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


def _told_by() -> tuple[str, tuple[str, ...] | None]:
    """The launcher whose variables are set, and their names.

    One that says the place on this host too comes first: SLURM's srun sets MPICH's rank and size, but not those.
    """
    told = [(name, names) for name, names in _VARIABLES.items() if names[0] in os.environ]
    return next((entry for entry in told if entry[1][2] in os.environ), told[0] if told else ("none", None))


def _on_this_host(counts: str) -> int:
    """A number of ranks; SLURM writes those of all hosts, '2(x3),1' for three hosts of two ranks and one of one."""
    if counts.isdecimal():
        return int(counts)
    hosts: list[int] = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", counts):
        hosts += [int(count)] * int(times or 1)
    return hosts[int(os.environ.get(_SLURM_NODE, "0"))]


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


def kept_environment(identity: Identity, *, parent_pid: int) -> dict[str, str]:
    """The variables of a rank that another program (mpiexec, torchrun, srun, Ray) has given its place.

    That program's own stay, because its library reads them; what it says of a meeting place is left out.
    """
    told = (identity.rank, identity.size, identity.local_rank, identity.local_size)
    left_out = {"MASTER_ADDR", "MASTER_PORT", STORE_FD}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    # Where Open MPI or SLURM's PMIx started it. Left alone, mpi4py would load the first library that it finds.
    if "PMIX_RANK" in kept and "MPI4PY_LIBMPI" not in kept:
        kept.setdefault("MPI4PY_MPIABI", "openmpi")
    return kept | dict(zip(_VARIABLES["local"], map(str, told), strict=True)) | {PARENT_PID: str(parent_pid)}


def rank_variables(rank: int, size: int, local_rank: int, local_size: int) -> dict[str, str]:
    """The variables that tell a rank its place, where the program that starts it has none of its own."""
    return dict(zip(_VARIABLES["local"], map(str, (rank, size, local_rank, local_size)), strict=True))


def script_environment(
    identity: Identity, ranks_on_hosts: tuple[int, ...], *, address: str, port: int
) -> dict[str, str]:
    """The variables by which torchrun tells a script its place and where its ranks meet.

    That there was a torchrun is said too, because frameworks then start no ranks of their own; but not that it keeps
    the store: a script that chooses another port for its ranks can have it.
    """
    place = (identity.rank, identity.size, identity.local_rank, identity.local_size)
    told = dict(zip(_VARIABLES["torchrun"], map(str, place), strict=True))
    host = next(host for host in range(len(ranks_on_hosts)) if identity.rank < sum(ranks_on_hosts[: host + 1]))
    return told | {
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


def tell_libraries(told: dict[str, str]) -> None:
    """Set variables of this process that a library reads when it is loaded into it, and that it hands on."""
    os.environ.update(told)


@contextmanager
def libraries_told(told: dict[str, str]) -> Iterator[None]:
    """The same for as long as it is needed: afterwards the variables are as they were."""
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def inherited_environment() -> dict[str, str]:
    """This process's environment without any launcher's rank variables: the base of a child's."""
    ours = {name for names in _VARIABLES.values() for name in names} | {PARENT_PID, STORE_FD}
    return {name: value for name, value in os.environ.items() if name not in ours}


def launcher_variables() -> dict[str, str]:
    """Every variable by which a launcher has told this process its place, under whatever launcher."""
    known = (*(name for names in _VARIABLES.values() for name in names), *_NODE_VARIABLES)
    return {name: os.environ[name] for name in known if name in os.environ}


def node_name() -> str:
    """What the launcher calls this host; empty where it has no name of its own for it."""
    return next((os.environ[name] for name in _NODE_VARIABLES if os.environ.get(name)), "")


def forwarded_environment() -> dict[str, str]:
    """What of this process's environment goes along to other hosts: paths and settings of libraries.

    A list of what may go, because a command line on another host can be read by everybody there.
    """
    return {name: value for name, value in inherited_environment().items() if name.startswith(_FORWARDED)}


def interface_address(name: str) -> str:
    """The IPv4 address of a network interface of this host."""
    import psutil  # most who import this module ask for nothing of the kind

    found = psutil.net_if_addrs()
    for address in found.get(name, ()):
        if address.family == socket.AF_INET:
            return address.address
    usable = sorted(key for key, own in found.items() if any(a.family == socket.AF_INET for a in own))
    raise RequestError(
        f"This host ({socket.gethostname()}) has no network interface {name!r} with an IPv4 address.",
        right=f"It has {', '.join(usable)}.",
        next="Name the one that joins the hosts: --set launch.interface=NAME.",
    )


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


def restarts() -> int:
    """How often torchrun has started the ranks anew."""
    return _optional_int("TORCHELASTIC_RESTART_COUNT") or 0


def step_of_job() -> str:
    """What SLURM calls this launch, on all of its hosts; empty under any other launcher."""
    job, step = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_STEP_ID")
    return f"{job}.{step}" if job and step else ""


def cache_folder() -> Path:
    """Where decoded data sets are kept: $PACELINE_CACHE, or the user's cache folder."""
    chosen = os.environ.get("PACELINE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "paceline"


def torch_folder() -> Path:
    """Where PyTorch keeps what its libraries download: $TORCH_HOME, or the user's cache folder."""
    chosen = os.environ.get("TORCH_HOME")
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(chosen).expanduser() if chosen else (Path(base) if base else Path.home() / ".cache") / "torch"


def config_folder() -> Path:
    """Where a user's own settings are kept, site profiles among them."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "paceline"


def _optional_int(name: str) -> int | None:
    value = os.environ.get(name)
    return None if value is None else int(value)
