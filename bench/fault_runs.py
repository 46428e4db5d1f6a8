"""Puts faults into real runs and asks the traces what was slow.

    with FaultRuns(data, folder, hosts) as runs:
        found = runs.run(fault)          the causes found in that run, and the injected fault

Ranks live through all faults that need as many of them (bench/live.py). `hosts` gives the network namespaces for slow
links, when they are first needed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.fault_table import Fault
from bench.live import LiveRanks
from paceline.analyze.run.slow_causes import slow_causes
from paceline.records.slow_cause import SlowCause
from paceline.storage.folder import RunFolder
from paceline.storage.run_counters import read_counters
from paceline.storage.run_trace import read_run

if TYPE_CHECKING:
    from testbeds.net_hosts import NetHosts

PROGRAM = Path(__file__).with_name("fault_rank.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A fault, and what the traces said."""

    fault: Fault
    slow_causes: tuple[SlowCause, ...]
    held_up_s: float | None
    """How long the rank was held up on purpose, by its own clock; None where that is not a delay."""

    @property
    def place(self) -> int | None:
        """Position of the fault among the causes, from 1 on; None if it is not among them."""
        return next((n for n, each in enumerate(self.slow_causes, 1) if self.fault.is_it(each)), None)


class FaultRuns:
    """One group of live ranks at a time, replaced when a fault needs another."""

    def __init__(self, data: Path, folder: Path, hosts: Callable[[], NetHosts]) -> None:
        self._data = data
        self._folder = folder
        self._hosts = hosts
        self._ranks: LiveRanks | None = None
        self._made_for: tuple[int, bool] | None = None

    def __enter__(self) -> FaultRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, fault: Fault, *, counters: bool = True) -> Found:
        """Run thirty steps with a fault in them, and analyse their traces; and their counters, unless told not to."""
        ranks = self._group(fault.ranks, fault.needs_hosts)
        folder = self._folder / f"{fault.number:02d}-{fault.kind}"
        with self._links(fault):
            answers = ranks.ask("train", folder=str(folder), data=str(self._data), fault=asdict(fault))
        if fault.ballast_mb:
            # What the disk still has to do would hold up the next run: a rank's pulse is a mapped file.
            shutil.rmtree(RunFolder(folder).checkpoints)
            os.sync()
        held_up = [sum(answer["taken_s"]) for answer in answers]
        run = RunFolder(folder)
        return Found(
            fault=fault,
            slow_causes=slow_causes(read_run(run), counters=read_counters(run) if counters else ()),
            held_up_s=max(held_up) if fault.delay_s else None,
        )

    def close(self) -> None:
        """Let the ranks end."""
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None

    def _group(self, size: int, on_hosts: bool) -> LiveRanks:
        if self._ranks is None or self._made_for != (size, on_hosts):
            self.close()
            hosts = self._hosts() if on_hosts else None
            self._ranks = LiveRanks(PROGRAM, size, log=self._folder / "ranks.log", hosts=hosts)
            self._made_for = (size, on_hosts)
        return self._ranks

    @contextlib.contextmanager
    def _links(self, fault: Fault) -> Iterator[None]:
        """The links of the fault's hosts as slow as it says."""
        if not fault.rate_mbit:
            yield
            return
        hosts = self._hosts()
        slow = hosts.names[: fault.ranks][-fault.hosts :]
        limit(hosts, slow, f"{fault.rate_mbit}mbit")
        try:
            yield
        finally:
            hosts.shape(None)


def limit(hosts: NetHosts, names: Sequence[str], rate: str) -> None:
    """Limit the links of some hosts, both ways. No more than 32 kB pass unlimited: a gradient is not much larger."""
    for name in names:
        for space, device in ((hosts._space(name), hosts.interface), (hosts._switch, f"to-{name}")):
            words = ["tc", "-n", space, "qdisc", "replace", "dev", device, "root"]
            subprocess.run(
                [*words, "tbf", "rate", rate, "burst", "32kb", "latency", "400ms"], check=True, capture_output=True
            )


def by_group(faults: Sequence[Fault]) -> list[Fault]:
    """Faults in an order in which each group of ranks is started once."""
    return sorted(faults, key=lambda fault: (fault.needs_hosts, fault.ranks, fault.number))
