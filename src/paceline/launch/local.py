"""Ranks as processes of this machine, one each.

    launcher ── 127.0.0.1, a port that the kernel chooses, listening ──▶ inherited only by rank 0
       │
       ├─▶ rank 0   own session, own log, identity in environment variables
       ├─▶ rank 1   ...
       └── watches; ends all ranks when one fails, or on Ctrl-C

No rank outlives the launcher: each ends with its parent (guard.py). The socket is bound before any
rank starts, so that no other process can take the port. Nothing listens beyond loopback.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence

from paceline import host
from paceline.identity import inherited_environment, local_environment
from paceline.launch import machine
from paceline.launch.child import (
    library_environment,
    opened_log,
    process_state,
    python,
    signal_group,
    start_rank,
)
from paceline.launch.launcher import WORKER, Launcher, Listener, Outcome, Placement, clear_attempt, ignore
from paceline.launch.placement import check_memory, placement_here
from paceline.launch.supervision import Watch, end_ranks, interruptible
from paceline.records import process_roles
from paceline.records.run import Manifest
from paceline.records.study import Point
from paceline.storage.folder import RunFolder


class LocalLauncher(Launcher):
    """Starts one process per rank on this machine."""

    name = "local"

    @property
    def command(self) -> tuple[str, ...]:
        """The command of a rank, without RUN_DIR."""
        return self._command or python("-m", WORKER)

    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run, with the reason."""
        return placement_here(point, range(point.processes))

    def check(self, point: Point) -> None:
        """Raise RequestError if the memory does not suffice to start the ranks of a point."""
        check_memory(point.processes, machine.this_machine().memory_bytes)

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener = ignore) -> Outcome:
        """Start the ranks, wait for them, and return their reports.

        Call it from a thread that lives as long as the run: the ranks end with that thread.
        """
        clear_attempt(folder)
        ranks: list[LocalRank] = []
        with interruptible() as check:

            def nap(length_s: float) -> None:
                check()
                _nap(ranks, length_s)

            try:
                self._start(ranks, folder, manifest)
                reports = Watch(ranks, folder, heartbeat_s, progress, nap).until_done()
            finally:
                end_ranks(ranks, nap=lambda length_s: _nap(ranks, length_s))
        ended_at_ns = max(rank.ended_at_ns or 0 for rank in ranks)
        return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=ended_at_ns, reports=reports)

    def _start(self, ranks: list[LocalRank], folder: RunFolder, manifest: Manifest) -> None:
        """Start every rank and append it to `ranks` immediately: a rank in `ranks` is always ended."""
        size = manifest.point.processes
        command = (*self.command, str(folder.path.resolve()))
        with socket.create_server(("127.0.0.1", 0), backlog=max(128, size)) as store:
            for rank in range(size):
                store_fd = store.fileno() if rank == 0 else None
                variables = local_environment(
                    rank, size, store_port=store.getsockname()[1], store_fd=store_fd, parent_pid=os.getpid()
                )
                libraries = library_environment(process_roles.threads(manifest.point, rank))
                environment = inherited_environment() | libraries | variables
                inherited = () if store_fd is None else (store_fd,)
                with opened_log(folder.rank_log(rank), rank, manifest) as log:
                    ranks.append(LocalRank(rank, start_rank(rank, command, environment, log, pass_fds=inherited)))


class LocalRank:
    """One rank's process, as its launcher sees it."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.host = socket.gethostname()
        self.ended_at_ns: int | None = None
        self._process = process
        self.handle: int | None = None
        """A descriptor that becomes readable when the process ends; None if the kernel does not support it."""
        if host.has_call("pidfd_open"):
            with contextlib.suppress(OSError):
                self.handle = os.pidfd_open(process.pid)

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs. Its remaining children are killed."""
        if self._process.returncode is None and self._has_ended():
            self.ended_at_ns = time.monotonic_ns()
            signal_group(self._process.pid, signal.SIGKILL)
            self._process.wait()
            if self.handle is not None:
                os.close(self.handle)
                self.handle = None
        return self._process.returncode

    def state(self) -> str | None:
        """The operating system's state of the running process."""
        return None if self._process.returncode is not None else process_state(self._process.pid)

    def send(self, number: int) -> None:
        """Send a signal to the rank and to all processes that it started."""
        if self._process.returncode is None:
            signal_group(self._process.pid, number)

    def _has_ended(self) -> bool:
        """Whether it has ended. It is not reaped if the system allows it: its pid cannot be reused."""
        if not host.has_call("waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True


def _nap(ranks: Sequence[LocalRank], length_s: float) -> None:
    """Sleep, but wake when a rank ends, so that the end of a run is not rounded up to the poll interval."""
    waiting = select.poll()
    handles = [rank.handle for rank in ranks if rank.handle is not None]
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    if handles:
        waiting.poll(length_s * 1000)
    else:
        time.sleep(min(length_s, 0.02))
