"""What the system has counted for this process and its threads. No torch.

    getrusage             CPU time, switches and faults of all threads, those that have ended too; every Unix has it
    /proc/self/status     memory
    /proc/self/task/*     one folder for each thread: `schedstat` (nanoseconds on a core, and ready without one), `comm`
                          (its name), `stat` (user and system time, in ticks of 10 ms)

/proc/self/schedstat is of the main thread alone, so the threads are read one by one. One that has ended takes its
figures along: those of the sample before are kept, and at most a second of it is missed.
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
"""Names of the threads that move messages: gloo's, and those of torch that work with it. MPI has none of its own, its
messages are moved by whoever calls it; and NCCL's do not move them themselves."""
_MEMORY = {"VmRSS": "resident_bytes", "RssAnon": "anonymous_bytes", "VmHWM": "peak_bytes"}
# macOS counts the peak in bytes, the others in units of 1,024.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
_NS_PER_TICK = NS_PER_S // os.sysconf("SC_CLK_TCK")


class ProcessCounters:
    """Reads this process's counters. A tree that lies elsewhere stands in for /proc/self in tests."""

    def __init__(self, proc: Path = PROC) -> None:
        self._status = str(proc / "status")
        self._threads = ThreadCounters(proc / "task")

    def sample(self) -> dict[str, int]:
        """What can be read of it; what the system does not have is left out."""
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
    """The number in a line of /proc/self/status; empty where it has no such line."""
    for line in status.splitlines():
        if line.startswith(f"{name}:"):
            return line.split()[1]
    return ""


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Of one thread, or of several together, in nanoseconds."""

    cpu: int = 0
    waited: int = 0
    user: int = 0
    system: int = 0
    """The last two only of threads that move messages."""

    def __add__(self, other: ThreadTimes) -> ThreadTimes:
        return ThreadTimes(
            self.cpu + other.cpu, self.waited + other.waited, self.user + other.user, self.system + other.system
        )


class ThreadCounters:
    """CPU time of this process's threads, by what they do, and how long they waited for a core."""

    def __init__(self, tasks: Path) -> None:
        self._tasks = str(tasks)
        self._names: dict[str, str] = {}
        self._named: set[str] = set()
        """Threads whose name was the same twice."""
        self._live: dict[str, ThreadTimes] = {}
        self._gone = ThreadTimes()
        self._gone_moving: ThreadTimes | None = None
        """Of threads that have ended: all of them, and those that moved messages where there were any."""

    def sample(self, main: str) -> dict[str, int]:
        """The figures of all threads so far, given the main one's number; empty where the system does not have them."""
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
                "run_queue_wait_ns": sum((each.waited for each in self._live.values()), self._gone.waited),
            }
        moving = [figures for thread, figures in self._live.items() if self._moves_messages(thread)]
        if moving or self._gone_moving:
            moved = sum(moving, self._gone_moving or ThreadTimes())
            sample |= {"comm_user_ns": moved.user, "comm_system_ns": moved.system}
        return sample

    def _read(self, place: str, thread: str) -> None:
        numbers = _text(f"{place}/schedstat").split()
        if len(numbers) < 2:  # it has ended since the folder was listed, or this kernel does not count it
            return
        cpu, waited = int(numbers[0]), int(numbers[1])
        if thread in self._live and cpu < self._live[thread].cpu:  # another one with the number of one that has ended
            self._retire([thread])
        if thread not in self._named:
            # A thread bears the name of the one that made it until it gives itself its own: look until two agree.
            name = _text(f"{place}/comm").strip()
            if name == self._names.get(thread):
                self._named.add(thread)
            self._names[thread] = name
        user, system = _user_and_system(_text(f"{place}/stat")) if self._moves_messages(thread) else (0, 0)
        self._live[thread] = ThreadTimes(cpu, waited, user, system)

    def _retire(self, threads: Iterable[str]) -> None:
        """Keep the last figures of threads that have ended."""
        for thread in list(threads):
            figures = self._live.pop(thread)
            self._gone += figures
            if self._moves_messages(thread):
                self._gone_moving = (self._gone_moving or ThreadTimes()) + figures
            self._names.pop(thread, None)
            self._named.discard(thread)

    def _moves_messages(self, thread: str) -> bool:
        return self._names.get(thread) in MESSAGE_THREADS


def _user_and_system(stat: str) -> tuple[int, int]:
    """User and system time in nanoseconds, the 12th and 13th field after the name."""
    numbers = stat.rpartition(")")[2].split()
    return (int(numbers[11]) * _NS_PER_TICK, int(numbers[12]) * _NS_PER_TICK) if len(numbers) > 12 else (0, 0)


def _text(path: str) -> str:
    """A file's contents; empty where it cannot be read. By handle: half of what a Python file would cost."""
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
