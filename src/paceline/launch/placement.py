"""The policy behind `Placement`: which rank gets which cores, and how many ranks fit into memory.

Ranks get cores of their own if there are enough: distinct physical cores first. Hyper-threads of the same core
are used only after that, side by side for the threads of one rank.

    2 ranks × 1 thread, 2 physical cores of 2 hyper-threads (0 2 | 1 3)     rank 0: 0      rank 1: 1
    2 ranks × 2 threads, the same machine                                   rank 0: 0 2    rank 1: 1 3

"More threads than cores" counts the logical cores that the process may use, limited by a CPU quota: up to there no two
threads share one. The text says where hyper-threads share a core. Servers get cores as ranks do; a coordinator hardly
computes and is not pinned.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from paceline import host
from paceline.errors import RequestError
from paceline.launch import machine
from paceline.launch.launcher import Placement
from paceline.launch.machine import Processor, usable_count
from paceline.records import process_roles
from paceline.records.study import Point
from paceline.units import bytes_text, counted

RANK_BYTES = 300_000_000
"""Memory of a rank before its model and data: Python, torch and their libraries."""


def placement_here(point: Point, processes: range) -> Placement:
    """The placement of those processes of a point that run on this host."""
    return placement_of(
        point,
        processes,
        processors=machine.processors(),
        quota=machine.cgroup_limits().cpus,
        can_pin=host.can_pin(),
    )


def placement_of(
    point: Point, processes: range, *, processors: Sequence[Processor], quota: float | None, can_pin: bool
) -> Placement:
    """The placement of those processes of a point that run on one host, by the threads of their roles or run.cores.

    Ranks with fewer cores than threads (run.cores) are oversubscribed.
    """
    found = placement(
        sum(point.role(process) == "rank" for process in processes),
        [process_roles.cores(point, process) for process in processes],
        pin=point.pin,
        processors=processors,
        quota=quota,
        can_pin=can_pin,
        unit="thread" if point.cores is None else "core",
    )
    narrow = point.cores is not None and point.cores < point.threads
    return replace(found, oversubscribed=True) if narrow else found


def placement(
    ranks: int,
    threads: int | Sequence[int],
    *,
    pin: bool,
    processors: Sequence[Processor],
    quota: float | None,
    can_pin: bool,
    unit: str = "thread",
) -> Placement:
    """The placement of `ranks` with `threads` each, given the logical cores in order of preference.

    `threads` may list every process: those after the ranks are servers, or a coordinator if the number is 0.
    `unit` names what is counted: threads that get a core each, or cores.
    """
    each = (threads,) * ranks if isinstance(threads, int) else tuple(threads)
    wanted = sum(each)
    usable = usable_count(len(processors), quota)
    text = f"{_processes(ranks, each, unit)} on {_machine_text(processors, usable, quota)}"
    if wanted > usable:
        why = "more threads than cores" if unit == "thread" else "more cores than there are"
        return Placement(cores=None, text=f"{text}: not pinned, {why}", oversubscribed=True)
    reason = None
    if not pin:
        reason = "pinning is off"
    elif not can_pin:
        reason = "not pinned, this operating system cannot keep a process to a core"
    elif usable < len(processors):
        # Other containers of the machine have a quota too, and would choose the same first cores.
        reason = "not pinned, a CPU quota says how much but not where"
    if reason:
        return Placement(cores=None, text=f"{text}: {reason}", oversubscribed=False)
    chosen = sorted(processors[:wanted], key=lambda p: (p.package, p.core, p.number))
    ends = tuple(itertools.accumulate(each))
    parts = [chosen[end - own : end] if own else processors for own, end in zip(each, ends, strict=True)]
    cores = tuple(tuple(p.number for p in part) for part in parts)
    shared = len({p.core for p in chosen}) < wanted
    ending = " (hyper-threads share cores)" if shared else ""
    return Placement(cores=cores, text=f"{text}: {_places(ranks, each, cores)}{ending}", oversubscribed=False)


def scheduler_placement(point: Point, scheduler: str, partition: str = "") -> Placement:
    """The placement of a point whose hosts and cores a scheduler chooses: it gives no core to two ranks."""
    processes = f"{counted(point.processes, 'rank')} × {counted(point.threads, 'thread')}"
    where = f"{counted(point.hosts, 'host')}{f' of partition {partition}' if partition else ''}"
    return Placement(cores=None, text=f"{processes} on {where}: {scheduler} places them", oversubscribed=False)


def check_memory(ranks: int, memory_bytes: int) -> None:
    """Raise RequestError if the machine's memory is too small for so many ranks, even without model and data."""
    if ranks * RANK_BYTES > memory_bytes:
        room = memory_bytes // RANK_BYTES
        raise RequestError(
            f"{counted(ranks, 'rank')} need at least {bytes_text(ranks * RANK_BYTES)} of memory, and this machine "
            f"has {bytes_text(memory_bytes)}.",
            right=f"A rank takes {bytes_text(RANK_BYTES)} before its model and data: at most {room} fit.",
            next="Use fewer ranks: --ranks, or run.ranks in the study file.",
        )


def _machine_text(processors: Sequence[Processor], usable: int, quota: float | None) -> str:
    """'2 cores', '4 hyper-threads of 2 cores', '1 core (a quota of 1.5 out of 8)'."""
    physical = len({p.core for p in processors})
    if quota is not None and usable < len(processors):
        return f"{counted(usable, 'core')} (a CPU quota of {quota:g} out of {len(processors)})"
    if physical < len(processors):
        return f"{len(processors)} hyper-threads of {counted(physical, 'core')}"
    return counted(usable, "core")


def _processes(ranks: int, each: tuple[int, ...], unit: str) -> str:
    """'2 ranks × 1 thread', '2 ranks × 1 thread and 1 server × 2 threads'."""
    kinds = (("rank", each[:ranks]), ("server", tuple(own for own in each[ranks:] if own)))
    shown = [f"{counted(len(own), kind)} × {counted(own[0], unit)}" for kind, own in kinds if own]
    return " and ".join(shown) or "1 coordinator"


def _places(ranks: int, each: tuple[int, ...], cores: tuple[tuple[int, ...], ...]) -> str:
    """'rank 0 on core 0, rank 1 on core 1'; shortened if there are many."""
    words = [
        f"{f'rank {process}' if process < ranks else f'server {process - ranks}'} on core"
        f"{'s' if len(own) > 1 else ''} {_ranges(own)}"
        for process, own in enumerate(cores)
        if each[process]
    ]
    return ", ".join(words if len(words) <= 4 else (*words[:2], "…", words[-1]))


def _ranges(numbers: tuple[int, ...]) -> str:
    """'0-3' for neighbours, '0+2' otherwise."""
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return "+".join(map(str, numbers))
