"""Runs a user's script as `__main__`, unchanged, and records it.

    run_script(Path("train.py"), ["--epochs", "2"], folder, identity, started_at_ns)  ──▶ ScriptOutcome

The script has the environment of `python train.py`: its arguments, its folder first on the path, its own `__main__`,
which pickling classes and spawning workers need. The outcome has its exit code as in a shell; a traceback is printed
once, without frames of the probe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.identity import Identity
from paceline.probe.as_main import prepared_script, run_as_main
from paceline.probe.counter_sampler import Counters
from paceline.probe.recorder import Recorder
from paceline.records.script_outcome import ScriptOutcome
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanWriter

if TYPE_CHECKING:
    from paceline.probe.watcher import Watcher

FLUSH_EVERY_S = 1.0
"""Short, because a launcher kills the other ranks when one fails: their spans should be on the disk by then."""


def run_script(
    script: Path | str, arguments: Sequence[str], folder: RunFolder, identity: Identity, started_at_ns: int
) -> ScriptOutcome:
    """Run a script, or a module by name, on this rank; its spans and outcome go to the run folder."""
    writer = SpanWriter(folder.rank_spans(identity.rank))
    recorder = Recorder(writer, PulseWriter(folder.rank_pulse(identity.rank)))
    with Counters(folder.rank_counters(identity.rank), host_energy=identity.local_rank == 0):
        outcome = run_watched(script, arguments, recorder, identity, started_at_ns)
    recorder.beat("done")
    recorder.close()
    write_record(folder.rank_script(identity.rank), outcome)
    return outcome


def run_watched(
    script: Path | str,
    arguments: Sequence[str],
    recorder: Recorder,
    identity: Identity,
    started_at_ns: int,
    joined: Callable[[Watcher], None] | None = None,
) -> ScriptOutcome:
    """Run a script under the watcher; `joined` is called when it has its process group. The recorder stays open."""
    code, main = prepared_script(script, arguments)
    recorder.flush_every(FLUSH_EVERY_S)
    from paceline.probe.watcher import Watcher  # imports torch: seconds that count as the script's imports

    recorder.add("startup", started_at_ns, recorder.clock_ns(), "imports")
    watcher = Watcher(recorder, None if joined is None else lambda: joined(watcher))
    pid = os.getpid()
    ending = run_as_main(code, main)
    if os.getpid() != pid:
        sys.exit(ending.exit_code)  # a child that the script forked
    observed = watcher.end()
    return ScriptOutcome(
        script=str(script),
        arguments=tuple(arguments),
        rank=identity.rank if watcher.rank is None else watcher.rank,
        size=watcher.size or identity.size,
        host=identity.host,
        pid=pid,
        exit_code=ending.exit_code,
        error=ending.error,
        traceback=ending.traceback,
        timed_steps=max(0, observed.steps - 1),
        backend=watcher.backend,
        **asdict(observed),
    )
