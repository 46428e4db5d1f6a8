"""The launchers that the contract is run on. A new one is a line here.

    "slurm": Kind(lambda command, cluster: SlurmLauncher(command, cluster.settings), fixture="slurm_cluster", slow=True)

`fixture` names a session fixture (in a module of its own beside conftest.py, imported there) that brings up what the
launcher needs, or skips with the reason; its value is passed on as the second argument.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from checks.ci import in_ci
from paceline.launch.launcher import Launcher
from paceline.launch.local import LocalLauncher
from paceline.launch.mpi_launcher import MpiLauncher
from paceline.launch.ray.ray_launcher import RayLauncher
from paceline.launch.slurm.slurm_launcher import SlurmLauncher
from paceline.launch.torchrun import TorchrunLauncher
from paceline.records.settings import LaunchSettings

OPENMPI = "mpiexec.openmpi"


@dataclass(frozen=True, slots=True)
class Kind:
    """One launcher to be tested."""

    launcher: Callable[..., Launcher]
    """Makes one of a rank's command, and of the fixture's value where there is a fixture."""
    fixture: str = ""
    slow: bool = False
    """Whether a launch takes seconds: variations of a case are then left out."""
    beyond_loopback: str = ""
    """Name of a program that listens on every interface and cannot be told otherwise."""
    gives_cores: bool = True
    """Whether it says which core is whose; a scheduler does that itself."""
    needs: str = ""
    """A program that has to be there."""


LAUNCHERS: dict[str, Kind] = {
    "local": Kind(LocalLauncher),
    "torchrun": Kind(TorchrunLauncher, slow=True),
    "mpich": Kind(MpiLauncher),
    "openmpi": Kind(
        lambda command, settings=LaunchSettings(): MpiLauncher(command, replace(settings, mpiexec=OPENMPI)),
        beyond_loopback=OPENMPI,
        needs=OPENMPI,
    ),
    "slurm": Kind(
        lambda command, cluster: SlurmLauncher(command, cluster.settings),
        fixture="slurm_cluster",
        slow=True,
        gives_cores=False,
    ),
    "ray": Kind(lambda command, cluster: RayLauncher(command, cluster.settings), fixture="ray_cluster", slow=True),
}


def factory(name: str, request: pytest.FixtureRequest) -> Callable[[tuple[str, ...]], Launcher]:
    """What makes the launcher of a command, with what it needs brought up; skips where that is missing."""
    kind = LAUNCHERS[name]
    require(kind.needs)
    if not kind.fixture:
        return kind.launcher
    cluster: Any = request.getfixturevalue(kind.fixture)
    return lambda command: kind.launcher(command, cluster)


def require(program: str) -> None:
    """Skip where a program is not installed; fail in CI, where all of them have to be."""
    if program and shutil.which(program) is None:
        (pytest.fail if in_ci() else pytest.skip)(f"{program} is not installed")
