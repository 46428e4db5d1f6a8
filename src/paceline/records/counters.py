"""Counters of the operating system for a rank, sampled once a second; and the figures that analysis derives.

`counters/rank-0003.arrows` is an Arrow IPC stream of `at_ns`, an instant on the host's monotonic clock, and of these,
all int64 and null if they were not measured. Cumulative counters start at 0 when the process starts, unless
noted otherwise:

    user_ns, system_ns                          CPU time of all threads, ended ones included
    children_user_ns, children_system_ns        CPU time of child processes that have ended
    main_cpu_ns                                 CPU time of the main thread
    comm_user_ns, comm_system_ns                CPU time of the threads that move messages, in steps of 10 ms each
    run_queue_wait_ns, main_run_queue_wait_ns   time that threads were runnable without a core: all, the main one
    num_threads                                 at this instant
    voluntary_switches, involuntary_switches    a thread waited for something; a thread was preempted
    minor_faults, major_faults                  pages that had to be mapped; those of them that had to be read
    resident_bytes, anonymous_bytes             memory at this instant; the part that is not file-backed
    peak_bytes                                  peak resident memory
    gpu_memory_bytes, gpu_peak_bytes            memory that torch allocated on the GPUs of this rank: now, and peak
    package_uj, memory_uj, gpu_uj               energy of the whole host since the first sample: processor packages,
                                                memory if it has a separate meter, GPUs; read only by the
                                                lowest rank of a host
    gpu_use_percent                             mean over the host's GPUs at this instant; read likewise

A file is written ten samples at a time: after a kill the last ten seconds are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

COUNTER_SCHEMA = "paceline.counters/1"

COUNTERS = (
    "user_ns",
    "system_ns",
    "children_user_ns",
    "children_system_ns",
    "main_cpu_ns",
    "comm_user_ns",
    "comm_system_ns",
    "run_queue_wait_ns",
    "main_run_queue_wait_ns",
    "num_threads",
    "voluntary_switches",
    "involuntary_switches",
    "minor_faults",
    "major_faults",
    "resident_bytes",
    "anonymous_bytes",
    "peak_bytes",
    "gpu_memory_bytes",
    "gpu_peak_bytes",
    "package_uj",
    "memory_uj",
    "gpu_uj",
    "gpu_use_percent",
)

Sample = Mapping[str, int | None]
"""One sample of some of COUNTERS; the others were not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCounters:
    """The samples of one process, as columns of equal length."""

    rank: int
    """Number of the process: those after the ranks are servers and a coordinator."""
    at_ns: np.ndarray
    values: Mapping[str, np.ndarray]
    """One column for each of COUNTERS; -1 if it was not measured."""
    truncated: bool = False
    """Whether the file is truncated."""
    host: str = ""
    """Empty if unknown."""
    machine: str = ""
    """Equal for hosts that are namespaces of one machine and share its meters; empty if unknown."""
    threads: int | None = None
    """Configured threads; None if unknown."""

    def __len__(self) -> int:
        return len(self.at_ns)

    def last(self, name: str) -> int | None:
        """The last sample of a counter; None if it lacks the counter: an earlier sample would be too small."""
        value = int(self.values[name][-1]) if len(self) else -1
        return None if value < 0 else value

    def most(self, name: str) -> int | None:
        """The largest sample of a counter; None if never measured."""
        top = int(self.values[name].max(initial=-1))
        return None if top < 0 else top


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTime:
    """CPU time and memory of one process until its last sample, or of all processes of a run. None: not measured."""

    process: int | None
    """Its number; None for all together."""
    real_s: float
    """From the launch to its last sample; of all together, to the end of the run."""
    user_s: float | None
    system_s: float | None
    children_s: float | None
    """User and system time of ended child processes, such as data-loading workers; not included elsewhere."""
    cores: float | None
    """Busy cores on average: (user + system) ÷ real."""
    main_s: float | None
    """User and system time of the main thread."""
    comm_s: float | None
    """User and system time of the communication threads."""
    comm_share: float | None
    """comm ÷ (user + system)."""
    run_queue_wait_s: float | None
    """Time that threads were runnable without a core, summed over threads."""
    main_run_queue_wait_s: float | None
    voluntary_switches_per_s: float | None
    involuntary_switches_per_s: float | None
    minor_faults: int | None
    major_faults: int | None
    peak_bytes: int | None
    """Peak resident memory; for all processes, of the largest one."""
    anonymous_bytes: int | None
    """Largest sample of memory that is not file-backed; for all processes, the sum."""
    gpu_peak_bytes: int | None
    """Peak GPU memory; for all processes, of the largest one."""
    exposed_s: float | None = None
    """Exposed communication between the first and the last sample: the rank computed nothing."""
    exposed_on_core_s: float | None = None
    """Lower bound of the exposed time on a core, spinning or copying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnergy:
    """Energy of one host while a run was sampled, including other programs on it. None: not measured."""

    host: str
    sampled_s: float
    package_j: float | None
    """Processor packages."""
    memory_j: float | None
    """Memory, if it has a separate meter: not included in the packages."""
    gpu_j: float | None
    """All GPUs that this job can see."""
    gpu_use: float | None
    """Fraction of time in which they were busy, mean over samples and GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """Real, user and system time of a run, and further figures of its counters."""

    whole: CpuTime
    processes: tuple[CpuTime, ...]
    """In order of their numbers."""
    energy: tuple[HostEnergy, ...]
    """One for each machine; empty if no meter could be read."""
    sentence: str
    """Explains real, user and sys of this run."""
    problems: tuple[str, ...] = ()
    """Missing or truncated files, a sentence each."""
