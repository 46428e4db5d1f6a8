"""A rank that does what the truth is known of, with the probe on (bench/live.py)."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
import torch.distributed as dist
from bench.fault_rank import train
from bench.live import serve

from paceline.probe.collectives import watch_collectives
from paceline.probe.recorder import Recorder
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanWriter
from paceline.training.rank import Rank


@contextlib.contextmanager
def watched(rank: int, folder: str) -> Iterator[Recorder]:
    """All messages are recorded into a run folder meanwhile."""
    where = RunFolder(Path(folder))
    recorder = Recorder(SpanWriter(where.rank_spans(rank)), PulseWriter(where.rank_pulse(rank)))
    watching = watch_collectives(recorder)
    yield recorder
    dist.barrier()
    time.sleep(0.1)  # completions are told by gloo's threads: let them say the last
    del watching
    recorder.close()


def stamped(rank: int, size: int, **arguments: Any) -> dict[str, list]:
    """Train; and when the last gradient of each step was ready, as a hook of PyTorch's own saw it."""
    ready: dict[int, int] = {}

    def stamp(me: Rank) -> None:
        for parameter in me.network.model.parameters():
            parameter.register_post_accumulate_grad_hook(
                lambda _: ready.update({me.progress.step: time.monotonic_ns()})
            )

    said = train(rank, size, **arguments, prepare=stamp)
    return {**said, "ready_ns": [ready[step] for step in sorted(ready)]}


def exchange(rank: int, size: int, *, folder: str, payload_bytes: int, repeats: int) -> None:
    """All-reduces of one size, one after the other."""
    numbers = torch.ones(payload_bytes // 4)
    dist.all_reduce(numbers)  # opens connections, and is not recorded
    with watched(rank, folder) as recorder:
        for _ in range(repeats):
            with recorder.span("communicate"):
                dist.all_reduce(numbers)


def profiled(rank: int, size: int, *, folder: str, payload_bytes: int, repeats: int) -> list[float]:
    """The same beside torch.profiler; when it saw each end, in nanoseconds of the monotonic clock.

    Marks are recorded by both clocks: an event of the profiler, and what the monotonic clock showed within it.
    """
    numbers = torch.ones(payload_bytes // 4)
    marks = []
    with watched(rank, folder), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for number in range(repeats):
            time.sleep(0.02 * rank * (number % 2))
            with torch.profiler.record_function("mark"):
                marks.append(time.monotonic_ns())
            dist.all_reduce(numbers)
        dist.barrier()
    events = profiler.events() or []
    starts = sorted(event.time_range.start for event in events if event.name == "mark")
    ends = sorted(event.time_range.end for event in events if event.name == "gloo:all_reduce")
    ahead = min(mark - 1000 * start for mark, start in zip(marks, starts, strict=True))
    return [1000 * end + ahead for end in ends]


if __name__ == "__main__":
    serve({"train": train, "stamped": stamped, "exchange": exchange, "profiled": profiled})
