"""Counters: what the system counted for a rank, once a second; and what analysis makes of them.

`counters/rank-0003.arrows` is an Arrow IPC stream of `at_ns`, an instant on the host's monotonic clock, and of these,
all int64 and null where they were not measured. What counts up does so from the start of the process, unless it says
another beginning:

    user_ns, system_ns                          CPU time of all threads, those that have ended too
    children_user_ns, children_system_ns        the same of child processes that have ended
    main_cpu_ns                                 CPU time of the main thread
    comm_user_ns, comm_system_ns                CPU time of the threads that move messages, in steps of 10 ms each
    run_queue_wait_ns, main_run_queue_wait_ns   time that threads were ready to run and had no core: all, the main one
    num_threads                                 at this instant
    voluntary_switches, involuntary_switches    a thread waited for something; a thread was made to give way
    minor_faults, major_faults                  pages that had to be mapped; those of them that had to be read
    resident_bytes, anonymous_bytes             memory at this instant; that part of it which no file is behind
    peak_bytes                                  most that was ever resident
    gpu_memory_bytes, gpu_peak_bytes            what torch holds on the GPUs of this rank, at this instant and at most
    package_uj, memory_uj, gpu_uj               energy of the whole host since the first sample: processor packages,
                                                memory where it has a meter of its own, GPUs; read by the lowest rank
                                                of a host alone
    gpu_use_percent                             mean over the host's GPUs at this instant; likewise

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
"""One reading of some of COUNTERS; the rest was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCounters:
    """The samples of one process, as columns of equal length."""

    rank: int
    """Number of the process: those after the ranks are servers and a coordinator."""
    at_ns: np.ndarray
    values: Mapping[str, np.ndarray]
    """One column for each of COUNTERS; -1 where it was not measured."""
    truncated: bool = False
    """Whether the file broke off: what stands here is what was written before."""
    host: str = ""
    """Empty where not known."""
    machine: str = ""
    """Equal for hosts that are namespaces of one machine, and so share its meters; empty where not known."""
    threads: int | None = None
    """That it was told to compute with."""

    def __len__(self) -> int:
        return len(self.at_ns)

    def last(self, name: str) -> int | None:
        """What the last sample says of a counter; None where it does not: an earlier reading would be too small."""
        value = int(self.values[name][-1]) if len(self) else -1
        return None if value < 0 else value

    def most(self, name: str) -> int | None:
        """The largest reading; None where it was never measured."""
        top = int(self.values[name].max(initial=-1))
        return None if top < 0 else top


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTime:
    """What one process used until its last sample, or all processes of a run together. None: not measured."""

    process: int | None
    """Its number; None for all together."""
    real_s: float
    """From the launch to its last sample; of all together, to the end of the run."""
    user_s: float | None
    system_s: float | None
    children_s: float | None
    """User and system time of child processes that have ended, workers that load data for instance; not in the rest."""
    cores: float | None
    """Busy on average: (user + system) ÷ real."""
    main_s: float | None
    """User and system time of the main thread."""
    comm_s: float | None
    """The same of the threads that move messages."""
    comm_share: float | None
    """comm ÷ (user + system)."""
    run_queue_wait_s: float | None
    """Threads were ready to run and had no core, all added up."""
    main_run_queue_wait_s: float | None
    voluntary_switches_per_s: float | None
    involuntary_switches_per_s: float | None
    minor_faults: int | None
    major_faults: int | None
    peak_bytes: int | None
    """Most memory that was resident; of all together, that of the largest process."""
    anonymous_bytes: int | None
    """Most that no file is behind, as sampled; of all together, their sum."""
    gpu_peak_bytes: int | None
    """Likewise of the largest process."""
    exposed_s: float | None = None
    """Communication between the first and the last sample during which the rank computed nothing."""
    exposed_on_core_s: float | None = None
    """At least so much of that was on a core all the same, spinning or copying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnergy:
    """What one host drew while a run was sampled there, all that ran on it included. None: not measured."""

    host: str
    sampled_s: float
    package_j: float | None
    """Processor packages."""
    memory_j: float | None
    """Memory, where it has a meter of its own: not in the packages' figure."""
    gpu_j: float | None
    """All GPUs that this job can see."""
    gpu_use: float | None
    """Fraction of time in which they were busy, mean over samples and GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """Real, user and system time of a run, and what else its counters show."""

    whole: CpuTime
    processes: tuple[CpuTime, ...]
    """In order of their numbers."""
    energy: tuple[HostEnergy, ...]
    """One for each machine; empty where no meter could be read."""
    sentence: str
    """Explains real, user and sys of this run."""
    problems: tuple[str, ...] = ()
    """What is missing or broke off, a sentence each."""
