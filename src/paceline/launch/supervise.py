"""Watch ranks until all are done, or say which of them failed or hangs; and end them.

    look at every rank ──▶ a bad end?        wait a moment for what the others say ──▶ RankError
          ▲                all done?         ──▶ their reports
          │                nobody moves?     ──▶ RankError
          └── nap ◀── progress of the slowest

Knows nothing of how ranks were started: a launcher brings them as `LiveRank`, and the clock and the nap
with them. A look costs one small file read per rank, five times a second.
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

from paceline.errors import RankError, StorageError
from paceline.launch.base import Progress
from paceline.launch.blame import RankView, awaited_rank, failure_error, first_cause, hang_error
from paceline.launch.child import LOG_HEADER
from paceline.records.codec import read_record
from paceline.records.folder import RunFolder
from paceline.records.pulse import Pulse, pulse
from paceline.records.run import Manifest, RankReport
from paceline.records.study import Point

POLL_S = 0.2
"""Between two looks, while nothing ends: each costs the ranks' cores a little."""
GRACE_S = 0.3
"""How long the others may take to report after a first bad end."""
BLAME_GRACE_S = 1.0
"""The same while all who failed blame a peer: the cause may still be writing its report."""
TERMINATE_S = 1.0
"""Between SIGTERM and SIGKILL."""
KILL_S = 3.0
"""How long the kernel may take to end a process after SIGKILL."""
_LOG_LINES, _LOG_WIDTH, _LOG_BYTES = 12, 200, 16_384


class LiveRank(Protocol):
    """What supervision needs of a rank, whoever started it."""

    @property
    def number(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def ended_at_ns(self) -> int | None:
        """Instant at which `poll` first saw that it had ended."""
        ...

    def poll(self) -> int | None:
        """Its exit code, minus the signal's number where one killed it; None while it runs."""
        ...

    def state(self) -> str | None:
        """What the operating system says of the running process, in psutil's words."""
        ...

    def send(self, number: int) -> None:
        """Send a signal to it and to all that it started; nothing happens where it has ended."""
        ...


@dataclass(slots=True)
class Watch:
    """One supervision: the ranks, the folder they write to, and what was seen last."""

    ranks: Sequence[LiveRank]
    folder: RunFolder
    heartbeat_s: float
    progress: Callable[[Progress], None]
    nap: Callable[[float], None]
    """Sleeps, wakes early when a rank ends; raises KeyboardInterrupt when asked to stop."""
    clock: Callable[[], float] = time.monotonic
    _point: Point | None = None
    """What the manifest says of the ranks' roles; all train where it cannot be read."""
    _pulses: dict[int, Pulse | None] = field(default_factory=dict)
    _reports: dict[int, RankReport] = field(default_factory=dict)
    """Written once, whole: read once."""
    _shown: Progress | None = None
    _silence_s: float = 0.0
    _looked_at: float | None = None

    def __post_init__(self) -> None:
        with contextlib.suppress(StorageError):
            self._point = read_record(self.folder.manifest, Manifest).point

    def until_done(self) -> tuple[RankReport, ...]:
        """The reports of all ranks, in order; RankError for the one that failed or hangs."""
        while True:
            sights = self._look()
            if any(s.failed for s in sights):
                raise self._failure()
            if all(s.done for s in sights):
                return tuple(s.report for s in sights if s.report is not None)
            self._listen(sights)
            self._show_progress()
            self.nap(POLL_S)

    def _look(self) -> list[RankView]:
        """Every rank as it is now."""
        return [
            RankView(
                rank=rank.number,
                host=rank.host,
                log=self.folder.rank_log(rank.number),
                code=rank.poll(),  # before the report is looked for: it is written before the end
                ended_at_ns=rank.ended_at_ns,
                pulse=pulse(self.folder.rank_pulse(rank.number)),
                report=self._report(rank.number),
                point=self._point,
            )
            for rank in self.ranks
        ]

    def _report(self, rank: int) -> RankReport | None:
        """What a rank said about its end; None where it has said nothing that can be read."""
        path = self.folder.rank_report(rank)
        if rank not in self._reports and path.exists():
            with contextlib.suppress(StorageError):
                self._reports[rank] = read_record(path, RankReport)
        return self._reports.get(rank)

    def _failure(self) -> RankError:
        """Names the first cause, after giving the others a moment to report."""
        began = self.clock()
        while True:
            sights = self._look()
            cause, waited_s = first_cause(sights), self.clock() - began
            if all(s.code is not None for s in sights):
                break
            if waited_s >= (BLAME_GRACE_S if cause.blames_a_peer else GRACE_S):
                break
            self.nap(POLL_S)
        return failure_error(cause, len(self.ranks), log_tail(cause.log))

    def _show_progress(self) -> None:
        """Tell the listener where the slowest rank is, when that has changed. Servers take no steps of their own."""
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

    def _listen(self, sights: Sequence[RankView]) -> None:
        """Count the time in which no pulse changes; raise when it has been too long."""
        now, before = self.clock(), self._looked_at
        self._looked_at = now
        pulses = {s.rank: s.pulse for s in sights}
        if pulses != self._pulses or before is None:
            self._pulses, self._silence_s = pulses, 0.0
            return
        # A long gap between two looks is the launcher's own (suspended, or starved of its core),
        # and then the ranks may have stood still for the same reason.
        self._silence_s += min(now - before, 10 * POLL_S)
        patient = any(s.phase in ("startup", "checkpoint") for s in sights if s.code is None)
        if self._silence_s >= self.heartbeat_s * (10 if patient else 1):
            raise self._hang(sights)

    def _hang(self, sights: Sequence[RankView]) -> RankError:
        """Names the rank that the others wait for."""
        states = {rank.number: rank.state() for rank in self.ranks}
        cause = awaited_rank([replace(s, state=states[s.rank]) for s in sights])
        return hang_error(
            cause,
            sights,
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
    """End every rank that still runs and all that it started: asked first, killed after `terminate_s`."""
    for number, patience_s in ((signal.SIGTERM, terminate_s), (signal.SIGKILL, kill_s)):
        running = [rank for rank in ranks if rank.poll() is None]
        for rank in running:
            rank.send(number)
            rank.send(signal.SIGCONT)  # a stopped process takes no other signal before it goes on
        began = clock()
        while running and clock() - began < patience_s:
            nap(POLL_S)
            running = [rank for rank in running if rank.poll() is None]
        if not running:
            return
    raise RankError(
        f"Rank {running[0].number} on {running[0].host} does not end, not even by SIGKILL.",
        right="It waits in the kernel, for a disk or a network file system as a rule, and ends when that answers.",
        next="Look at that file system before starting again.",
    )


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Ctrl-C and SIGTERM, noted instead of raised; the function that it yields raises KeyboardInterrupt.

    So an interruption can fall neither between starting a rank and knowing of it, nor into the ending of
    the others. One that came too late to be seen by then is raised at the end. Signals that were ignored
    stay ignored. Outside the main thread Python lets nobody handle signals, and nothing is changed.
    """
    noted: list[int] = []
    before = {}

    def check() -> None:
        if noted:
            noted.clear()
            raise KeyboardInterrupt

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, lambda number, frame: noted.append(number))
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        check()


def log_tail(log: Path) -> str:
    """The last lines of a rank's log in this attempt; of a crash in native code, the first lines about it."""
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
