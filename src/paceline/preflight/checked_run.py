"""The input of the allocation checks, and the words for processes, hosts and cores in their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from paceline.records.allocation import Clock, ProcessFacts
from paceline.records.run import Manifest

Key = TypeVar("Key")

_MANY = 4


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """The request of a run, and the process facts of all its processes."""

    manifest: Manifest
    ranks: Sequence[ProcessFacts]
    clocks: Sequence[Clock]

    @property
    def hosts(self) -> Mapping[tuple[str, str, str], list[ProcessFacts]]:
        """Processes by host, in order of the first process; hosts of one name differ in their kernel."""
        return grouped(self.ranks, lambda process: (process.machine, process.node, process.host))

    @property
    def machines(self) -> Mapping[str, list[ProcessFacts]]:
        """Processes by machine: namespaces and containers of one machine share its cores."""
        return grouped(self.ranks, lambda process: process.machine)


def grouped(ranks: Iterable[ProcessFacts], key: Callable[[ProcessFacts], Key]) -> dict[Key, list[ProcessFacts]]:
    """Processes by key, in order of the first process."""
    groups: dict[Key, list[ProcessFacts]] = {}
    for process in ranks:
        groups.setdefault(key(process), []).append(process)
    return groups


def rank_numbers(ranks: Iterable[ProcessFacts]) -> tuple[int, ...]:
    return tuple(process.rank for process in ranks)


def ranks_text(ranks: Sequence[ProcessFacts]) -> str:
    """'rank 1', 'ranks 0 and 1', 'ranks 0, 1, 2, 3 and 12 more'."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {_listed([str(process.rank) for process in ranks])}"


def subject(ranks: Sequence[ProcessFacts], one: str, more: str) -> str:
    """The subject and verb of a sentence about processes: 'Rank 1 has', 'Ranks 0 and 1 have'."""
    return f"{ranks_text(ranks).capitalize()} {one if len(ranks) == 1 else more}"


def hosts_text(ranks: Iterable[ProcessFacts]) -> str:
    """The names of their hosts: 'h1', 'h1 and h2', 'h1, h2, h3, h4 and 12 more'."""
    return _listed(list(dict.fromkeys(process.place for process in ranks)))


def _listed(words: Sequence[str]) -> str:
    if len(words) > _MANY:
        return f"{', '.join(words[:_MANY])} and {len(words) - _MANY} more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def cores_text(cores: Sequence[int]) -> str:
    """'core 0', 'cores 0-3', 'cores 0, 2, 4'."""
    if len(cores) == 1:
        return f"core {cores[0]}"
    if tuple(cores) == tuple(range(cores[0], cores[-1] + 1)):
        return f"cores {cores[0]}-{cores[-1]}"
    shown = [*map(str, cores[:_MANY]), *(["…"] if len(cores) > _MANY else [])]
    return f"cores {', '.join(shown)}"


def processes_text(count: int) -> str:
    return "1 process" if count == 1 else f"{count:,} processes"


def spread_text(counts: Iterable[int]) -> str:
    """'2 + 1 + 1'."""
    return " + ".join(map(str, counts))
