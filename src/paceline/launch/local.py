"""Ranks as processes of this machine, one each.

    launcher ── 127.0.0.1, a port of the kernel's choice, listening ──▶ inherited by rank 0 alone
       │
       ├─▶ rank 0   own session, own log, told who it is by the environment
       ├─▶ rank 1   ...
       └── watches; ends them all when one fails, or when it is told to stop

No rank outlives the launcher: each ties itself to it before anything else (guard.py). The
socket is bound before any rank starts, so that no port can be taken in between, and nothing
listens beyond loopback.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence

import psutil

from paceline import host
from paceline.errors import RunError
from paceline.identity import inherited_environment, local_environment
from paceline.launch import machine
from paceline.launch.base import WORKER, Launcher, Outcome, Placement, Progress, clear_attempt, ignore
from paceline.launch.child import library_environment, opened_log, python
from paceline.launch.placement import check_memory, placement_here
from paceline.launch.supervise import Watch, end_ranks, interruptible
from paceline.records import roles
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point


class LocalLauncher(Launcher):
    """Starts one process per rank on this machine."""

    name = "local"

    def __init__(self, command: tuple[str, ...] | None = None, settings: LaunchSettings = LaunchSettings()) -> None:
        """`command` stands in for the worker, RUN_DIR is appended to it: tests use one without torch."""
        self._command = command or python("-m", WORKER)

    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run, with the reason."""
        return placement_here(point, range(point.processes))

    def check(self, point: Point) -> None:
        """Raise RequestError where there is not even the memory to start the ranks of a point."""
        check_memory(point.processes, machine.this_machine().memory_bytes)

    def run(
        self,
        folder: RunFolder,
        manifest: Manifest,
        *,
        heartbeat_s: float,
        progress: Callable[[Progress], None] = ignore,
    ) -> Outcome:
        """Start the ranks, wait for them, and bring their reports; when this ends, no rank is left.

        To be called from a thread that stays for the length of the run: the ranks end with it.
        """
        clear_attempt(folder)
        ranks: list[LocalRank] = []
        with interruptible() as check:

            def nap(length_s: float) -> None:
                check()
                _nap(ranks, length_s)

            try:
                self._start(ranks, folder, manifest)
                watch = Watch(ranks, folder, heartbeat_s, progress, nap)
                reports = watch.until_done()
            finally:
                end_ranks(ranks, nap=lambda length_s: _nap(ranks, length_s))
        return Outcome(
            started_at_ns=manifest.launched_at_ns,
            ended_at_ns=max(rank.ended_at_ns or 0 for rank in ranks),
            reports=reports,
        )

    def _start(self, ranks: list[LocalRank], folder: RunFolder, manifest: Manifest) -> None:
        """Start every rank and put it into `ranks` at once, so that whatever happens it can be ended."""
        size = manifest.point.processes
        command = (*self._command, str(folder.path.resolve()))
        with socket.create_server(("127.0.0.1", 0), backlog=max(128, size)) as meeting:
            for rank in range(size):
                store_fd = meeting.fileno() if rank == 0 else None
                environment = (
                    inherited_environment()
                    | library_environment(roles.threads(manifest.point, rank))
                    | local_environment(
                        rank,
                        size,
                        store_port=meeting.getsockname()[1],
                        store_fd=store_fd,
                        parent_pid=os.getpid(),
                    )
                )
                ranks.append(_start_rank(rank, command, environment, store_fd, folder, manifest))


class LocalRank:
    """One rank's process, as its launcher sees it."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.host = socket.gethostname()
        self.ended_at_ns: int | None = None
        self._process = process
        self.handle: int | None = None
        """A descriptor that becomes readable when the process ends, where the kernel has those."""
        if host.has_call("pidfd_open"):
            with contextlib.suppress(OSError):
                self.handle = os.pidfd_open(process.pid)

    def poll(self) -> int | None:
        """Its exit code, minus the signal's number where one killed it; None while it runs."""
        if self._process.returncode is None and self._has_ended():
            self.ended_at_ns = time.monotonic_ns()
            self._end_children()
            self._process.wait()
            if self.handle is not None:
                os.close(self.handle)
                self.handle = None
        return self._process.returncode

    def state(self) -> str | None:
        """What the operating system says of the running process."""
        try:
            return None if self._process.returncode is not None else psutil.Process(self._process.pid).status()
        except psutil.Error:
            return None

    def send(self, number: int) -> None:
        """Send a signal to the rank and to all that it started."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _has_ended(self) -> bool:
        """Whether it has ended; it is left unreaped where the system allows, so that its number stays its own."""
        if not host.has_call("waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _end_children(self) -> None:
        """A rank that has ended leaves nothing behind."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _start_rank(
    rank: int,
    command: tuple[str, ...],
    environment: dict[str, str],
    store_fd: int | None,
    folder: RunFolder,
    manifest: Manifest,
) -> LocalRank:
    with opened_log(folder.rank_log(rank), rank, manifest) as log:
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=() if store_fd is None else (store_fd,),
                # A session of its own: a terminal's Ctrl-C reaches the launcher alone, and a rank's
                # children can be ended with it.
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(
                f"Rank {rank} could not be started: {command[0]}: {error.strerror or error}.",
                right=f"The command was: {' '.join(command)}",
                next="paceline doctor shows what this machine allows.",
            ) from error
    return LocalRank(rank, process)


def _nap(ranks: Sequence[LocalRank], length_s: float) -> None:
    """Sleep, but not beyond the end of a rank: so that the end of a run is not rounded up to a look."""
    waiting = select.poll()
    handles = [rank.handle for rank in ranks if rank.handle is not None]
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    if handles:
        waiting.poll(length_s * 1000)
    else:
        time.sleep(min(length_s, 0.02))
