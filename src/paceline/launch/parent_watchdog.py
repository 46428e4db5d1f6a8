"""Parent watchdog: runs a program of others that must not outlive the launcher.

    python -m paceline.launch.parent_watchdog - FOLDER COMMAND...    ends COMMAND when standard input ends
    python -m paceline.launch.parent_watchdog PARENT_PID COMMAND...  becomes COMMAND; the kernel ends it with its parent

    launcher ══ a pipe, never written to ═════════▶ watchdog - ──▶ mpiexec, torchrun
             ══ watchdog PID = agent (ssh) ════════▶ watchdog - ──▶ mpiexec, torchrun on another host

mpiexec and torchrun do not end when the process that started them is killed. The standard input of the first form ends
with the launcher, or with the agent between them. Then the program gets SIGTERM, so that it removes its own files, and
SIGKILL if it does not end. If the watchdog is killed too, the kernel ends the program.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

from paceline.guard import end_with_parent

TERMINATE_S = 5.0
"""Between SIGTERM and SIGKILL."""


def main() -> int:
    """The program's exit code; 127 if it does not exist, as in a shell."""
    parent, *command = sys.argv[1:]
    try:
        if parent == "-":
            return _run(*command)
        end_with_parent(int(parent))
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{error.filename or command[0]}: {error.strerror}\n")
        return 127


def _run(folder: str, *command: str) -> int:
    """Run the program until it or standard input ends."""
    with contextlib.suppress(OSError):  # this host may not have the folder
        os.chdir(folder)
    me = os.getpid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _do_nothing)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=lambda: end_with_parent(me))
    ended = os.pidfd_open(process.pid)
    while ended not in select.select([ended, 0], [], [])[0]:
        if not os.read(0, 4096):
            _end(process)
            break
    code = process.wait()
    return code if code >= 0 else 128 - code


def _do_nothing(number: int, frame: object) -> None:
    """The program gets signals to the process group too; the watchdog ends after it."""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process group, and kill it after TERMINATE_S."""
    os.killpg(0, signal.SIGTERM)
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < TERMINATE_S:
        time.sleep(0.05)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
