"""Ranks that another program starts: they are watched and ended through the run folder.

    launcher ──▶ program (mpiexec, torchrun, srun, ...) ──▶ wrapper ──▶ rank
       │                                                      │
       └──── ranks/*.start, *.pulse, *.json, *.end ◀──────────┘        ranks/stop ──▶ every wrapper

A launcher builds the commands of its programs; the rest is here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from paceline.errors import RankError, RunError
from paceline.identity import inherited_environment
from paceline.launch.child import process_state, python, signal_group
from paceline.launch.launcher import Listener, Outcome, clear_attempt
from paceline.launch.supervision import KILL_S, TERMINATE_S, Watch, end_ranks, interruptible, log_tail
from paceline.launch.wrapper.unreachable_hosts import unreachable_hosts_error
from paceline.records.run import Manifest, RankEnd, RankStart
from paceline.storage.codec import optional_record, storage_error
from paceline.storage.folder import RunFolder

WRAPPER = "paceline.launch.wrapper.rank_wrapper"
WATCHDOG = "paceline.launch.parent_watchdog"
WRAPPER_S = 4.0
"""How long the wrappers may take to end their ranks, with SIGKILL if necessary, before the program above is killed."""
ORDERLY_S = 5.0
"""How long a program may take to exit by itself after its last rank: it removes its own files then."""
SETTLE_S = 2.0
"""How long after the end of its program the end of a rank may still arrive over a shared file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process that starts some of the ranks, on this host or on another."""

    command: tuple[str, ...]
    ranks: tuple[int, ...]
    host: str
    """Where its ranks run, as far as that is known beforehand."""
    hosts: tuple[str, ...] = ()
    """The host of each of its ranks; empty if all run on `host`."""
    through_agent: bool = False
    """Whether an agent (ssh) starts it on another host: then its watchdog runs there."""

    def host_of(self, rank: int) -> str:
        """Where a rank is to run."""
        return self.hosts[self.ranks.index(rank)] if self.hosts else self.host


def watchdog_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command of a program that ends when its standard input does."""
    return (*python("-m", WATCHDOG), "-", os.getcwd(), *command)


