"""A program of someone else's that must not outlive us.

    python -m paceline.launch.tether - FOLDER COMMAND...        ends it when standard input ends
    python -m paceline.launch.tether PARENT_PID COMMAND...      becomes it, tied to its parent by the kernel

    launcher ══ a pipe, never written to ═════════▶ tether - ──▶ mpiexec, torchrun
             ══ tether PID = agent (ssh) ══════════▶ tether - ──▶ the same, on another host

mpiexec and torchrun do not end when the process that started them is killed. The first form does: its standard input
ends with the launcher, or with the agent between them. Then the program is asked to end, so that it removes its
own files, and is killed if it does not. Should the tether be killed as well, the kernel ends the program.
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

TERMINATE_S = 2.0
"""Between SIGTERM and SIGKILL."""


def main() -> int:
    """The program's exit code; 127 where there is none such, as a shell would."""
    parent, *command = sys.argv[1:]
    try:
        if parent == "-":
            return _lead(*command)
        end_with_parent(int(parent))
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{error.filename or command[0]}: {error.strerror}\n")
        return 127


def _lead(folder: str, *command: str) -> int:
    """Run it until it or standard input ends."""
    with contextlib.suppress(OSError):  # a folder that this host does not have
        os.chdir(folder)
    me = os.getpid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave_to_the_program)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=lambda: end_with_parent(me))
    ended = os.pidfd_open(process.pid)
    while ended not in select.select([ended, 0], [], [])[0]:
        if not os.read(0, 4096):
            _end(process)
            break
    code = process.wait()
    return code if code >= 0 else 128 - code


def _leave_to_the_program(number: int, frame: object) -> None:
    """A signal to the process group has reached the program too: this process ends after it."""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the program and all in its group to end; kill what is left."""
    os.killpg(0, signal.SIGTERM)
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < TERMINATE_S:
        time.sleep(0.05)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
