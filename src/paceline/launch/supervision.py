"""Watch ranks until all are done, name the one that failed or hangs, and end them.

    poll every rank ──▶ one failed?      wait a moment for the reports of the others ──▶ RankError
          ▲             all done?        ──▶ their reports
          │             no progress?     ──▶ RankError
          └── nap ◀── progress of the slowest

Independent of how ranks were started: a launcher passes them as `LiveRank`, with the clock and the nap. A poll costs
one small file read per rank, five times a second.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from paceline.errors import RankError
from paceline.launch.child import LOG_HEADER
from paceline.launch.failure_cause import RankView, awaited_rank, failure_error, first_cause, hang_error
from paceline.launch.launcher import Progress
from paceline.records.run import Manifest, RankReport
from paceline.records.study import Point
from paceline.storage.codec import optional_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import Pulse, pulse

POLL_S = 0.2
"""Between two polls while no rank ends: each takes a little time from the ranks' cores."""
GRACE_S = 0.3
"""How long the other ranks may take to report after the first failure."""
BLAME_GRACE_S = 1.0
"""How long they may take while all failed ranks blame a peer: the cause may still be writing its report."""
TERMINATE_S = 1.0
"""Between SIGTERM and SIGKILL."""
KILL_S = 3.0
"""How long the kernel may take to end a process after SIGKILL."""
_LOG_LINES, _LOG_WIDTH, _LOG_BYTES = 12, 200, 16_384


