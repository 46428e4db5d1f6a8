"""The keeper of one rank, wherever another program starts it: python -m paceline.launch.keeper RUN_DIR [COMMAND...]

    mpiexec, torchrun, srun, Ray ──▶ keeper ──▶ rank (python -m paceline.train.worker RUN_DIR)
                                       │ .start  .end      what became of it, to the signal that killed it
                                       │ ranks/notice      tells it to write a checkpoint and leave
                                       └ ranks/stop        ends it, on whatever host it runs

Whatever the program that started it does with signals, exit codes and output, the run folder says the same
under every launcher. The keeper imports no torch and sleeps; it does not outlive its parent, nor the rank the keeper.
In a scheduler's job SIGUSR1 and SIGTERM are a notice too: schedulers send them to every process some time before
they kill.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from paceline.errors import PacelineError, RunError
from paceline.guard import end_with_parent, pin
from paceline.identity import Identity, kept_environment, this_rank
from paceline.launch.base import WORKER
from paceline.launch.child import library_environment, opened_log, python
from paceline.launch.lost import question_file, write_answer
from paceline.launch.placement import placement_here
from paceline.records import roles
from paceline.records.codec import read_record, write_record
from paceline.records.folder import RunFolder
from paceline.records.run import STOPPED, Manifest, RankEnd, RankStart
from paceline.records.study import Point

NOTICE_SIGNALS = (signal.SIGUSR1, signal.SIGTERM)
POLL_S = 0.25
TERMINATE_S = 1.0
"""Between SIGTERM and SIGKILL."""
FLUSH_S = 1.0
"""Between two times that a pulse is handed over to the other hosts."""
LINGER_S = 5.0
"""How long a bad end is kept from the program above, which would end the others before they can say what they saw."""


def main() -> int:
    """Start the rank, wait for its end, and say how it ended."""
    end_with_parent(os.getppid())
    folder, command = RunFolder(Path(sys.argv[1])), tuple(sys.argv[2:]) or python("-m", WORKER)
    me = this_rank()
    try:
        manifest = read_record(folder.manifest, Manifest)
        _check(me, manifest)
        pin(_cores(me, manifest.point))
        return RankWrapper(folder, manifest, me).keep(command)
    except PacelineError as error:
        _refuse(folder, me, error)
        return 1


class RankWrapper:
    """Keeps one rank."""

    def __init__(self, folder: RunFolder, manifest: Manifest, me: Identity) -> None:
        self._folder = folder
        self._manifest = manifest
        self._me = me
        self._told_to_end = False
        self._flushed_at = 0.0
        self._answered = False
        self._noticed = False
        self._notices = NOTICE_SIGNALS if manifest.warned else ()

    def keep(self, command: tuple[str, ...]) -> int:
        """The exit code for the program above: 0 where the rank ended well."""
        me, folder = self._me, self._folder
        started_at_ns = time.monotonic_ns()
        for number in {signal.SIGTERM, signal.SIGINT, *self._notices}:
            signal.signal(number, self._notice if number in self._notices else self._note)
        with opened_log(folder.rank_log(me.rank), me.rank, self._manifest) as log:
            process = self._started(command, log.fileno())
        start = RankStart(rank=me.rank, host=me.host, pid=process.pid, started_at_ns=started_at_ns)
        write_record(folder.rank_start(me.rank), start)
        code = self._wait(process)
        end = RankEnd(rank=me.rank, host=me.host, code=code, ended_at_ns=time.monotonic_ns())
        write_record(folder.rank_end(me.rank), end)
        if code not in (0, STOPPED):  # ranks that are told to leave leave together
            self._linger()
        return code if code >= 0 else 128 - code

    def _started(self, command: tuple[str, ...], log: int) -> subprocess.Popen[bytes]:
        point = self._manifest.point
        interface = () if point.hosts == 1 else (self._manifest.launch.interface,)
        environment = kept_environment(self._me, parent_pid=os.getpid())
        # Held back for the rank until it listens: a scheduler signals every process, one that is just starting too.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._notices)
        try:
            return subprocess.Popen(
                (*command, str(self._folder.path)),
                env=environment | library_environment(roles.threads(point, self._me.rank), *interface),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                close_fds=False,  # an MPI library talks to its mpiexec through a descriptor that it inherits
                start_new_session=True,  # a rank's children can be ended with it
            )
        except OSError as error:
            raise RunError(
                f"Rank {self._me.rank} could not be started: {command[0]}: {error.strerror or error}.",
                right=f"The command was: {shlex.join(command)}",
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._notices)

    def _note(self, number: int, frame: object) -> None:
        self._told_to_end = True

    def _notice(self, number: int, frame: object) -> None:
        self._noticed = True

    def _stopping(self) -> bool:
        return self._told_to_end or self._folder.stop.exists()

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """How it ended, by itself or because the run was stopped."""
        asked_at, warned = None, False
        while not _ended(process, POLL_S):
            self._tend()
            if self._notices and not warned and (self._noticed or self._folder.notice.exists()):
                warned = True
                with contextlib.suppress(ProcessLookupError):  # to the rank alone: what it started may not expect it
                    os.kill(process.pid, signal.SIGUSR1)
            if asked_at is None and self._stopping():
                asked_at = time.monotonic()
                _send(process, signal.SIGTERM, signal.SIGCONT)
            elif asked_at is not None and time.monotonic() - asked_at > TERMINATE_S:
                _send(process, signal.SIGKILL)
        _send(process, signal.SIGKILL)  # whatever it started and left behind; it is not reaped yet, its number its own
        return process.wait()

    def _linger(self) -> None:
        began = time.monotonic()
        while time.monotonic() - began < LINGER_S and not self._stopping():
            self._tend()
            time.sleep(POLL_S)

    def _tend(self) -> None:
        """What ranks of several hosts need besides: a pulse that is seen elsewhere, an answer when one is asked for."""
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
    """Hand what was written through memory over to a network file system, which shows it to other hosts then."""
    with contextlib.suppress(OSError), path.open("rb+") as file:
        os.fsync(file.fileno())


def _refuse(folder: RunFolder, me: Identity, error: PacelineError) -> None:
    """Say why a rank was not started, where its launcher looks: in its log, and as its end."""
    sys.stderr.write(f"{error}\n")
    with contextlib.suppress(OSError, PacelineError):
        with folder.rank_log(me.rank).open("a") as log:
            log.write(f"{error}\n")
        end = RankEnd(rank=me.rank, host=me.host, code=1, ended_at_ns=time.monotonic_ns())
        write_record(folder.rank_end(me.rank), end)


def _check(me: Identity, manifest: Manifest) -> None:
    if me.size != manifest.point.processes:
        raise RunError(
            f"{me.size} processes were started, and this run has {manifest.point.processes}.",
            right="The program that starts the ranks and the library that they use have to belong together: with two "
            "kinds of MPI on one machine, every process thinks that it is alone.",
            next="Name the right mpiexec with --set launch.mpiexec=PATH.",
        )


def _cores(me: Identity, point: Point) -> tuple[int, ...] | None:
    """The cores of this rank among those that its host, or the program above, leaves to it."""
    first = me.rank - me.local_rank
    found = placement_here(point, range(first, first + me.local_size))
    return None if found.cores is None else found.cores[me.local_rank]


def _ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether it has ended, as soon as it has; it is left unreaped."""
    handle = os.pidfd_open(process.pid)
    try:
        return bool(select.select([handle], [], [], within_s)[0])
    finally:
        os.close(handle)


def _send(process: subprocess.Popen[bytes], *numbers: int) -> None:
    for number in numbers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main())
