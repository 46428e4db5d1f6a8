"""Runs a script of the user's as `__main__`, unchanged, with the probe beside it.

    run_script(Path("train.py"), ["--epochs", "2"], folder, identity, started_at_ns)  ──▶ ScriptOutcome

The script finds what it would under `python train.py`: its arguments, its folder first on the path, a `__main__` of its
own, so that what it defines can be pickled and workers can be spawned. How it ends is what this returns: its exit code
as a shell would see it; a traceback is printed once, without the frames of the probe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.identity import Identity
from paceline.probe.as_main import prepared_script, run_as_main
from paceline.probe.counters import Counters
from paceline.probe.recorder import Recorder
from paceline.records.codec import write_record
from paceline.records.folder import RunFolder
from paceline.records.pulse import PulseWriter
from paceline.records.script import ScriptOutcome
from paceline.records.spans import SpanWriter

if TYPE_CHECKING:
    from paceline.probe.watch import Watcher

FLUSH_EVERY_S = 1.0
"""A launcher ends the other ranks of a failed one without asking: what they did up to then should be on the disk."""


def run_script(
    script: Path | str, arguments: Sequence[str], folder: RunFolder, identity: Identity, started_at_ns: int
) -> ScriptOutcome:
    """Run a script, or a module by its name, on this rank to its end; its spans and outcome go into the run folder."""
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
    """Run a script with everything watched; `joined` is told when it has its process group. The recorder stays open."""
    code, main = prepared_script(script, arguments)
    recorder.flush_every(FLUSH_EVERY_S)
    from paceline.probe.watch import Watcher  # loads torch: seconds, which count as the script's own imports

    recorder.add("startup", started_at_ns, recorder.clock_ns(), "imports")
    watch = Watcher(recorder, None if joined is None else lambda: joined(watch))
    pid = os.getpid()
    ending = run_as_main(code, main)
    if os.getpid() != pid:
        sys.exit(ending.exit_code)  # a child that the script forked, and that has come to the script's end
    sight = watch.end()
    return ScriptOutcome(
        script=str(script),
        arguments=tuple(arguments),
        rank=identity.rank if watch.rank is None else watch.rank,
        size=watch.size or identity.size,
        host=identity.host,
        pid=pid,
        exit_code=ending.exit_code,
        error=ending.error,
        traceback=ending.traceback,
        steps=sight.steps,
        samples=sight.samples,
        timed_steps=max(0, sight.steps - 1),
        timed_samples=sight.timed_samples,
        timed_from_ns=sight.timed_from_ns,
        timed_to_ns=sight.timed_to_ns,
        device=sight.device,
        backend=watch.backend,
        found=sight.found,
        notes=sight.notes,
    )
