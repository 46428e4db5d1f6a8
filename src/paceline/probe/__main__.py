"""python -m paceline.probe [--out DIR] train.py --its --arguments: run a script on this rank, and record it.

The program that starts the ranks (torchrun, srun, mpiexec, a shell) runs this instead of the script:

    torchrun --nproc-per-node 2 -m paceline.probe train.py --epochs 3
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import PacelineError, RequestError
from paceline.identity import this_rank

USAGE = """\
Usage: python -m paceline.probe [--out DIR] SCRIPT [ARGUMENTS...]
       python -m paceline.probe [--out DIR] -m MODULE [ARGUMENTS...]

Runs a PyTorch script unchanged, as one rank of any number, and records its steps, its messages, and where
the time goes. Start it with torchrun, srun, mpiexec or by hand, instead of the script:

    torchrun --nproc-per-node 2 -m paceline.probe train.py --epochs 3
    srun python -m paceline.probe --out runs/first train.py
    python -m paceline.probe -m package.train

--out DIR   the folder for the record; without it runs/<script>-<date>-<time>
"""


@dataclass(frozen=True, slots=True)
class Request:
    """The parsed command line."""

    script: Path | str
    """A file, or the name of a module."""
    arguments: tuple[str, ...]
    out: Path | None


def parsed(words: list[str]) -> Request | None:
    """The parsed command line; None for --help."""
    out, rest = None, list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-h", "--help"):
            return None
        if word == "--out" and rest:
            out = Path(rest.pop(0))
        elif word.startswith("--out="):
            out = Path(word.removeprefix("--out="))
        elif word == "-m" and rest:
            return Request(rest[0], tuple(rest[1:]), out)
        elif word == "--" and rest:
            return Request(Path(rest[0]), tuple(rest[1:]), out)
        elif word.startswith("-"):
            raise RequestError(
                f"{word} is not an option of the probe, or its value is missing.",
                right="Options of the probe come before the script: --out DIR, -m MODULE. The script's come after it.",
                next="python -m paceline.probe --help",
            )
        else:
            return Request(Path(word), tuple(rest), out)
    raise RequestError(
        "There is no script to run.",
        right="The script, and after it its arguments.",
        next="python -m paceline.probe train.py --its --arguments",
    )


def main(words: list[str], started_at_ns: int) -> int:
    """Run the requested script; its exit code, 2 if the request was wrong."""
    try:
        request = parsed(words)
        if request is None:
            sys.stdout.write(USAGE)
            return 0
        return _run(request, started_at_ns)
    except PacelineError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _run(request: Request, started_at_ns: int) -> int:
    from paceline.probe.attached import ExternalRank
    from paceline.probe.run_script import run_watched
    from paceline.storage.codec import write_record

    identity = this_rank()
    attached = ExternalRank(request.script, request.out, identity)
    outcome = run_watched(
        request.script, request.arguments, attached.recorder, identity, started_at_ns, attached.joined
    )
    try:
        folder = attached.end()
        write_record(folder.rank_script(outcome.rank), outcome)
    except PacelineError as error:
        # An incomplete record does not change the exit code of the script.
        sys.stderr.write(f"paceline: {error}\n")
        return outcome.exit_code
    if outcome.rank == 0:
        steps = "1 step" if outcome.steps == 1 else f"{outcome.steps} steps"
        sys.stderr.write(f"paceline: {', '.join((steps, *outcome.found))}. {' '.join(outcome.notes)}".rstrip() + "\n")
        sys.stderr.write(f"paceline: paceline trace {folder.path}\n")
    return outcome.exit_code


if __name__ == "__main__":
    code = main(sys.argv[1:], time.monotonic_ns())
    if code == 130:
        # As the interpreter after an uncaught Ctrl-C: end by the signal, so that a shell stops too.
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(code)
