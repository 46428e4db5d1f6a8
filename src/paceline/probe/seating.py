"""Whether every thread can have a core of its own, given which cores each process may use. Pure.

A seat for every thread is a matching of threads and cores. It is found thread by thread: one takes a free core, or one
whose holder can move to another (augmenting paths). Where one finds none, the processes that it would have had to move
are those that share too few cores, whatever other cores the machine has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def overloaded_processes(seats: Mapping[int, tuple[Iterable[int], int]]) -> frozenset[int]:
    """The processes that cannot have a core for each of their threads; empty where all can.

    `seats` has, for each process, the cores that it may use and its number of threads.
    """
    cores = {process: tuple(own) for process, (own, _) in seats.items()}
    holder: dict[int, int] = {}
    together: set[int] = set()
    for process, (_, threads) in seats.items():
        for _ in range(threads):
            visited: set[int] = set()
            if not _seated(process, cores, holder, visited):
                together |= {process} | {holder[core] for core in visited}
    return frozenset(together)


def _seated(process: int, cores: Mapping[int, tuple[int, ...]], holder: dict[int, int], visited: set[int]) -> bool:
    """Give a thread of a process a core, moving others where they can move; False where none is to be had."""
    came_from: dict[int, tuple[int, int | None]] = {}
    waiting: list[tuple[int, int | None]] = [(process, None)]
    while waiting:
        asker, given_up = waiting.pop()
        for core in cores[asker]:
            if core in visited:
                continue
            visited.add(core)
            came_from[core] = (asker, given_up)
            if core not in holder:
                _move_up(core, came_from, holder)
                return True
            waiting.append((holder[core], core))
    return False


def _move_up(core: int, came_from: Mapping[int, tuple[int, int | None]], holder: dict[int, int]) -> None:
    """Let everyone on the way to a free core take the next one."""
    at: int | None = core
    while at is not None:
        taker, given_up = came_from[at]
        holder[at] = taker
        at = given_up
