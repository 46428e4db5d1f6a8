"""Facts about this host: cores, NUMA nodes, control-group limits, and which clock this process reads. No torch.

    boot id           of the running kernel: equal in all namespaces of one machine
    time namespace    of this process: within one boot, processes of one namespace read one monotonic clock

Every control group above the process may set a limit: the lowest one counts.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_CPU_TREE = Path("/sys/devices/system/cpu")
_NODE_TREE = Path("/sys/devices/system/node")
_GROUP_TREE = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")
# Version 1 writes "no limit" as a number just below 2**63.
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
    """Limits of the control groups of this process; None is no limit."""

    cpus: float | None
    """CPU time per second: 1.5 is one and a half cores."""
    memory_bytes: int | None


def boot_id() -> str:
    """The random id of the running kernel, made at boot; empty if the system has none."""
    return text(Path("/proc/sys/kernel/random/boot_id"))


def machine_id() -> str:
    """The id of the installation; empty if the system has none."""
    return text(Path("/etc/machine-id"))


def time_namespace() -> str:
    """The namespace whose clock this process reads; empty if the system has none."""
    try:
        return os.readlink("/proc/self/ns/time")
    except OSError:
        return ""


def cpu_name() -> str:
    """The processor's name."""
    for line in text(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def affinity() -> tuple[int, ...]:
    """The logical cores that this process may run on."""
    if can_pin():
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def pinned() -> tuple[int, ...]:
    """The logical cores that this process may run on; empty if the operating system cannot pin."""
    return affinity() if can_pin() else ()


def can_pin() -> bool:
    """Whether this operating system can pin a process to cores."""
    return has_call("sched_setaffinity")


def has_call(name: str) -> bool:
    """Whether the module `os` has this function: some exist only on Linux."""
    return getattr(os, name, None) is not None


def numa_nodes(cores: Iterable[int], tree: Path = _NODE_TREE) -> tuple[int, ...]:
    """The NUMA nodes of these logical cores; empty if the system does not list them."""
    wanted, found = set(cores), []
    for place in tree.glob("node[0-9]*"):
        if wanted & set(_numbers(text(place / "cpulist"))):
            found.append(int(place.name.removeprefix("node")))
    return tuple(sorted(found))


def processors(tree: Path = _CPU_TREE, among: Iterable[int] | None = None) -> list[Processor]:
    """The logical cores in the order in which ranks should get them; cores of one package side by side."""
    numbers = affinity() if among is None else among
    by_place = sorted((_processor(tree, number) for number in numbers), key=lambda p: (p.package, p.core, p.number))
    seen: dict[int, int] = {}
    turns: dict[int, int] = {}
    for processor in by_place:
        turns[processor.number] = seen[processor.core] = seen.get(processor.core, -1) + 1
    return sorted(by_place, key=lambda p: turns[p.number])  # a stable sort: places stay in order


def _processor(tree: Path, number: int) -> Processor:
    """One logical core; with its own number as core, and package 0, if the topology is unknown."""
    topology = tree / f"cpu{number}" / "topology"
    siblings = text(topology / "core_cpus_list") or text(topology / "thread_siblings_list")
    package = text(topology / "physical_package_id")
    core = siblings.replace("-", ",").split(",")[0]
    return Processor(number, int(core) if core.isdigit() else number, int(package) if package.isdigit() else 0)


def cgroup_limits(own: Path = _OWN_GROUP, tree: Path = _GROUP_TREE) -> Limits:
    """The lowest limits from this process's control groups up to the root, versions 1 and 2."""
    cpus: list[float] = []
    memory: list[int] = []
    for line in text(own).splitlines():
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        for folder in _upwards(tree / controllers, group):
            quota, period = (*text(folder / "cpu.max").split(), "", "")[:2]
            if not quota:
                quota, period = text(folder / "cpu.cfs_quota_us"), text(folder / "cpu.cfs_period_us")
            if quota.isdigit() and period.isdigit() and int(period):  # "max" and "-1" are no limit
                cpus.append(int(quota) / int(period))
            limit = text(folder / "memory.max") or text(folder / "memory.limit_in_bytes")
            if limit.isdigit() and int(limit) < _NO_LIMIT_BYTES:
                memory.append(int(limit))
    return Limits(cpus=min(cpus, default=None), memory_bytes=min(memory, default=None))


def _upwards(root: Path, group: str) -> Iterator[Path]:
    """The folder of a control group and its parents. Inside a container the first may not exist."""
    folder = root / group.lstrip("/")
    while folder != root and root in folder.parents:
        yield folder
        folder = folder.parent
    yield root


def usable_count(count: int, quota: float | None) -> int:
    """How many of `count` cores a CPU quota allows; at least one."""
    return count if quota is None else max(1, min(count, int(quota)))


def _numbers(ranges: str) -> Iterator[int]:
    """The numbers of '0-3,8' as the kernel writes them."""
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            yield from range(int(first), int(last or first) + 1)


def text(path: Path) -> str:
    """A file's contents without the white space around them; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
