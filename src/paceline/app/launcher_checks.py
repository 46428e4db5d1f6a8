"""Which launchers work on this machine, and what the others need. Their programs are started concurrently.

Neither torch nor Ray nor MPI is loaded here. A program that does not answer in time is reported, because the doctor
must not wait for a scheduler that is down.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline import catalog
from paceline.errors import RequestError

ANSWER_S = 3.0
"""Time limit for all programs together, which run concurrently."""

_MPI4PY = "from mpi4py import MPI; print(MPI.Get_library_version())"


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherState:
    """Whether a launcher works on this machine."""

    name: str
    works: bool
    text: str
    """Its version or partitions, or what it needs."""


class Query:
    """A program that was started to answer a question."""

    def __init__(self, *command: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        program = program_path(command[0])
        if program:
            try:
                self._process = subprocess.Popen(
                    (program, *command[1:]),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    start_new_session=True,
                )
            except OSError:
                self._process = None

    @property
    def there(self) -> bool:
        return self._process is not None

    def answer(self, deadline: float) -> str | None:
        """Its output; None if it is missing, failed or did not end by the deadline (time.monotonic)."""
        if self._process is None:
            return None
        try:
            output, _ = self._process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return None
        return output if self._process.returncode == 0 else None


def program_path(program: str) -> str | None:
    """Path of a program; the folder of this Python is searched before PATH."""
    if "/" in program:
        return shutil.which(program)
    return shutil.which(program, path=str(Path(sys.executable).parent)) or shutil.which(program)


def launcher_states(mpiexec: str = "mpiexec", answer_s: float = ANSWER_S) -> list[LauncherState]:
    """The state of every launcher, in the order of the catalog."""
    asked = {
        "mpiexec": Query(mpiexec, "--version"),
        "mpi4py": Query(sys.executable, "-P", "-c", _MPI4PY),
        "sinfo": Query("sinfo", "--noheader", "--format=%R"),
        "qstat": Query("qstat", "--version"),
    }
    deadline = time.monotonic() + answer_s
    answers = {name: one.answer(deadline) for name, one in asked.items()}
    there = {name: one.there for name, one in asked.items()}
    judges: dict[str, Callable[[], tuple[bool, str]]] = {
        "torch": _torch,
        "mpiexec": lambda: _mpi(answers, there, mpiexec),
        "sinfo": lambda: _slurm(answers, there),
        "qstat": lambda: _pbs(there),
        "ray": _ray,
    }
    return [LauncherState(name=name, works=works, text=text) for name, works, text in _judged(judges)]


def _judged(judges: Mapping[str, Callable[[], tuple[bool, str]]]) -> Iterator[tuple[str, bool, str]]:
    """Name, state and text of every launcher; launchers of other packages by the program that they name."""
    for name in catalog.names("launcher"):
        try:
            entry = catalog.launcher(name)
        except RequestError as error:
            yield name, False, error.what
            continue
        asked = entry.doctor_asks
        if asked in judges:
            yield name, *judges[asked]()
        else:
            works = not asked or program_path(asked) is not None
            yield name, works, entry.text if works else f"needs {asked}"


def _torch() -> tuple[bool, str]:
    version = _version("torch")
    return (True, f"of torch {version}") if version else (False, "needs torch")


def _mpi(answers: Mapping[str, str | None], there: Mapping[str, bool], mpiexec: str) -> tuple[bool, str]:
    output = answers["mpiexec"]
    if output is None:
        reason = f"{mpiexec} does not answer" if there["mpiexec"] else f"needs {mpiexec}"
        return False, f"{reason}: pip install 'paceline[mpi]', or load the site's MPI"
    version = _mpi_version(output)
    library = answers["mpi4py"]
    if library is None:
        return True, f"{version}, but mpi4py does not load: the mpi-* strategies need it"
    line = " ".join(library.split("\n")[0].replace("Version:", "").split())
    return True, f"{version}; mpi4py with {line.rstrip(',')}"


def _mpi_version(output: str) -> str:
    """'MPICH 5.0.2' or 'Open MPI 4.1.4', from the output of mpiexec --version."""
    number = re.search(r"\d+\.\d+[\w.]*", output)
    name = "Open MPI" if re.search(r"open ?mpi|openrte|prrte", output, flags=re.IGNORECASE) else "MPICH"
    if "Intel" in output:
        name = "Intel MPI"
    return f"{name} {number[0]}" if number else name


def _slurm(answers: Mapping[str, str | None], there: Mapping[str, bool]) -> tuple[bool, str]:
    if not there["sinfo"]:
        return False, "needs SLURM's sbatch, srun and sinfo"
    partitions = slurm_partitions(answers["sinfo"])
    if partitions is None:
        return False, "its controller does not answer (sinfo)"
    return True, f"partitions {', '.join(partitions) or 'none'}"


def slurm_partitions(output: str | None) -> tuple[str, ...] | None:
    """The partitions in the output of sinfo; None if it did not answer."""
    return None if output is None else tuple(dict.fromkeys(output.split()))


def _pbs(there: Mapping[str, bool]) -> tuple[bool, str]:
    if there["qstat"]:
        return True, "job scripts, to be submitted with qsub"
    return True, "job scripts, to be submitted on a host that has qsub; this one has none"


def _ray() -> tuple[bool, str]:
    version = _version("ray")
    return (True, f"Ray {version}") if version else (False, "needs Ray: pip install 'paceline[ray]'")


def _version(package: str) -> str | None:
    """The version of an installed package, without loading it."""
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