def wrapper_command(folder: RunFolder, command: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command of a rank wrapper; `command` replaces that of the worker."""
    return (*python("-m", WRAPPER), str(folder.path.resolve()), *command)


def run_wrapped(
    programs: Sequence[Program], folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener
) -> Outcome:
    """Start the programs, watch their ranks, return the reports; when this ends, no rank and no program runs."""
    clear_attempt(folder)
    running: list[RunningProgram] = []
    ranks: list[WrappedRank] = []
    with interruptible() as check:

        def nap(length_s: float) -> None:
            check()
            time.sleep(length_s)

        try:
            for program in programs:
                running.append(RunningProgram(program, folder))
                ranks += [WrappedRank(rank, running[-1], folder) for rank in program.ranks]
            ranks.sort(key=lambda rank: rank.number)
            reports = Watch(ranks, folder, heartbeat_s, progress, nap).until_done()
        except RankError as error:
            cause = _never_started(running, folder) or unreachable_hosts_error(ranks, folder, error, sleep=nap)
            raise cause or error from None
        finally:
            _end(folder, ranks, running)
    ended_at_ns = max(rank.ended_at_ns or 0 for rank in ranks)
    return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=ended_at_ns, reports=reports)


class RankStarter(Protocol):
    """What started a group of ranks: a program of this host, or a scheduler's job."""

    program: Program
    ended_at: float | None
    """Instant (time.monotonic) at which `poll` first found that it had ended."""

    def poll(self) -> int | None: ...

    def send(self, number: int) -> None: ...


class RunningProgram:
    """A program that was started."""

    def __init__(self, program: Program, folder: RunFolder) -> None:
        self.program = program
        self.ended_at: float | None = None
        agent = (*python("-m", WATCHDOG), str(os.getpid()), *program.command)
        try:
            with folder.launcher_log.open("ab", buffering=0) as log:
                self._process = subprocess.Popen(
                    agent if program.through_agent else watchdog_command(program.command),
                    env=inherited_environment(),
                    stdin=subprocess.PIPE,  # closes when this process ends, and with it the watchdog
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C of a terminal reaches only the launcher
                )
        except OSError as error:
            raise storage_error(folder.launcher_log, error) from error

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        code = self._process.poll()
        if code is not None and self.ended_at is None:
            self.ended_at = time.monotonic()
        return code

    def close(self) -> None:
        """Close its standard input: a program on another host ends then."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def send(self, number: int) -> None:
        """Send a signal to it and to all processes that it started on this host."""
        if self._process.poll() is None:
            signal_group(self._process.pid, number)


class WrappedRank:
    """One rank, as its wrapper records it in the run folder."""

    def __init__(self, number: int, program: RankStarter, folder: RunFolder) -> None:
        self.number = number
        self.ended_at_ns: int | None = None
        self._program = program
        self._folder = folder
        self._start: RankStart | None = None
        self._code: int | None = None

    @property
    def host(self) -> str:
        return self._start.host if self._start else self._program.program.host_of(self.number)

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self._code is None:
            self._start = self._start or optional_record(self._folder.rank_start(self.number), RankStart)
            end = optional_record(self._folder.rank_end(self.number), RankEnd)
            if end is not None:
                self._code = end.code
                here = end.host == socket.gethostname()
                self.ended_at_ns = end.ended_at_ns if here else time.monotonic_ns()
            elif (code := self._program.poll()) is not None and self._settled():
                self._code = code or 1  # its ranks ended with it, before they could record it
                self.ended_at_ns = time.monotonic_ns()
        return self._code

    def state(self) -> str | None:
        """The operating system's state of the process; None if it runs on another host."""
        if self._start is None or self._start.host != socket.gethostname():
            return None
        return process_state(self._start.pid)

    def send(self, number: int) -> None:
        """SIGTERM: request the end from its wrapper, on any host. SIGKILL goes to the program that started it."""
        if number == signal.SIGTERM:
            with contextlib.suppress(OSError):
                self._folder.stop.touch()
        elif number == signal.SIGKILL:
            self._program.send(number)

    def _settled(self) -> bool:
        return self._program.ended_at is not None and time.monotonic() - self._program.ended_at > SETTLE_S


def _end(folder: RunFolder, ranks: Sequence[WrappedRank], running: Sequence[RunningProgram]) -> None:
    """End what still runs: the ranks through their wrappers, then the programs."""
    if any(rank.poll() for rank in ranks):  # the wrapper of a failed rank lingers until it sees this
        with contextlib.suppress(OSError):
            folder.stop.touch()
    end_ranks(ranks, nap=time.sleep, terminate_s=WRAPPER_S, kill_s=KILL_S + SETTLE_S)
    for number, patience_s in ((None, ORDERLY_S), (signal.SIGTERM, TERMINATE_S), (signal.SIGKILL, KILL_S)):
        began = time.monotonic()
        for program in running:
            if number is not None:
                program.send(number)
        while any(program.poll() is None for program in running) and time.monotonic() - began < patience_s:
            time.sleep(0.02)
    for program in running:
        program.close()


def _never_started(running: Sequence[RunningProgram], folder: RunFolder) -> RunError | None:
    """The error of a program that ended before any rank had started; None if a rank had."""
    failed = next((program for program in running if program.poll()), None)
    if failed is None or any(folder.rank_start(r).exists() for p in running for r in p.program.ranks):
        return None
    tail = "\n".join(f"  {line}" for line in log_tail(folder.launcher_log).splitlines())
    return RunError(
        f"{failed.program.command[0]} for {failed.program.host} ended with exit code {failed.poll()} before any rank "
        "had started.",
        right=f"The command was: {shlex.join(failed.program.command)}",
        next=f"Its output, {folder.launcher_log}, ends with:\n{tail}",
    )
