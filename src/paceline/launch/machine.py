"""What this machine gives to a process: cores, memory, GPUs, as far as limits allow. No torch.

    logical cores     in this process's affinity, cut to the CPU quota of its control group
    physical cores    of those, the ones that are not hyper-threads of another
    memory            of the machine, cut to the memory limit of its control group

A limit may stand at any level above the process's own control group: the tightest one counts.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from paceline.records.run import Machine, RankReport

_CPU_TREE = Path("/sys/devices/system/cpu")
_GROUP_TREE = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")
# Version 1 says "no limit" with a number just below 2**63.
_NO_LIMIT_BYTES = 1 << 60


@dataclass(frozen=True, slots=True)
class Processor:
    """One logical core."""

    number: int
    core: int
    """The lowest number among the hyper-threads of the same physical core."""
    package: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the control groups above this process leave to it; None is no limit."""

    cpus: float | None
    """Cores' worth of time: 1.5 is three halves of a core."""
    memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisMachine:
    """What a process here may use."""

    host: str
    cpu: str
    cores: int
    """Physical."""
    logical_cores: int
    cpu_quota: float | None
    memory_bytes: int
    gpus: tuple[str, ...]
    """Empty where there is no NVIDIA driver, or where it does not answer."""
    platform: str


def machine(reports: Sequence[RankReport]) -> Machine:
    """What the ranks of a run were given: this machine's facts, and what each rank saw itself."""
    here = this_machine()
    versions: dict[str, str] = {}
    for report in reports:
        versions |= report.versions
    return Machine(
        hosts=tuple(dict.fromkeys(report.host for report in reports)) or (here.host,),
        cpu=here.cpu,
        cores=here.cores,
        logical_cores=here.logical_cores,
        memory_bytes=here.memory_bytes,
        gpus=here.gpus,
        platform=here.platform,
        affinity=tuple(report.affinity for report in reports),
        threads=tuple(report.threads for report in reports),
        devices=tuple(report.device for report in reports),
        backend=reports[0].backend if reports else "",
        versions=versions,
    )


def this_machine() -> ThisMachine:
    """The facts about this machine, as they are now."""
    limits, found = cgroup_limits(), processors()
    physical = len({processor.core for processor in found})
    memory_bytes = psutil.virtual_memory().total
    return ThisMachine(
        host=socket.gethostname(),
        cpu=_cpu_name(),
        # psutil knows where there is no topology to read, but counts the whole machine.
        cores=usable_count(min(physical, psutil.cpu_count(logical=False) or physical), limits.cpus),
        logical_cores=usable_count(len(found), limits.cpus),
        cpu_quota=limits.cpus,
        memory_bytes=min(memory_bytes, limits.memory_bytes or memory_bytes),
        gpus=_gpus(),
        platform=platform.platform(),
    )


def cores() -> list[int]:
    """The logical cores this process may run on: one of every physical core first, then the rest.

    A CPU quota does not shorten the list, because it says how much and not where: see `usable_count`.
    """
    return [processor.number for processor in processors()]


def can_pin() -> bool:
    """Whether this operating system can keep a process to chosen cores."""
    return hasattr(os, "sched_setaffinity")


def usable_count(count: int, quota: float | None) -> int:
    """How many of `count` cores can be busy at once under a CPU quota; at least one."""
    return count if quota is None else max(1, min(count, int(quota)))


def processors(tree: Path = _CPU_TREE, affinity: set[int] | None = None) -> list[Processor]:
    """The logical cores in the order in which ranks should get them; cores of one package side by side."""
    if affinity is None:
        affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    by_place = sorted((_processor(tree, number) for number in affinity), key=lambda p: (p.package, p.core, p.number))
    seen: dict[int, int] = {}
    turns: dict[int, int] = {}
    for processor in by_place:
        turns[processor.number] = seen[processor.core] = seen.get(processor.core, -1) + 1
    return sorted(by_place, key=lambda p: turns[p.number])  # a stable sort: places stay in order


def _processor(tree: Path, number: int) -> Processor:
    """One logical core; a core and package of its own where the system does not say."""
    topology = tree / f"cpu{number}" / "topology"
    siblings = _text(topology / "core_cpus_list") or _text(topology / "thread_siblings_list")
    package = _text(topology / "physical_package_id")
    core = siblings.replace("-", ",").split(",")[0]
    return Processor(number, int(core) if core.isdigit() else number, int(package) if package.isdigit() else 0)


def cgroup_limits(own: Path = _OWN_GROUP, tree: Path = _GROUP_TREE) -> Limits:
    """The tightest limits on the way from this process's control groups up to the root, versions 1 and 2."""
    cpus: list[float] = []
    memory: list[int] = []
    for line in _text(own).splitlines():
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        for folder in _upwards(tree / controllers, group):
            quota, period = (*_text(folder / "cpu.max").split(), "", "")[:2]
            if not quota:
                quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
            if quota.isdigit() and period.isdigit() and int(period):  # "max" and "-1" are no limit
                cpus.append(int(quota) / int(period))
            limit = _text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes")
            if limit.isdigit() and int(limit) < _NO_LIMIT_BYTES:
                memory.append(int(limit))
    return Limits(cpus=min(cpus, default=None), memory_bytes=min(memory, default=None))


def _upwards(root: Path, group: str) -> Iterator[Path]:
    """The folder of a control group and those above it. Inside a container the first may not exist."""
    folder = root / group.lstrip("/")
    while folder != root and root in folder.parents:
        yield folder
        folder = folder.parent
    yield root


def _cpu_name() -> str:
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string").strip() or platform.machine()
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


@functools.cache
def _gpus() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs, in their order; asked for once, because the driver can take a second."""
    lines = _output("nvidia-smi", "-L").splitlines()
    return tuple(line.split(":", 1)[1].split("(UUID")[0].strip() for line in lines if line.startswith("GPU "))


def _output(*command: str) -> str:
    """What a program prints; nothing where it is missing, fails or takes too long."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run((program, *command[1:]), capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _text(path: Path) -> str:
    """A file's contents without the white space around them; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
