"""Studies of light ranks, in processes that can be killed at any moment.

    python light_study.py         reads one JSON object a line from its standard input, forks, and executes a study:
        {"study": FILE, "folder": ..., "cache": ..., "ledger": ..., "overrides": [...], "seconds": 0.01,
         "kill_after_s": 0.3,     kill it then, or
         "kill_when": FILE,       kill it when that file is there, or
         "kill_at": 4,            kill it at the fourth change of a file's name, or
         "in_place": NAME}        write files in place, without the safeguard, and kill it when one was emptied
    and answers with how it ended: {"code": 0}, or {"code": -9} when it was killed.
    python light_study.py JSON    executes the one study that the object describes.

Forking a process that has imported everything costs a hundredth of starting one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from paceline.errors import PacelineError
from paceline.launch.local import LocalLauncher
from paceline.storage import codec
from paceline.studies.execute.execute import execute
from paceline.studies.folder import bookkeeping
from paceline.studies.load.load import load_study

WORKER = Path(__file__).with_name("light_worker.py")


class Studies:
    """The test's side: starts the process above, and ends it."""

    def __enter__(self) -> "Studies":
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def execute(self, **told: object) -> int:
        """Execute a study in a process of its own; its exit code, -9 when it was killed."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(told, default=str) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["code"]


def launcher(ledger: Path, seconds: float) -> LocalLauncher:
    return LocalLauncher((sys.executable, str(WORKER), str(ledger), str(seconds)))


def study(told: dict) -> int:
    try:
        done = execute(
            load_study(told["study"], told.get("overrides", [])),
            Path(told["folder"]),
            launcher=launcher(Path(told["ledger"]), told.get("seconds", 0.01)),
            preflight=False,
            cache=Path(told["cache"]),
        )
        return 1 if done.failures else 0
    except PacelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def kill_at(number: int) -> None:
    """Kill this process before (odd numbers) or after (even ones) a file is renamed, linked or removed."""
    changes = 0

    def counting(change):
        def counted(*arguments, **options):
            nonlocal changes
            for moment in ("before", "after"):
                changes += 1
                if changes == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                if moment == "before":
                    change(*arguments, **options)

        return counted

    for name in ("replace", "rename", "link", "unlink"):
        setattr(os, name, counting(getattr(os, name)))


def write_in_place(target: str) -> None:
    """Take the safeguard away: write without a temporary file, and be killed when `target` has been emptied."""

    def write(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            if path.name == target:
                os.kill(os.getpid(), signal.SIGKILL)
            file.write(data)

    codec.write_atomically = bookkeeping.write_atomically = write


def ended(child: int, told: dict) -> int | None:
    """The exit code of a child; None when the moment has come to kill it."""
    deadline = time.monotonic() + told.get("kill_after_s", 120.0)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline or ("kill_when" in told and os.path.exists(told["kill_when"])):
            return None
        time.sleep(0.002)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        child = os.fork()
        if child == 0:
            if "kill_at" in told:
                kill_at(told["kill_at"])
            if "in_place" in told:
                write_in_place(told["in_place"])
            os._exit(study(told))
        code = ended(child, told)
        if code is None:
            os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"code": code}), flush=True)


if __name__ == "__main__":
    sys.exit(study(json.loads(sys.argv[1])) if len(sys.argv) > 1 else main())