class LiveRank(Protocol):
    """The interface of a rank for supervision, independent of the program that started it."""

    @property
    def number(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def ended_at_ns(self) -> int | None:
        """Instant at which `poll` first found that it had ended."""
        ...

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        ...

    def state(self) -> str | None:
        """The operating system's state of the running process, in psutil's words."""
        ...

    def send(self, number: int) -> None:
        """Send a signal to it and to all processes that it started; nothing happens if it has ended."""
        ...


@dataclass(slots=True)
class Watch:
    """Supervises the ranks of one run."""

    ranks: Sequence[LiveRank]
    folder: RunFolder
    heartbeat_s: float
    progress: Callable[[Progress], None]
    nap: Callable[[float], None]
    """Sleeps, may wake early when a rank ends; raises KeyboardInterrupt after Ctrl-C."""
    clock: Callable[[], float] = time.monotonic
    _point: Point | None = None
    """From the manifest, for the ranks' roles; all train if it cannot be read."""
    _pulses: dict[int, Pulse | None] = field(default_factory=dict)
    _reports: dict[int, RankReport] = field(default_factory=dict)
    """Read once: each is written once, atomically."""
    _shown: Progress | None = None
    _silence_s: float = 0.0
    _polled_at: float | None = None

    def __post_init__(self) -> None:
        manifest = optional_record(self.folder.manifest, Manifest)
        self._point = manifest.point if manifest else None

    def until_done(self) -> tuple[RankReport, ...]:
        """The reports of all ranks, in order; RankError for the one that failed or hangs."""
        while True:
            views = self._poll()
            if any(view.failed for view in views):
                raise self._failure()
            if all(view.done for view in views):
                return tuple(view.report for view in views if view.report is not None)
            self._check_progress(views)
            self._show_progress()
            self.nap(POLL_S)

    def _poll(self) -> list[RankView]:
        """The current state of every rank."""
        return [
            RankView(
                rank=rank.number,
                host=rank.host,
                log=self.folder.rank_log(rank.number),
                code=rank.poll(),  # before the report is read: a rank writes it before it ends
                ended_at_ns=rank.ended_at_ns,
                pulse=pulse(self.folder.rank_pulse(rank.number)),
                report=self._report(rank.number),
                point=self._point,
            )
            for rank in self.ranks
        ]

    def _report(self, rank: int) -> RankReport | None:
        """The final report of a rank; None if there is none that can be read."""
        if rank not in self._reports and (report := optional_record(self.folder.rank_report(rank), RankReport)):
            self._reports[rank] = report
        return self._reports.get(rank)

    def _failure(self) -> RankError:
        """The error that names the first cause, after a moment in which other ranks can report."""
        began = self.clock()
        while True:
            views = self._poll()
            cause, waited_s = first_cause(views), self.clock() - began
            grace_s = BLAME_GRACE_S if cause.blames_a_peer else GRACE_S
            if waited_s >= grace_s or all(view.code is not None for view in views):
                break
            self.nap(POLL_S)
        return failure_error(cause, len(self.ranks), log_tail(cause.log))

    def _show_progress(self) -> None:
        """Pass the position of the slowest rank to the listener when it has changed. Servers take no steps."""
        training = [p for number, p in self._pulses.items() if self._trains(number)]
        known = [p for p in training if p is not None]
        slowest = min(known, key=lambda p: p.step, default=None)
        if slowest is None or len(known) < len(training):
            now = Progress(step=0, total_steps=max((p.total_steps for p in known), default=0), phase="startup")
        else:
            now = Progress(step=slowest.step, total_steps=slowest.total_steps, phase=slowest.phase)
        if now != self._shown:
            self._shown = now
            self.progress(now)

    def _trains(self, number: int) -> bool:
        return self._point is None or self._point.role(number) == "rank"

    def _check_progress(self, views: Sequence[RankView]) -> None:
        """Add up the time in which no pulse changes; raise RankError when it is too long."""
        now, before = self.clock(), self._polled_at
        self._polled_at = now
        pulses = {view.rank: view.pulse for view in views}
        if pulses != self._pulses or before is None:
            self._pulses, self._silence_s = pulses, 0.0
            return
        # In a long gap between two polls the launcher itself did not run (suspended, or without a core),
        # and the ranks may have stopped for the same reason.
        self._silence_s += min(now - before, 10 * POLL_S)
        slow_phase = any(view.phase in ("startup", "checkpoint") for view in views if view.code is None)
        if self._silence_s >= self.heartbeat_s * (10 if slow_phase else 1):
            raise self._hang(views)

    def _hang(self, views: Sequence[RankView]) -> RankError:
        """The error that names the rank that the others wait for."""
        states = {rank.number: rank.state() for rank in self.ranks}
        cause = awaited_rank([replace(view, state=states[view.rank]) for view in views])
        return hang_error(
            cause,
            views,
            silence_s=self._silence_s,
            heartbeat_s=self.heartbeat_s,
            log_tail=log_tail(cause.log),
        )


def end_ranks(
    ranks: Sequence[LiveRank],
    *,
    nap: Callable[[float], None],
    clock: Callable[[], float] = time.monotonic,
    terminate_s: float = TERMINATE_S,
    kill_s: float = KILL_S,
) -> None:
    """End every rank that still runs, with its children: SIGTERM first, SIGKILL after `terminate_s`."""
    for number, patience_s in ((signal.SIGTERM, terminate_s), (signal.SIGKILL, kill_s)):
        running = [rank for rank in ranks if rank.poll() is None]
        for rank in running:
            rank.send(number)
            rank.send(signal.SIGCONT)  # a stopped process handles no other signal before it continues
        began = clock()
        while running and clock() - began < patience_s:
            nap(POLL_S)
            running = [rank for rank in running if rank.poll() is None]
        if not running:
            return
    raise RankError(
        f"Rank {running[0].number} on {running[0].host} does not end, not even by SIGKILL.",
        right="It waits in the kernel, usually for a disk or a network file system, and ends when that answers.",
        next="Check that file system before starting again.",
    )


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C and SIGTERM: the function that it yields raises KeyboardInterrupt after one of them.

    Thus no interruption occurs between starting a rank and recording it, or while ranks are ended.
    A late one is raised at the end of the block. Ignored signals stay ignored. Outside the main thread Python allows no
    signal handlers, and nothing is changed.
    """
    received: list[int] = []
    before = {}

    def check() -> None:
        if received:
            received.clear()
            raise KeyboardInterrupt

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, lambda number, frame: received.append(number))
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        check()


def log_tail(log: Path) -> str:
    """The last lines of a rank's log in this attempt; after a crash in native code, its first lines."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    headers = [number for number, line in enumerate(lines) if line.startswith(LOG_HEADER)]
    own = [line[:_LOG_WIDTH] for line in lines[headers[-1] + 1 if headers else 0 :] if line.strip()]
    crash = next((number for number, line in enumerate(own) if line.startswith("Fatal Python error")), None)
    return "\n".join(own[-_LOG_LINES:] if crash is None else own[crash:][:_LOG_LINES])
