"""The checks of threads and cores: whether every thread of a run has a dedicated core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from paceline.host import usable_count
from paceline.preflight.checked_run import CheckedRun, cores_text, hosts_text, rank_numbers, subject
from paceline.records.allocation import Complaint, ProcessFacts
from paceline.units import counted


def threads_beyond_affinity(case: CheckedRun) -> Iterator[Complaint]:
    """Processes that may use fewer cores than they have threads."""
    narrow = [process for process in case.ranks if 0 < len(process.affinity) < process.threads]
    if narrow:
        worst = min(narrow, key=lambda process: len(process.affinity) / process.threads)
        yield Complaint(
            name="threads-beyond-affinity",
            severity="info" if case.manifest.oversubscribed else "fatal",
            what=f"{subject(narrow, 'has', 'have')} more threads than cores to run on: rank {worst.rank} on "
            f"{worst.place} has {counted(worst.threads, 'thread')} and may use only {cores_text(worst.affinity)}.",
            right="A core for every thread: otherwise the scheduling of the operating system is measured.",
            next="Request as many cores per process as run.threads from the launcher or the job, or lower run.threads.",
            ranks=rank_numbers(narrow),
        )


def more_threads_than_cores(case: CheckedRun) -> Iterator[Complaint]:
    """Machines with fewer cores than their processes have threads."""
    for everyone in case.machines.values():
        own = _busy(everyone)
        threads, cores = _threads(own), _usable(everyone)
        if threads > cores > 0:
            known = case.manifest.oversubscribed
            yield Complaint(
                name="more-threads-than-cores",
                severity="info" if known else "warning",
                what=f"{subject(own, 'has', 'have')} {counted(threads, 'thread')} on {hosts_text(own)}, which has "
                f"{counted(cores, 'core')}{'' if known else ': the placement did not expect that'}.",
                right="A core for every thread.",
                next="Use fewer ranks or threads per host, or exclude this point from claims about scaling.",
                ranks=rank_numbers(own),
            )


def shared_cores(case: CheckedRun) -> Iterator[Complaint]:
    """Processes that share cores although their machine has enough for all."""
    reported: set[int] = set()
    for own in case.hosts.values():
        yield from _shared(case, own, reported, "fatal" if case.manifest.point.pin else "warning")
    # Several emulated hosts on one machine were placed independently, as if each had the machine for itself.
    for own in case.machines.values():
        yield from _shared(case, own, reported, "warning")


def _shared(case: CheckedRun, own: Sequence[ProcessFacts], reported: set[int], severity: str) -> Iterator[Complaint]:
    own = _busy(own)
    if not own or _threads(own) > _usable(own):
        return  # reported as more threads than cores
    # A process with more threads than allowed cores is reported by its own check.
    demands = {process.rank: (process.affinity, min(process.threads, len(process.affinity))) for process in own}
    overloaded = [process for process in own if process.rank in overloaded_processes(demands) - reported]
    if not overloaded:
        return
    reported |= set(rank_numbers(overloaded))
    cores = sorted({core for process in overloaded for core in process.affinity})
    threads = sum(demands[process.rank][1] for process in overloaded)
    yield Complaint(
        name="ranks-share-cores",
        severity="info" if case.manifest.oversubscribed else severity,
        what=f"{subject(overloaded, 'shares', 'share')} {cores_text(cores)} of {hosts_text(overloaded)}, with "
        f"{counted(threads, 'thread')}, and that machine has {counted(own[0].cores, 'core')}.",
        right="Dedicated cores for every process.",
        next="Let Paceline place the ranks (no taskset around it, no binding by mpiexec or srun), or request more "
        "cores per process for the job. With run.pin=false the operating system places them.",
        ranks=rank_numbers(overloaded),
    )


def threads_not_as_asked(case: CheckedRun) -> Iterator[Complaint]:
    """Processes whose library uses another number of threads than run.threads."""
    other = [process for process in case.ranks if process.threads != process.threads_asked]
    if other:
        first = other[0]
        yield Complaint(
            name="threads-not-as-asked",
            severity="warning",
            what=f"{subject(other, 'uses another number', 'use other numbers')} of threads than requested: rank "
            f"{first.rank} has {first.threads} instead of {first.threads_asked}.",
            right="torch uses run.threads threads.",
            next="Find out what changes OMP_NUM_THREADS and similar variables after Paceline has set them.",
            ranks=rank_numbers(other),
        )


def _busy(own: Sequence[ProcessFacts]) -> list[ProcessFacts]:
    """Processes that keep a core busy: all but a coordinator, which waits."""
    return [process for process in own if process.role != "coordinator"]


def _threads(own: Sequence[ProcessFacts]) -> int:
    return sum(process.threads for process in own)


def _usable(own: Sequence[ProcessFacts]) -> int:
    """Cores of a machine that its processes can keep busy, under the largest of their quotas."""
    return max(usable_count(process.cores, process.cpu_quota) for process in own)


def overloaded_processes(demands: Mapping[int, tuple[Iterable[int], int]]) -> frozenset[int]:
    """The processes that cannot have a core for each of their threads; empty if all can.

    `demands` has the allowed cores and the number of threads of each process. An assignment of cores is a bipartite
    matching, found by augmenting paths: a thread takes a free core, or a core whose thread can move to another
    one. If there is no such path, the processes on the searched paths share too few cores.
    """
    cores = {process: tuple(own) for process, (own, _) in demands.items()}
    holder: dict[int, int] = {}
    overloaded: set[int] = set()
    for process, (_, threads) in demands.items():
        for _ in range(threads):
            visited: set[int] = set()
            if not _assign_core(process, cores, holder, visited):
                overloaded |= {process} | {holder[core] for core in visited}
    return frozenset(overloaded)


def _assign_core(process: int, cores: Mapping[int, tuple[int, ...]], holder: dict[int, int], visited: set[int]) -> bool:
    """Give a thread of a process a core, moving others where possible; False if no core can be freed."""
    path: dict[int, tuple[int, int | None]] = {}
    waiting: list[tuple[int, int | None]] = [(process, None)]
    while waiting:
        taker, released = waiting.pop()
        for core in cores[taker]:
            if core in visited:
                continue
            visited.add(core)
            path[core] = (taker, released)
            if core not in holder:
                at: int | None = core
                while at is not None:  # everyone on the path takes the next core
                    holder[at], at = path[at]
                return True
            waiting.append((holder[core], core))
    return False
