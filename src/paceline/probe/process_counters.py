"""Counters of the operating system for this process and its threads. No torch.

    getrusage             CPU time, switches and faults of all threads, ended ones included; every Unix has it
    /proc/self/status     memory
    /proc/self/task/*     one folder for each thread: `schedstat` (nanoseconds on a core, and ready without one), `comm`
                          (its name), `stat` (user and system time, in ticks of 10 ms)

/proc/self/schedstat covers only the main thread, so every thread is read. The figures of a thread disappear when it
ends: those of the previous sample are used, and at most a second of it is missed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from paceline.units import NS_PER_S, nanoseconds

PROC = Path("/proc/self")
MESSAGE_THREADS = ("gloo_tcp_loop", "pt_gloo_runloop")
"""Names of the threads that move messages: those of gloo, and of torch for gloo. MPI moves messages in the calling
thread; NCCL's threads do not move messages themselves."""
_MEMORY = {"VmRSS": "resident_bytes", "RssAnon": "anonymous_bytes", "VmHWM": "peak_bytes"}
# macOS counts the peak in bytes, the others in units of 1,024.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
_NS_PER_TICK = NS_PER_S // os.sysconf("SC_CLK_TCK")


class ProcessCounters:
    """Reads this process's counters; tests pass another folder than /proc/self."""

    def __init__(self, proc: Path = PROC) -> None:
        self._status = str(proc / "status")
        self._threads = ThreadCounters(proc / "task")

    def sample(self) -> dict[str, int]:
        """The counters that the system has."""
        status = _text(self._status)
        return {**_usage(), **_memory(status), **self._threads.sample(main=_field(status, "Tgid"))}


def _usage() -> dict[str, int]:
    try:
        import resource
    except ImportError:  # not a Unix
        return {}
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "user_ns": nanoseconds(own.ru_utime),
        "system_ns": nanoseconds(own.ru_stime),
        "children_user_ns": nanoseconds(children.ru_utime),
        "children_system_ns": nanoseconds(children.ru_stime),
        "voluntary_switches": own.ru_nvcsw,
        "involuntary_switches": own.ru_nivcsw,
        "minor_faults": own.ru_minflt,
        "major_faults": own.ru_majflt,
        "peak_bytes": own.ru_maxrss * _PEAK_UNIT,
    }


def _memory(status: str) -> dict[str, int]:
    """Bytes by counter, from lines such as 'VmRSS:     5120 kB'."""
    found = {counter: _field(status, name) for name, counter in _MEMORY.items()}
    return {counter: int(value) * 1024 for counter, value in found.items() if value.isdecimal()}


def _field(status: str, name: str) -> str:
    """The value of a line of /proc/self/status; empty if there is no such line."""
    for line in status.splitlines():
        if line.startswith(f"{name}:"):
            return line.split()[1]
    return ""


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Times of one thread, or sums over several, in nanoseconds."""

    cpu: int = 0
    waited: int = 0
    user: int = 0
    system: int = 0
    """`user` and `system` only of threads that move messages."""

    def __add__(self, other: ThreadTimes) -> ThreadTimes:
        return ThreadTimes(
            self.cpu + other.cpu, self.waited + other.waited, self.user + other.user, self.system + other.system
        )


class ThreadCounters:
    """CPU time of this process's threads by purpose, and how long they waited for a core."""

    def __init__(self, tasks: Path) -> None:
        self._tasks = str(tasks)
        self._names: dict[str, str] = {}
        self._named: set[str] = set()
        """Threads that had the same name in two samples."""
        self._live: dict[str, ThreadTimes] = {}
        self._ended = ThreadTimes()
        self._ended_moving: ThreadTimes | None = None
        """Times of ended threads: of all, and of those that moved messages if there were any."""

    def sample(self, main: str) -> dict[str, int]:
        """The times of all threads so far; `main` is the id of the main thread. Empty if the system has none."""
        try:
            found = os.listdir(self._tasks)
        except OSError:
            return {}
        self._retire(self._live.keys() - set(found))
        for thread in found:
            self._read(f"{self._tasks}/{thread}", thread)
        sample = {"num_threads": len(found)}
        if main in self._live:
            sample |= {
                "main_cpu_ns": self._live[main].cpu,
                "main_run_queue_wait_ns": self._live[main].waited,
                "run_queue_wait_ns": sum((each.waited for each in self._live.values()), self._ended.waited),
            }
        moving = [times for thread, times in self._live.items() if self._moves_messages(thread)]
        if moving or self._ended_moving:
            moved = sum(moving, self._ended_moving or ThreadTimes())
            sample |= {"comm_user_ns": moved.user, "comm_system_ns": moved.system}
        return sample

    def _read(self, place: str, thread: str) -> None:
        numbers = _text(f"{place}/schedstat").split()
        if len(numbers) < 2:  # it has just ended, or this kernel does not count
            return
        cpu, waited = int(numbers[0]), int(numbers[1])
        if thread in self._live and cpu < self._live[thread].cpu:  # a new thread with the id of an ended one
            self._retire([thread])
        if thread not in self._named:
            # A thread has the name of its creator until it sets its own: read it until two samples agree.
            name = _text(f"{place}/comm").strip()
            if name == self._names.get(thread):
                self._named.add(thread)
            self._names[thread] = name
        user, system = _user_and_system(_text(f"{place}/stat")) if self._moves_messages(thread) else (0, 0)
        self._live[thread] = ThreadTimes(cpu, waited, user, system)

    def _retire(self, threads: Iterable[str]) -> None:
        """Add the last times of ended threads to the sums."""
        for thread in list(threads):
            times = self._live.pop(thread)
            self._ended += times
            if self._moves_messages(thread):
                self._ended_moving = (self._ended_moving or ThreadTimes()) + times
            self._names.pop(thread, None)
            self._named.discard(thread)

    def _moves_messages(self, thread: str) -> bool:
        return self._names.get(thread) in MESSAGE_THREADS


def _user_and_system(stat: str) -> tuple[int, int]:
    """User and system time in nanoseconds: fields 12 and 13 after the name."""
    numbers = stat.rpartition(")")[2].split()
    return (int(numbers[11]) * _NS_PER_TICK, int(numbers[12]) * _NS_PER_TICK) if len(numbers) > 12 else (0, 0)


def _text(path: str) -> str:
    """A file's contents; empty if it cannot be read. os.read takes half the time of a Python file."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(handle, 4096).decode(errors="replace")
    except OSError:  # the thread ended in between
        return ""
    finally:
        os.close(handle)
