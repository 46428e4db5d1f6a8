"""Hosts that no longer answer: found by asking the keepers, when ranks of several hosts fail or hang.

    launcher ── ranks/question ──▶ every keeper: is my link up? can I reach rank 0's host?
        ◀────── ranks/rank-0004.answer ──┘

When a link is cut, every rank waits in the same collective, or blames whichever peer it talked to last. What tells
the hosts apart is who answers, and who reaches whom.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from paceline.errors import RankError, StorageError
from paceline.launch.supervise import LiveRank
from paceline.records.codec import read_record, write_record
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest, Meeting
from paceline.units import counted

REACH_S = 3.0
"""How long a keeper tries to reach another host."""
ANSWER_S = 12.0
"""How long answers may take: reaching, two looks, and what a network file system holds back."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """What a keeper says about the network of its host."""

    SCHEMA = "paceline.answer/1"

    host: str
    up: bool
    """Whether the interface between the hosts has an address and a carrier."""
    reaches: bool
    """Whether rank 0's host answers over it: refusing a connection is an answer."""


def question_file(folder: RunFolder) -> Path:
    """The file that asks."""
    return folder.ranks / "question"


def answer_file(folder: RunFolder, rank: int) -> Path:
    return folder.ranks / f"rank-{rank:04d}.answer"


def write_answer(folder: RunFolder, manifest: Manifest, rank: int, host: str) -> None:
    """The keeper's side: look, and say."""
    up = _is_up(manifest.launch.interface)
    said = HostAnswer(host=host, up=up, reaches=up and _reaches(folder))
    with contextlib.suppress(StorageError):
        write_record(answer_file(folder, rank), said)


def unreachable_hosts_error(
    ranks: Sequence[LiveRank],
    folder: RunFolder,
    error: RankError,
    *,
    answer_s: float = ANSWER_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> RankError | None:
    """The error that names the hosts that were lost; None where all of them answer, or there is only one."""
    by_host: dict[str, list[int]] = {}
    for rank in ranks:
        by_host.setdefault(rank.host, []).append(rank.number)
    if len(by_host) < 2:
        return None
    with contextlib.suppress(OSError):
        question_file(folder).touch()
    deadline = clock() + answer_s
    while True:
        answers = {host: _said_by(numbers, folder, host) for host, numbers in by_host.items()}
        if all(answers.values()) or clock() > deadline:
            break
        sleep(_LOOK_S)
    lost = unreachable_hosts(answers)
    return _error({host: by_host[host] for host in lost}, answers, len(ranks), error) if lost else None


def _said_by(numbers: Sequence[int], folder: RunFolder, host: str) -> HostAnswer | None:
    """The answer of any keeper of a host. One whose ranks have all ended, and were seen to, is not asked any more."""
    said = next((said for rank in numbers if (said := _read(answer_file(folder, rank)))), None)
    if said is None and all(folder.rank_end(rank).exists() for rank in numbers):
        return HostAnswer(host=host, up=True, reaches=True)
    return said


def unreachable_hosts(answers: Mapping[str, HostAnswer | None]) -> tuple[str, ...]:
    """The hosts that were lost, given what each said; the first is rank 0's.

    Where no other host reaches the first and all of them say that their links are up, it is the first that is cut
    off. With two hosts that cannot be told apart: both are named.
    """
    silent = tuple(host for host, said in answers.items() if said is None or not said.up)
    if silent:
        return silent if len(silent) < len(answers) else ()  # what ended all of them is something else
    first, *others = answers
    cut = tuple(host for host in others if not _reaches_first(answers[host]))
    if cut and len(cut) == len(others):
        return (first,) if len(others) > 1 else (first, *cut)
    return cut


def _reaches_first(said: HostAnswer | None) -> bool:
    return said is not None and said.reaches


def _error(
    lost: Mapping[str, Sequence[int]], answers: Mapping[str, HostAnswer | None], size: int, error: RankError
) -> RankError:
    numbers = [number for numbers in lost.values() for number in numbers]
    named = f"{'ranks' if len(numbers) > 1 else 'rank'} {_listed(numbers)} of {size}"
    if len(lost) == len(answers) == 2 and all(answers.values()):
        what = f"Hosts {_listed(lost)} no longer reach each other: {named} are cut off."
    else:
        host_text = (
            f"Host {_listed(lost)} no longer answers" if len(lost) == 1 else f"Hosts {_listed(lost)} no longer answer"
        )
        what = f"{host_text}: {named} {'were' if len(numbers) > 1 else 'was'} there."
    details = [f"{host}: {_said(answers[host])}" for host in lost]
    return RankError(
        "\n  ".join([what, *details]),
        right=f"{counted(len(answers) - len(lost), 'host')} of {len(answers)} still answered. What the ranks had to "
        f"say: {error.what.splitlines()[0]}",
        next="Look at that host and its network; the same command takes the study up where it was.",
    )


def _said(said: HostAnswer | None) -> str:
    if said is None:
        return "its keeper does not answer"
    if not said.up:
        return "its network interface is down"
    return "it cannot reach rank 0's host" if not said.reaches else "no other host reaches it"


def _listed(things: Iterable[object]) -> str:
    """'4', '4 and 5', '4, 5 and 6'."""
    *most, last = map(str, things)
    return f"{', '.join(most)} and {last}" if most else last


def _is_up(interface: str) -> bool:
    stats, addresses = psutil.net_if_stats().get(interface), psutil.net_if_addrs().get(interface, ())
    return stats is not None and stats.isup and any(address.family == socket.AF_INET for address in addresses)


def _reaches(folder: RunFolder) -> bool:
    """Whether the host at which the ranks meet answers, be it with a refusal."""
    try:
        place = read_record(folder.meeting, Meeting)
        socket.create_connection((place.address, place.port), timeout=REACH_S).close()
    except ConnectionRefusedError:
        return True
    except StorageError:
        return True  # no rank has said where they meet: nothing to reach
    except OSError:
        return False
    return True


def _read(path: Path) -> HostAnswer | None:
    with contextlib.suppress(StorageError):
        return read_record(path, HostAnswer) if path.exists() else None
    return None
