"""Real, user and system time of the processes of a run.

    cpu             user + system time, of all threads of a process
    cores           cpu ÷ real: mean number of busy cores
    a main thread   real  =  on a core  +  ready without a core (run queue)  +  blocked, or not started yet
    other threads   cpu − main thread: threads that compute, move messages, record

User time exceeds real time if threads or ranks run in parallel, and is below it if they are blocked.

A rank waits for exposed communication (analyze/run/run_timeline.py) either blocked, without CPU time, or on a core,
spinning or copying. The time of a main thread off its core between two samples is known; exposed time beyond it was on
a core:

    exposed_on_core  ≥  Σ over samples of  max(0, exposed − (time between the samples − main thread's CPU time))

Assumes: counters and timelines use one clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from paceline.analyze.run.cpu_sentence import sentence
from paceline.analyze.run.run_timeline import TimeLine
from paceline.records.counters import CpuTime, CpuTimes, HostEnergy, RankCounters
from paceline.units import seconds

_J_PER_UJ = 1e-6


def cpu_times(
    counters: Sequence[RankCounters],
    *,
    ranks: int,
    started_at_ns: int,
    ended_at_ns: int,
    lines: Sequence[TimeLine] = (),
) -> CpuTimes | None:
    """CPU times of a run from the counters of its processes; None without counters.

    `lines` are the known timelines of ranks, for the time of exposed communication.
    """
    sampled = [each for each in counters if len(each)]
    if not sampled:
        return None
    by_rank = {line.rank: line for line in lines}
    processes = tuple(_process(each, started_at_ns, by_rank.get(each.rank)) for each in sampled)
    whole = _whole(processes, ranks, seconds(max(0, ended_at_ns - started_at_ns)))
    threads = {each.threads for each in sampled if each.rank < ranks}
    return CpuTimes(
        whole=whole,
        processes=processes,
        energy=_energy(sampled),
        sentence=sentence(
            whole,
            ranks=sum(each.rank < ranks for each in sampled),
            others=sum(each.rank >= ranks for each in sampled),
            threads=threads.pop() if len(threads) == 1 else None,
        ),
        problems=_problems(counters, ranks),
    )


def _process(counters: RankCounters, started_at_ns: int, line: TimeLine | None) -> CpuTime:
    """CPU times of one process up to its last sample."""
    real_s = seconds(max(0, int(counters.at_ns[-1]) - started_at_ns))

    def time_s(*names: str) -> float | None:
        found = [counters.last(name) for name in names]
        return None if None in found else seconds(sum(ns or 0 for ns in found))

    def per_s(name: str) -> float | None:
        count = counters.last(name)
        return None if count is None or real_s <= 0 else count / real_s

    cpu_s, comm_s = time_s("user_ns", "system_ns"), time_s("comm_user_ns", "comm_system_ns")
    exposed_s, on_core_s = _exposed(counters, line)
    return CpuTime(
        process=counters.rank,
        real_s=real_s,
        user_s=time_s("user_ns"),
        system_s=time_s("system_ns"),
        children_s=time_s("children_user_ns", "children_system_ns"),
        cores=_ratio(cpu_s, real_s),
        main_s=time_s("main_cpu_ns"),
        comm_s=comm_s,
        comm_share=_ratio(comm_s, cpu_s),
        run_queue_wait_s=time_s("run_queue_wait_ns"),
        main_run_queue_wait_s=time_s("main_run_queue_wait_ns"),
        voluntary_switches_per_s=per_s("voluntary_switches"),
        involuntary_switches_per_s=per_s("involuntary_switches"),
        minor_faults=counters.last("minor_faults"),
        major_faults=counters.last("major_faults"),
        peak_bytes=counters.most("peak_bytes"),
        anonymous_bytes=counters.most("anonymous_bytes"),
        gpu_peak_bytes=counters.most("gpu_peak_bytes"),
        exposed_s=exposed_s,
        exposed_on_core_s=on_core_s,
    )


def _whole(processes: Sequence[CpuTime], ranks: int, real_s: float) -> CpuTime:
    """All processes: sums, and for peak memory the maximum."""
    # Servers have no timeline.
    training = [process for process in processes if process.process is not None and process.process < ranks]

    def each(name: str, of: Sequence[CpuTime] = processes) -> list[float | None]:
        return [getattr(process, name) for process in of]

    def total(name: str) -> float | None:
        return _of_known(sum, each(name))

    def whole_number(name: str, together: Callable[[Iterable[float]], float] = max) -> int | None:
        found = _of_known(together, each(name))
        return None if found is None else int(found)

    user_s, system_s, comm_s = total("user_s"), total("system_s"), total("comm_s")
    cpu_s = None if user_s is None or system_s is None else user_s + system_s
    return CpuTime(
        process=None,
        real_s=real_s,
        user_s=user_s,
        system_s=system_s,
        children_s=total("children_s"),
        cores=_ratio(cpu_s, real_s),
        main_s=total("main_s"),
        comm_s=comm_s,
        comm_share=_ratio(comm_s, cpu_s),
        run_queue_wait_s=total("run_queue_wait_s"),
        main_run_queue_wait_s=total("main_run_queue_wait_s"),
        voluntary_switches_per_s=total("voluntary_switches_per_s"),
        involuntary_switches_per_s=total("involuntary_switches_per_s"),
        minor_faults=whole_number("minor_faults", sum),
        major_faults=whole_number("major_faults", sum),
        peak_bytes=whole_number("peak_bytes"),
        anonymous_bytes=whole_number("anonymous_bytes", sum),
        gpu_peak_bytes=whole_number("gpu_peak_bytes"),
        exposed_s=_of_known(sum, each("exposed_s", training)),
        exposed_on_core_s=_of_known(sum, each("exposed_on_core_s", training)),
    )


def _exposed(counters: RankCounters, line: TimeLine | None) -> tuple[float | None, float | None]:
    """Seconds of exposed communication between the first and the last sample, and a lower bound of those on a core."""
    if line is None or not len(line.start_ns):
        return None, None
    began_ns = int(line.start_ns[0])
    bounds = np.append(line.start_ns, line.start_ns[-1] + line.length_ns[-1]) - began_ns
    exposed_until = np.append(0, np.cumsum(line.length_ns * line.exposed))
    # A timeline has no gaps: within a segment exposed time grows linearly or not at all.
    exposed = np.diff(np.interp(counters.at_ns - began_ns, bounds, exposed_until))
    total_s = seconds(float(exposed.sum()))
    main = counters.values["main_cpu_ns"]
    if len(main) < 2 or np.any(main < 0):
        return total_s, None
    off_core = np.maximum(np.diff(counters.at_ns) - np.diff(main), 0)
    return total_s, seconds(float(np.maximum(exposed - off_core, 0).sum()))


def _energy(counters: Sequence[RankCounters]) -> tuple[HostEnergy, ...]:
    """Energy of each machine. Hosts that are namespaces of one machine read the same meters: the first counts."""
    found: dict[str, HostEnergy] = {}
    for each in counters:
        drawn_j = {name: each.last(name) for name in ("package_uj", "memory_uj", "gpu_uj")}
        percent = each.values["gpu_use_percent"]
        used = percent[percent >= 0]
        if not len(used) and all(value is None for value in drawn_j.values()):
            continue
        in_j = {name: None if uj is None else uj * _J_PER_UJ for name, uj in drawn_j.items()}
        host = HostEnergy(
            host=each.host,
            sampled_s=seconds(int(each.at_ns[-1] - each.at_ns[0])),
            package_j=in_j["package_uj"],
            memory_j=in_j["memory_uj"],
            gpu_j=in_j["gpu_uj"],
            gpu_use=float(used.mean()) / 100 if len(used) else None,
        )
        found.setdefault(each.machine or each.host or f"process {each.rank}", host)
    return tuple(found.values())


def _problems(counters: Sequence[RankCounters], ranks: int) -> tuple[str, ...]:
    problems = []
    missing = sorted(set(range(ranks)) - {each.rank for each in counters})
    if missing:
        problems.append(f"There are no counters of rank {', '.join(map(str, missing))}.")
    for each in counters:
        if not len(each):
            problems.append(f"The counters of process {each.rank} cannot be read, or contain no sample.")
        elif each.truncated:
            problems.append(f"The counters of process {each.rank} are truncated: later samples are missing.")
    return tuple(problems)


def _of_known(together: Callable[[Iterable[float]], float], values: Sequence[float | None]) -> float | None:
    """Sum or maximum of the values; None if one of them is unknown."""
    known = [value for value in values if value is not None]
    return together(known) if known and len(known) == len(values) else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole
