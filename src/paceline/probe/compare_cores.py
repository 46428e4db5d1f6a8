"""Whether every thread of a run has a core of its own: the checks on threads, affinity and cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.host import usable_count
from paceline.probe.case import CheckedRun, cores_text, hosts_text, rank_numbers, subject
from paceline.probe.seating import overloaded_processes
from paceline.records.given import Complaint, Given
from paceline.units import counted


def threads_beyond_affinity(case: CheckedRun) -> Iterator[Complaint]:
    """Processes that may use fewer cores than they have threads."""
    narrow = [given for given in case.ranks if 0 < len(given.affinity) < given.threads]
    if narrow:
        worst = min(narrow, key=lambda given: len(given.affinity) / given.threads)
        yield Complaint(
            name="threads-beyond-affinity",
            severity="info" if case.manifest.oversubscribed else "fatal",
            what=f"{subject(narrow, 'has', 'have')} more threads than cores to run on: rank {worst.rank} on "
            f"{worst.place} has {counted(worst.threads, 'thread')} and may use {cores_text(worst.affinity)} alone.",
            right="A core for every thread: threads that take turns on one measure the operating system.",
            next="Ask the launcher or the job for as many cores per process as run.threads, or lower run.threads.",
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
                f"{counted(cores, 'core')}{'' if known else ': that was not known beforehand'}.",
                right="A core for every thread.",
                next="Ask for fewer ranks or threads per host, or leave this point out of any claim about scaling.",
                ranks=rank_numbers(own),
            )


def shared_cores(case: CheckedRun) -> Iterator[Complaint]:
    """Processes that were put onto the same cores though their machine has enough for all."""
    told: set[int] = set()
    for own in case.hosts.values():
        yield from _shared(case, own, told, "fatal" if case.manifest.point.pin else "warning")
    # Each of several hosts on one machine was filled as if it had the machine for itself: what emulation costs.
    for own in case.machines.values():
        yield from _shared(case, own, told, "warning")


def _shared(case: CheckedRun, own: Sequence[Given], told: set[int], severity: str) -> Iterator[Complaint]:
    own = _busy(own)
    if not own or _threads(own) > _usable(own):
        return  # told as more threads than cores
    # A process that is too narrow for its own threads is told of as such.
    seats = {given.rank: (given.affinity, min(given.threads, len(given.affinity))) for given in own}
    pressed = [given for given in own if given.rank in overloaded_processes(seats) - told]
    if not pressed:
        return
    told |= set(rank_numbers(pressed))
    cores = sorted({core for given in pressed for core in given.affinity})
    threads = sum(seats[given.rank][1] for given in pressed)
    yield Complaint(
        name="ranks-share-cores",
        severity="info" if case.manifest.oversubscribed else severity,
        what=f"{subject(pressed, 'was', 'were')} put onto {cores_text(cores)} of {hosts_text(pressed)} together, with "
        f"{counted(threads, 'thread')}, and that machine has {counted(own[0].cores, 'core')}.",
        right="Cores of its own for every process.",
        next="Let Paceline place the ranks (no taskset around it, no binding by mpiexec or srun), or ask the job for "
        "more cores per process. run.pin=false leaves it to the operating system.",
        ranks=rank_numbers(pressed),
    )


def threads_not_as_asked(case: CheckedRun) -> Iterator[Complaint]:
    """Processes whose library took another number of threads."""
    other = [given for given in case.ranks if given.threads != given.threads_asked]
    if other:
        first = other[0]
        yield Complaint(
            name="threads-not-as-asked",
            severity="warning",
            what=f"{subject(other, 'took another number', 'took other numbers')} of threads than asked for: rank "
            f"{first.rank} has {first.threads} where {first.threads_asked} were asked for.",
            right="torch uses as many threads as run.threads says.",
            next="Look for what sets OMP_NUM_THREADS and the like after Paceline has set them.",
            ranks=rank_numbers(other),
        )


def _busy(own: Sequence[Given]) -> list[Given]:
    """Processes that keep a core busy: a coordinator waits."""
    return [given for given in own if given.role != "coordinator"]


def _threads(own: Sequence[Given]) -> int:
    return sum(given.threads for given in own)


def _usable(own: Sequence[Given]) -> int:
    """Cores of a machine that its processes can keep busy, under the widest of their quotas."""
    return max(usable_count(given.cores, given.cpu_quota) for given in own)
