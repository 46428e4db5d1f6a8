"""The wrapper of a rank that another program starts: python -m paceline.launch.wrapper.rank_wrapper RUN_DIR [COMMAND]

    mpiexec, torchrun, srun, Ray ──▶ wrapper ──▶ rank (python -m paceline.training.worker RUN_DIR)
                                       │ .start  .end      start and end of its process, with exit code or signal
                                       │ ranks/notice      requests a checkpoint and an orderly exit
                                       └ ranks/stop        ends it, on any host

The run folder has the same files under every launcher, whatever the program above does with signals, exit codes and
output. The wrapper imports no torch and sleeps. It ends with its parent, and the rank ends with the wrapper.
In a scheduler's job, SIGUSR1 and SIGTERM are a termination notice too: schedulers send them to every process some time
before they kill.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from io import FileIO
from pathlib import Path

from paceline.errors import PacelineError, RunError
from paceline.guard import end_with_parent, pin
from paceline.identity import Identity, this_rank, wrapped_rank_environment
from paceline.launch.child import library_environment, opened_log, python, signal_group, start_rank
from paceline.launch.launcher import WORKER
from paceline.launch.placement import placement_here
from paceline.launch.wrapper.unreachable_hosts import question_file, write_answer
from paceline.records import process_roles
from paceline.records.run import STOPPED, Manifest, RankEnd, RankStart
from paceline.records.study import Point
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

NOTICE_SIGNALS = (signal.SIGUSR1, signal.SIGTERM)
POLL_S = 0.25
TERMINATE_S = 1.0
"""Between SIGTERM and SIGKILL."""
FLUSH_S = 1.0
"""Between two flushes of the pulse to the other hosts."""
LINGER_S = 5.0
"""Delay before a failure is returned to the program above, which would end the other ranks before they can report."""


def main() -> int:
    """Start the rank, wait for its end, and record how it ended."""
    end_with_parent(os.getppid())
    folder, command = RunFolder(Path(sys.argv[1])), tuple(sys.argv[2:]) or python("-m", WORKER)
    me = this_rank()
    try:
        manifest = read_record(folder.manifest, Manifest)
        _check(me, manifest)
        pin(_cores(me, manifest.point))
        return RankWrapper(folder, manifest, me).run(command)
    except PacelineError as error:
        _refuse(folder, me, error)
        return 1


class RankWrapper:
    """Runs one rank."""

    def __init__(self, folder: RunFolder, manifest: Manifest, me: Identity) -> None:
        self._folder = folder
        self._manifest = manifest
        self._me = me
        self._end_requested = False
        self._notice_received = False
        self._flushed_at = 0.0
        self._answered = False
        self._notices = NOTICE_SIGNALS if manifest.warned else ()

    def run(self, command: tuple[str, ...]) -> int:
        """The exit code for the program above: 0 if the rank succeeded."""
        me, folder = self._me, self._folder
        started_at_ns = time.monotonic_ns()
        for number in {signal.SIGTERM, signal.SIGINT, *self._notices}:
            signal.signal(number, self._on_notice if number in self._notices else self._on_end_request)
        with opened_log(folder.rank_log(me.rank), me.rank, self._manifest) as log:
            process = self._started(command, log)
        start = RankStart(rank=me.rank, host=me.host, pid=process.pid, started_at_ns=started_at_ns)
        write_record(folder.rank_start(me.rank), start)
        code = self._wait(process)
        _write_end(folder, me, code)
        if code not in (0, STOPPED):  # ranks that were warned end together
            self._linger()
        return code if code >= 0 else 128 - code

    def _started(self, command: tuple[str, ...], log: FileIO) -> subprocess.Popen[bytes]:
        point = self._manifest.point
        interface = () if point.hosts == 1 else (self._manifest.launch.interface,)
        environment = wrapped_rank_environment(self._me, parent_pid=os.getpid())
        environment |= library_environment(process_roles.threads(point, self._me.rank), *interface)
        # Blocked in the rank until it has its handler: a scheduler also signals processes that are just starting.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._notices)
        try:
            # close_fds: an MPI library talks to its mpiexec through an inherited descriptor
            return start_rank(self._me.rank, (*command, str(self._folder.path)), environment, log, close_fds=False)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._notices)

    def _on_end_request(self, number: int, frame: object) -> None:
        self._end_requested = True

    def _on_notice(self, number: int, frame: object) -> None:
        self._notice_received = True

    def _stopping(self) -> bool:
        return self._end_requested or self._folder.stop.exists()

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """The exit code of the rank, which ended by itself or because the run was stopped."""
        terminated_at, notified = None, False
        while not _ended(process, POLL_S):
            self._serve_other_hosts()
            if self._notices and not notified and (self._notice_received or self._folder.notice.exists()):
                notified = True
                with contextlib.suppress(ProcessLookupError):  # to the rank alone: its children may not handle it
                    os.kill(process.pid, signal.SIGUSR1)
            if terminated_at is None and self._stopping():
                terminated_at = time.monotonic()
                signal_group(process.pid, signal.SIGTERM, signal.SIGCONT)
            elif terminated_at is not None and time.monotonic() - terminated_at > TERMINATE_S:
                signal_group(process.pid, signal.SIGKILL)
        signal_group(process.pid, signal.SIGKILL)  # its children; the pid is still its own, as it is not reaped yet
        return process.wait()

    def _linger(self) -> None:
        began = time.monotonic()
        while time.monotonic() - began < LINGER_S and not self._stopping():
            self._serve_other_hosts()
            time.sleep(POLL_S)

    def _serve_other_hosts(self) -> None:
        """With several hosts: flush the pulse so that other hosts see it, and answer when the launcher asks."""
        if self._manifest.point.hosts == 1:
            return
        now, me = time.monotonic(), self._me
        if now - self._flushed_at >= FLUSH_S:
            self._flushed_at = now
            _flush(self._folder.rank_pulse(me.rank))
        if not self._answered and question_file(self._folder).exists():
            self._answered = True
            write_answer(self._folder, self._manifest, me.rank, me.host)


def _flush(path: Path) -> None:
    """Write memory-mapped changes to a network file system, so that other hosts see them."""
    with contextlib.suppress(OSError), path.open("rb+") as file:
        os.fsync(file.fileno())


def _write_end(folder: RunFolder, me: Identity, code: int) -> None:
    end = RankEnd(rank=me.rank, host=me.host, code=code, ended_at_ns=time.monotonic_ns())
    write_record(folder.rank_end(me.rank), end)


def _refuse(folder: RunFolder, me: Identity, error: PacelineError) -> None:
    """Record why a rank was not started: in its log, and as its end."""
    sys.stderr.write(f"{error}\n")
    with contextlib.suppress(OSError, PacelineError):
        with folder.rank_log(me.rank).open("a") as log:
            log.write(f"{error}\n")
        _write_end(folder, me, 1)


def _check(me: Identity, manifest: Manifest) -> None:
    if me.size != manifest.point.processes:
        raise RunError(
            f"{me.size} processes were started, and this run has {manifest.point.processes}.",
            right="The mpiexec that starts the ranks and the MPI library that they use must be of one installation: "
            "otherwise every process runs alone, as rank 0 of 1.",
            next="Name the right mpiexec with --set launch.mpiexec=PATH.",
        )


def _cores(me: Identity, point: Point) -> tuple[int, ...] | None:
    """The cores of this rank among those that its host, or the program above, allows."""
    first = me.rank - me.local_rank
    found = placement_here(point, range(first, first + me.local_size))
    return None if found.cores is None else found.cores[me.local_rank]


def _ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether it ends within `within_s`; returns as soon as it does, and does not reap it."""
    handle = os.pidfd_open(process.pid)
    try:
        return bool(select.select([handle], [], [], within_s)[0])
    finally:
        os.close(handle)


if __name__ == "__main__":
    sys.exit(main())
