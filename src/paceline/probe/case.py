"""What is compared, and the words for it: processes by host and by machine, names of ranks, cores and places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from paceline.records.given import Clock, Given
from paceline.records.run import Manifest

Key = TypeVar("Key")

_MANY = 4


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """What was asked for, and what all processes of a run were given."""

    manifest: Manifest
    ranks: Sequence[Given]
    clocks: Sequence[Clock]

    @property
    def hosts(self) -> Mapping[tuple[str, str, str], list[Given]]:
        """Processes by host, in order of their first; hosts that share a name differ in their kernel."""
        return grouped(self.ranks, lambda given: (given.machine, given.node, given.host))

    @property
    def machines(self) -> Mapping[str, list[Given]]:
        """Processes by machine: namespaces and containers of one share its cores."""
        return grouped(self.ranks, lambda given: given.machine)


def grouped(ranks: Iterable[Given], key: Callable[[Given], Key]) -> dict[Key, list[Given]]:
    """Processes by what they have in common, in order of their first."""
    groups: dict[Key, list[Given]] = {}
    for given in ranks:
        groups.setdefault(key(given), []).append(given)
    return groups


def rank_numbers(ranks: Iterable[Given]) -> tuple[int, ...]:
    return tuple(given.rank for given in ranks)


def ranks_text(ranks: Sequence[Given]) -> str:
    """'rank 1', 'ranks 0 and 1', 'ranks 0, 1, 2, 3 and 12 more'."""
    shown = [str(given.rank) for given in ranks]
    if len(shown) == 1:
        return f"rank {shown[0]}"
    if len(shown) > _MANY:
        return f"ranks {', '.join(shown[:_MANY])} and {len(shown) - _MANY} more"
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}"


def subject(ranks: Sequence[Given], one: str, more: str) -> str:
    """The beginning of a sentence about processes, with its verb: 'Rank 1 has', 'Ranks 0 and 1 have'."""
    words = ranks_text(ranks)
    return f"{words[0].upper()}{words[1:]} {one if len(ranks) == 1 else more}"


def hosts_text(ranks: Iterable[Given]) -> str:
    """The names of their hosts: 'h1', 'h1 and h2', 'h1, h2, h3, h4 and 12 more'."""
    names = list(dict.fromkeys(given.place for given in ranks))
    if len(names) == 1:
        return names[0]
    if len(names) > _MANY:
        return f"{', '.join(names[:_MANY])} and {len(names) - _MANY} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def cores_text(cores: Sequence[int]) -> str:
    """'core 0', 'cores 0-3', 'cores 0, 2 and 4'."""
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
