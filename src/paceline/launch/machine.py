"""The resources of this machine that a process may use: cores, memory, GPUs. No torch.

    logical cores     in this process's affinity, limited by the CPU quota of its control group
    physical cores    of those, the ones that are not hyper-threads of another
    memory            of the machine, limited by its control group

`machine.json` is made of this and of the process facts that ranks exchange before the first step
(`ranks/allocation-check.json`). If ranks run on other
machines than this process, it describes those, all hosts together.
"""

from __future__ import annotations

import functools
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import psutil

from paceline import host
from paceline.host import Limits, Processor, cgroup_limits, processors, usable_count
from paceline.records.allocation import AllocationCheck, Clock, ProcessFacts
from paceline.records.run import Machine, RankReport
from paceline.storage.codec import optional_record
from paceline.storage.folder import RunFolder

__all__ = ["Limits", "Processor", "cgroup_limits", "processors", "usable_count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisMachine:
    """The resources that a process on this machine may use."""

    host: str
    cpu: str
    cores: int
    """Physical."""
    logical_cores: int
    cpu_quota: float | None
    memory_bytes: int
    gpus: tuple[str, ...]
    """Names; empty if the NVIDIA driver is missing or does not answer."""
    platform: str


def allocation_record(folder: RunFolder) -> AllocationCheck | None:
    """The record of the preflight check; None if the ranks did not get that far, or it cannot be read."""
    return optional_record(folder.allocation_check, AllocationCheck)


def machine(reports: Sequence[RankReport], check: AllocationCheck | None = None) -> Machine:
    """The machines of a run: facts about this machine, and the process facts of every rank."""
    record = _from_reports(reports)
    at_end = tuple(report.clock_at_end for report in reports if report.clock_at_end is not None)
    return _with_check(record, check, at_end) if check else record


def _with_check(record: Machine, check: AllocationCheck, at_end: tuple[Clock, ...]) -> Machine:
    """The record with the process facts of all ranks; it describes their machines if these are not this one."""
    ranks, here = check.ranks, LauncherClock.now()
    hosts = tuple(dict.fromkeys(process.place for process in ranks))
    record = replace(
        record,
        hosts=hosts,
        ranks=ranks,
        links=check.links,
        complaints=check.complaints,
        clocks=launcher_clocks(check, check.clocks, here=here),
        clocks_at_end=launcher_clocks(check, at_end, here=here) if at_end else (),
        versions=record.versions or ranks[0].versions,
    )
    machines = list({process.machine: process for process in ranks}.values())
    if [process.machine for process in machines] == [host.boot_id() or socket.gethostname()]:
        return record
    return replace(
        record,
        cpu=", ".join(dict.fromkeys(process.cpu for process in machines)),
        cores=sum(process.physical_cores for process in machines),
        logical_cores=sum(process.cores for process in machines),
        memory_bytes=sum(process.memory_bytes for process in machines),
        gpus=tuple(name for process in machines for name in process.gpus),
        platform=", ".join(dict.fromkeys(process.platform for process in machines)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherClock:
    """The clocks of this process, the launcher."""

    clock: str
    """As `ProcessFacts.clock`."""
    wall_ns: int
    monotonic_ns: int

    @classmethod
    def now(cls) -> LauncherClock:
        own = ProcessFacts(
            rank=-1, host=socket.gethostname(), boot_id=host.boot_id(), time_namespace=host.time_namespace()
        )
        return cls(clock=own.clock, wall_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())


def launcher_clocks(check: AllocationCheck, clocks: Sequence[Clock], here: LauncherClock) -> tuple[Clock, ...]:
    """Clock offsets from rank 0 converted to offsets from the launcher, by a rank that reads the launcher's clock.

    Assumes: if there is no such rank, that rank 0's wall clock and the launcher's agree.
    """
    same = {process.rank for process in check.ranks if process.clock == here.clock}
    # `clocks` may not contain rank 0, whose offset from itself is 0.
    itself = Clock(rank=0, offset_ns=0, error_ns=0, method="same")
    bridge = next((clock for clock in (itself, *clocks) if clock.rank in same), None)
    first = check.ranks[0]
    wall_ns = (first.monotonic_ns - first.wall_ns) - (here.monotonic_ns - here.wall_ns)
    found_clocks = []
    for clock in clocks:
        if clock.rank in same:
            found = replace(clock, offset_ns=0, error_ns=0, method="same")
        elif bridge is not None:
            found = replace(
                clock,
                offset_ns=clock.offset_ns - bridge.offset_ns,
                error_ns=(clock.error_ns or 0) + (bridge.error_ns or 0),
                method="exchange",
            )
        else:
            found = replace(clock, offset_ns=clock.offset_ns + wall_ns, error_ns=None, method="wall")
        found_clocks.append(found)
    return tuple(found_clocks)


def _from_reports(reports: Sequence[RankReport]) -> Machine:
    """The record from this machine's facts and the final reports of the ranks."""
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
        # psutil works without a readable topology, but counts the whole machine.
        cores=usable_count(min(physical, psutil.cpu_count(logical=False) or physical), limits.cpus),
        logical_cores=usable_count(len(found), limits.cpus),
        cpu_quota=limits.cpus,
        memory_bytes=min(memory_bytes, limits.memory_bytes or memory_bytes),
        gpus=_gpus(),
        platform=platform.platform(),
    )


def cores() -> list[int]:
    """The logical cores this process may run on: one of every physical core first, then the rest.

    A CPU quota does not shorten the list: it limits CPU time, not cores (see `usable_count`).
    """
    return [processor.number for processor in processors()]


def _cpu_name() -> str:
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string").strip() or platform.machine()
    return host.cpu_name()


@functools.cache
def _gpus() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs, in order; cached, because the driver can take a second."""
    lines = _output("nvidia-smi", "-L").splitlines()
    return tuple(line.split(":", 1)[1].split("(UUID")[0].strip() for line in lines if line.startswith("GPU "))


def _output(*command: str) -> str:
    """The output of a program; empty if it is missing, fails or takes too long."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run((program, *command[1:]), capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
