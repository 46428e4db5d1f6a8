"""Unreachable hosts, found by asking the rank wrappers when ranks of several hosts fail or hang.

    launcher ── ranks/question ──▶ every wrapper: is my link up? can I reach rank 0's host?
        ◀────── ranks/rank-0004.answer ──┘

When a link is cut, every rank waits in the same collective, or blames the peer that it talked to last. So the hosts are
judged by which of them answer, and which reach rank 0's host.
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
from paceline.launch.supervision import LiveRank
from paceline.records.run import Manifest, Rendezvous
from paceline.storage.codec import optional_record, read_record, write_record
from paceline.storage.folder import RunFolder
from paceline.units import counted

REACH_S = 3.0
"""How long a wrapper tries to reach another host."""
ANSWER_S = 12.0
"""How long answers may take: connecting, two polls, and the delay of a network file system."""
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """The network state of a host, from one of its wrappers."""

    SCHEMA = "paceline.answer/1"

    host: str
    up: bool
    """Whether the interface between the hosts has an address and a carrier."""
    reaches: bool
    """Whether rank 0's host answers over it: a refused connection is an answer."""


def question_file(folder: RunFolder) -> Path:
    """The file whose existence asks every wrapper for an answer."""
    return folder.ranks / "question"


def answer_file(folder: RunFolder, rank: int) -> Path:
    return folder.ranks / f"rank-{rank:04d}.answer"


def write_answer(folder: RunFolder, manifest: Manifest, rank: int, host: str) -> None:
    """Check the network of this host and write the answer of a wrapper."""
    up = _is_up(manifest.launch.interface)
    with contextlib.suppress(StorageError):
        write_record(answer_file(folder, rank), HostAnswer(host=host, up=up, reaches=up and _reaches(folder)))


def unreachable_hosts_error(
    ranks: Sequence[LiveRank],
    folder: RunFolder,
    error: RankError,
    *,
    answer_s: float = ANSWER_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> RankError | None:
    """The error that names the unreachable hosts; None if all hosts answer, or there is only one."""
    by_host: dict[str, list[int]] = {}
    for rank in ranks:
        by_host.setdefault(rank.host, []).append(rank.number)
    if len(by_host) < 2:
        return None
    with contextlib.suppress(OSError):
        question_file(folder).touch()
    deadline = clock() + answer_s
    while True:
        answers = {host: _answer(numbers, folder, host) for host, numbers in by_host.items()}
        if all(answers.values()) or clock() > deadline:
            break
        sleep(_POLL_S)
    found = unreachable_hosts(answers)
    return _error({host: by_host[host] for host in found}, answers, len(ranks), error) if found else None


def _answer(numbers: Sequence[int], folder: RunFolder, host: str) -> HostAnswer | None:
    """The answer of any wrapper of a host; a host whose ranks have all recorded their end counts as reachable."""
    answers = (optional_record(answer_file(folder, rank), HostAnswer) for rank in numbers)
    answer = next((answer for answer in answers if answer is not None), None)
    if answer is None and all(folder.rank_end(rank).exists() for rank in numbers):
        return HostAnswer(host=host, up=True, reaches=True)
    return answer


def unreachable_hosts(answers: Mapping[str, HostAnswer | None]) -> tuple[str, ...]:
    """The unreachable hosts, given the answer of each host; rank 0's host is the first of `answers`.

    Where all links are up and no other host reaches the first, the first one is cut off. With two hosts it is unknown
    which of them is, and both are named.
    """
    silent = tuple(host for host, answer in answers.items() if answer is None or not answer.up)
    if silent:
        return silent if len(silent) < len(answers) else ()  # the network does not explain the end of all hosts
    first, *others = answers
    cut = tuple(host for host in others if (answer := answers[host]) is None or not answer.reaches)
    if cut and len(cut) == len(others):
        return (first,) if len(others) > 1 else (first, *cut)
    return cut


def _error(
    found: Mapping[str, Sequence[int]], answers: Mapping[str, HostAnswer | None], size: int, error: RankError
) -> RankError:
    numbers = [number for numbers in found.values() for number in numbers]
    ranks = f"{'ranks' if len(numbers) > 1 else 'rank'} {_listed(numbers)} of {size}"
    if len(found) == len(answers) == 2 and all(answers.values()):
        what = f"Hosts {_listed(found)} no longer reach each other: {ranks} are cut off."
    else:
        hosts = f"Host {_listed(found)} no longer answers"
        if len(found) > 1:
            hosts = f"Hosts {_listed(found)} no longer answer"
        what = f"{hosts}: {ranks} {'were' if len(numbers) > 1 else 'was'} there."
    details = [f"{host}: {_answer_text(answers[host])}" for host in found]
    return RankError(
        "\n  ".join([what, *details]),
        right=f"{counted(len(answers) - len(found), 'host')} of {len(answers)} still answered. The ranks reported: "
        f"{error.what.splitlines()[0]}",
        next="Check that host and its network; the same command then continues the study.",
    )


def _answer_text(answer: HostAnswer | None) -> str:
    if answer is None:
        return "its rank wrapper does not answer"
    if not answer.up:
        return "its network interface is down"
    return "it cannot reach rank 0's host" if not answer.reaches else "no other host reaches it"


def _listed(things: Iterable[object]) -> str:
    """'4', '4 and 5', '4, 5 and 6'."""
    *most, last = map(str, things)
    return f"{', '.join(most)} and {last}" if most else last


def _is_up(interface: str) -> bool:
    stats, addresses = psutil.net_if_stats().get(interface), psutil.net_if_addrs().get(interface, ())
    return stats is not None and stats.isup and any(address.family == socket.AF_INET for address in addresses)


def _reaches(folder: RunFolder) -> bool:
    """Whether the host of the rendezvous answers; a refused connection is an answer."""
    try:
        place = read_record(folder.rendezvous, Rendezvous)
        socket.create_connection((place.address, place.port), timeout=REACH_S).close()
    except (ConnectionRefusedError, StorageError):
        return True  # StorageError: no rank has written the rendezvous, so there is nothing to reach
    except OSError:
        return False
    return True
