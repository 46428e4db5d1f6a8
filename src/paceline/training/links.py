"""Latency and bandwidth between pairs of ranks, measured before the first step.

    echo     8 bytes, there and back                   half the median round trip                     ──▶ latency
    stream   large messages in sequence                size ÷ median time between arrivals            ──▶ bandwidth

Pairs are two ranks of each host, and the first ranks of neighbouring hosts; one pair is measured at a time. Sizes grow
by 4 as time allows. The first message of a stream is not timed: shapers and switches pass 256 kB and more above their
rate. Bandwidth is of the payload: on Ethernet with frames of 1,500 bytes, headers take 5 % of the line rate.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from paceline.records.allocation import Link, ProcessFacts
from paceline.units import seconds

TARGET_S = 0.5
"""Time for all links, if they are fast."""
LIMIT_S = 3.0
"""Approximate limit for all links, if they are slow."""
MAX_PAIRS = 8
"""Pairs inside hosts, and as many between hosts."""
ECHO_BYTES = 8
SMALLEST, BEYOND_BURSTS, LARGEST = 1 << 16, 1 << 20, 1 << 22
"""Bytes of the messages of a stream; messages below the second value may be part of a burst."""
_ECHOES, _REPEATS = (5, 50), (3, 10)
"""Minimum and maximum."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ranks between which a link is measured."""

    source: int
    target: int
    kind: str
    """inside or between."""


def pairs(ranks: Sequence[ProcessFacts]) -> tuple[Pair, ...]:
    """Pairs to measure: inside every host with two processes, and from each host to the next."""
    hosts: dict[tuple[str, str, str], list[int]] = {}
    for facts in ranks:
        hosts.setdefault((facts.machine, facts.node, facts.host), []).append(facts.rank)
    members = list(hosts.values())
    inside = [Pair(own[0], own[1], "inside") for own in members if len(own) > 1]
    between = [Pair(own[0], other[0], "between") for own, other in itertools.pairwise(members)]
    return (*inside[:MAX_PAIRS], *between[:MAX_PAIRS])


def measured_links(todo: Sequence[Pair], ranks: Sequence[ProcessFacts], rank: int) -> list[Link]:
    """Links with this rank as source. A collective call with equal pairs; only sources use `ranks`."""
    found = []
    for pair in todo:
        dist.all_reduce(torch.zeros(1))  # one pair at a time; a barrier would start NCCL where there are GPUs
        if rank == pair.source:
            source, target = ranks[pair.source], ranks[pair.target]
            found.append(LinkSource(pair.target, TARGET_S / len(todo), LIMIT_S / len(todo)).link(pair, source, target))
        elif rank == pair.target:
            serve_link(pair.source)
    return found


class LinkSource:
    """The side of a link that chooses messages and decides when to stop."""

    def __init__(
        self, target: int, target_s: float, limit_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._target = target
        self._target_s = target_s
        self._limit_s = limit_s
        self._clock = clock
        self._began = clock()

    def link(self, pair: Pair, source: ProcessFacts, target: ProcessFacts) -> Link:
        """The measured link; ends the other side."""
        self._echo(3)  # the first message opens the connection
        latencies = self._echo(_clamped(_ECHOES, 0.1 * self._target_s / (2 * max(self._echo(3)))))
        sizes, times = self._streams()
        self._ask(0, 0, 0)
        latency, rate = _quartiles(latencies), [sizes[-1] / value for value in _quartiles(times[-1])]
        return Link(
            source=pair.source,
            target=pair.target,
            source_host=source.place,
            target_host=target.place,
            kind=pair.kind,
            latency_s=latency[1],
            latency_low_s=latency[0],
            latency_high_s=latency[2],
            bandwidth=rate[1],
            bandwidth_low=rate[2],
            bandwidth_high=rate[0],
            sizes=tuple(sizes),
            times_s=tuple(statistics.median(own) for own in times),
            repeats=len(times[-1]),
        )

    def _streams(self) -> tuple[list[int], list[list[float]]]:
        """Message sizes in bytes, and times of each in seconds; several times for the last size."""
        sizes, times = [SMALLEST], [self._stream(SMALLEST, 1)]
        while sizes[-1] < LARGEST:
            larger, expected_s = 4 * sizes[-1], 4 * times[-1][0]
            allowed_s = self._limit_s if larger <= BEYOND_BURSTS else self._target_s
            if self._took_s() + (2 + _REPEATS[0]) * expected_s > allowed_s:
                break
            sizes.append(larger)
            times.append(self._stream(larger, 1))
        spare_s = self._target_s - self._took_s()
        times[-1] = self._stream(sizes[-1], _clamped(_REPEATS, spare_s / times[-1][0]))
        return sizes, times

    def _echo(self, count: int) -> list[float]:
        """One-way times of echo messages, in seconds."""
        self._ask(ECHO_BYTES, count, 1)
        message, halves = torch.zeros(ECHO_BYTES, dtype=torch.uint8), []
        for _ in range(count):
            began_ns = time.perf_counter_ns()
            dist.send(message, self._target)
            dist.recv(message, self._target)
            halves.append(seconds(time.perf_counter_ns() - began_ns) / 2)
        return halves

    def _stream(self, size: int, count: int) -> list[float]:
        """Seconds between arrivals of messages sent in sequence."""
        self._ask(size, count, 0)
        message = torch.zeros(size, dtype=torch.uint8)
        for _ in range(count + 1):
            dist.send(message, self._target)
        arrivals_ns = torch.zeros(count + 1, dtype=torch.int64)
        dist.recv(arrivals_ns, self._target)
        return [seconds(max(1, gap)) for gap in arrivals_ns.diff().tolist()]

    def _ask(self, size: int, count: int, echo: int) -> None:
        dist.send(torch.tensor([size, count, echo]), self._target)

    def _took_s(self) -> float:
        return self._clock() - self._began


def serve_link(source: int) -> None:
    """The other side of a link: answers requests until the source ends it."""
    while True:
        request = torch.zeros(3, dtype=torch.int64)
        dist.recv(request, source)
        size, count, echo = request.tolist()
        if not size:
            return
        message = torch.zeros(size, dtype=torch.uint8)
        arrivals_ns = []
        for _ in range(count if echo else count + 1):
            dist.recv(message, source)
            if echo:
                dist.send(message, source)
            arrivals_ns.append(time.perf_counter_ns())
        if not echo:
            dist.send(torch.tensor(arrivals_ns), source)


def _clamped(bounds: tuple[int, int], wanted: float) -> int:
    return min(max(int(wanted), bounds[0]), bounds[1])


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median, third quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high
