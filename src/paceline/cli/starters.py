"""Which launchers work on this machine, and what the others need: asked of their programs, all at once.

Neither torch nor Ray nor MPI is loaded here. A program that does not answer in time is said not to: a scheduler
that is down must not hold up the doctor.
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
"""For all programs together: they are asked at the same time."""

_MPI4PY = "from mpi4py import MPI; print(MPI.Get_library_version())"


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """A launcher as this machine has it."""

    name: str
    works: bool
    text: str
    """What it found, or what it needs."""


class Asked:
    """A program that was asked something."""

    def __init__(self, *command: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        program = found(command[0])
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
        """What it printed; None where it failed, is missing or has not answered by the deadline (time.monotonic)."""
        if self._process is None:
            return None
        try:
            output, _ = self._process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return None
        return output if self._process.returncode == 0 else None


def found(program: str) -> str | None:
    """Path of a program: one beside this Python before any other on the path."""
    if "/" in program:
        return shutil.which(program)
    return shutil.which(program, path=str(Path(sys.executable).parent)) or shutil.which(program)


def starters(mpiexec: str = "mpiexec", answer_s: float = ANSWER_S) -> list[Starter]:
    """Every launcher of the catalog, in its order."""
    asked = {
        "mpiexec": Asked(mpiexec, "--version"),
        "mpi4py": Asked(sys.executable, "-P", "-c", _MPI4PY),
        "sinfo": Asked("sinfo", "--noheader", "--format=%R"),
        "qstat": Asked("qstat", "--version"),
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
    return [Starter(name=name, works=works, text=text) for name, works, text in _judged(judges)]


def _judged(judges: Mapping[str, Callable[[], tuple[bool, str]]]) -> Iterator[tuple[str, bool, str]]:
    """Every launcher with whether it works; one of another package by the program that it names, if any."""
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
            works = not asked or found(asked) is not None
            yield name, works, entry.text if works else f"needs {asked}"


def _torch() -> tuple[bool, str]:
    version = _version("torch")
    return (True, f"of torch {version}") if version else (False, "needs torch")


def _mpi(answers: Mapping[str, str | None], there: Mapping[str, bool], mpiexec: str) -> tuple[bool, str]:
    said = answers["mpiexec"]
    if said is None:
        reason = f"{mpiexec} does not answer" if there["mpiexec"] else f"needs {mpiexec}"
        return False, f"{reason}: pip install 'paceline[mpi]', or load the site's MPI"
    whose = _mpi_version(said)
    library = answers["mpi4py"]
    if library is None:
        return True, f"{whose}, but mpi4py does not load: the mpi-* strategies need it"
    line = " ".join(library.split("\n")[0].replace("Version:", "").split())
    return True, f"{whose}; mpi4py with {line.rstrip(',')}"


def _mpi_version(said: str) -> str:
    """'MPICH 5.0.2', 'Open MPI 4.1.4': from what mpiexec --version prints."""
    number = re.search(r"\d+\.\d+[\w.]*", said)
    name = "Open MPI" if re.search(r"open ?mpi|openrte|prrte", said, flags=re.IGNORECASE) else "MPICH"
    if "Intel" in said:
        name = "Intel MPI"
    return f"{name} {number[0]}" if number else name


def _slurm(answers: Mapping[str, str | None], there: Mapping[str, bool]) -> tuple[bool, str]:
    if not there["sinfo"]:
        return False, "needs SLURM's sbatch, srun and sinfo"
    partitions = slurm_partitions(answers["sinfo"])
    if partitions is None:
        return False, "its controller does not answer (sinfo)"
    return True, f"partitions {', '.join(partitions) or 'none'}"


def slurm_partitions(said: str | None) -> tuple[str, ...] | None:
    """The partitions that sinfo named; None where it said nothing."""
    return None if said is None else tuple(dict.fromkeys(said.split()))


def _pbs(there: Mapping[str, bool]) -> tuple[bool, str]:
    if there["qstat"]:
        return True, "job scripts, to be submitted with qsub"
    return True, "job scripts, to be submitted where there is a qsub; here is none"


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
