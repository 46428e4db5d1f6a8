"""Ranks under mpiexec: MPICH's (the `mpich` wheel brings one), Open MPI's or Intel MPI's.

    one host         mpiexec ──▶ wrapper ─▶ rank 0, wrapper ─▶ rank 1, ...
    several hosts    agent ─▶ mpiexec on the first of them ── agent ─▶ its proxy on each other host ──▶ wrappers

The options depend on the implementation. Rank wrappers pin, so binding by mpiexec is off. On one host MPICH's
mpiexec.gforker is used if it is in the folder of its mpiexec: it opens no socket, while Hydra and Open MPI's mpiexec
listen on every interface and have no option against it.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from paceline.errors import RequestError
from paceline.identity import forwarded_environment
from paceline.launch.hosts import HostsLauncher, point_hosts, program_on, ranks_by_host
from paceline.launch.launcher import Listener, Outcome, ignore
from paceline.launch.wrapper.wrapped_ranks import run_wrapped, wrapper_command
from paceline.records.run import Manifest
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder

# Text in the output of `mpiexec --version` -> implementation.
_FLAVOURS = {
    "intel(r) mpi": "mpich",
    "hydra": "mpich",
    "open mpi": "openmpi",
    "openrte": "openmpi",
    "prrte": "openmpi",
}
PLAIN = "mpiexec.gforker"
"""MPICH's mpiexec for a single host."""
_ANSWER_S = 30


class MpiLauncher(HostsLauncher):
    """Starts ranks through one mpiexec, on one host or on several."""

    name = "mpi"

    def check(self, point: Point) -> None:
        """Raise RequestError if there is no mpiexec, or the hosts are not named."""
        super().check(point)
        flavour(mpiexec(self._settings))
        if point.hosts > 1 and any(len(word.split()) != 1 for word in self._settings.agent):
            raise RequestError(
                f"launch.agent has a word with white space in it: {list(self._settings.agent)}.",
                right="mpiexec takes the agent as one line and splits it at white space.",
                next="Name a script of your own instead.",
            )

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener = ignore) -> Outcome:
        """Start mpiexec, wait for the ranks, and return their reports."""
        point, settings = manifest.point, self._settings
        hosts = [
            host for host, ranks in zip(point_hosts(point, settings), ranks_by_host(point), strict=True) for _ in ranks
        ]
        command = (*self._mpiexec(point), *wrapper_command(folder, self._command))
        program = program_on(tuple(hosts), command, tuple(range(point.processes)), settings)
        return run_wrapped([program], folder, manifest, heartbeat_s=heartbeat_s, progress=progress)

    def _mpiexec(self, point: Point) -> tuple[str, ...]:
        """mpiexec and its options, up to the command that it starts."""
        program = mpiexec(self._settings)
        if flavour(program) == "openmpi":
            oversubscribed = self.placement(point).oversubscribed
            start = (program, *_openmpi(point, self._settings, oversubscribed=oversubscribed))
        else:
            start = _mpich_here(program) if point.hosts == 1 else _mpich_hosts(program, point, self._settings)
        return (*start, "-n", str(point.processes))


def mpiexec(settings: LaunchSettings) -> str:
    """Path of the configured mpiexec; the folder of this Python is searched before PATH."""
    name = settings.mpiexec
    own = Path(sys.executable).parent / name
    found = str(own) if os.sep not in name and os.access(own, os.X_OK) else shutil.which(name)
    if found is None:
        raise RequestError(
            f"There is no mpiexec: {name!r} is neither in the folder of this Python ({own.parent}) nor on the path.",
            right="The launcher mpi starts ranks through the mpiexec of MPICH or Open MPI.",
            next="pip install 'paceline[mpi]' installs MPICH; name a site's own with --set launch.mpiexec=PATH.",
        )
    return found


@functools.cache
def flavour(program: str) -> str:
    """mpich or openmpi, from the output of --version."""
    try:
        done = subprocess.run((program, "--version"), capture_output=True, text=True, timeout=_ANSWER_S, check=False)
        output = done.stdout + done.stderr
    except (OSError, subprocess.SubprocessError) as error:
        output = str(error)
    for sign, name in _FLAVOURS.items():
        if sign in output.lower():
            return name
    first = next((line.strip() for line in output.splitlines() if line.strip()), "nothing")
    raise RequestError(
        f"{program} is of an unknown MPI implementation. Its --version prints: {first[:200]}",
        right="MPICH (Hydra), Open MPI and Intel MPI are known.",
        next="Name another with --set launch.mpiexec=PATH.",
    )


def _mpich_here(program: str) -> tuple[str, ...]:
    """MPICH on one host: without a listening socket if it has mpiexec.gforker."""
    plain = Path(program).with_name(PLAIN)
    if os.access(plain, os.X_OK):
        return (str(plain),)
    return (program, "-launcher", "fork", "-bind-to", "none")


def _mpich_hosts(program: str, point: Point, settings: LaunchSettings) -> tuple[str, ...]:
    agent, *words = settings.agent
    return (
        *("env", f"HYDRA_LAUNCHER_EXTRA_ARGS={' '.join(words)}") * bool(words),
        *(program, "-launcher", "rsh", "-launcher-exec", agent),  # rsh: Hydra adds no ssh options
        *("-localhost", settings.machines[0], "-iface", settings.interface, "-bind-to", "none"),
        *("-hosts", _slots(point, settings)),
    )


def _openmpi(point: Point, settings: LaunchSettings, *, oversubscribed: bool) -> tuple[str, ...]:
    """Options of Open MPI. Paceline decides how many ranks a host gets, so --oversubscribe is always on."""
    # Ranks that wait by spinning would take the cores of ranks that compute.
    parameters = {"mpi_yield_when_idle": "1"} if oversubscribed else {}
    if point.hosts == 1:
        parameters |= {"oob_tcp_if_include": "lo", "btl": "self,vader"}
        options = ("--oversubscribe", "--bind-to", "none")
    else:
        parameters |= {"oob_tcp_if_include": settings.interface, "btl_tcp_if_include": settings.interface}
        parameters |= {"plm": "rsh", "plm_rsh_agent": " ".join(settings.agent)}
        names = [word for name in sorted(forwarded_environment()) for word in ("-x", name)]
        options = ("--oversubscribe", "--bind-to", "none", "--host", _slots(point, settings), *names)
    if os.geteuid() == 0:
        options += ("--allow-run-as-root",)
    return (*options, *(word for name, value in parameters.items() for word in ("--mca", name, value)))


def _slots(point: Point, settings: LaunchSettings) -> str:
    """Hosts with the number of ranks on each: h1:2,h2:1."""
    hosts = point_hosts(point, settings)
    return ",".join(f"{host}:{count}" for host, count in zip(hosts, point.ranks_on_hosts, strict=True))
