"""One rank whose probe is switched on and off: blocks of the same steps that take turns within one process.

    python -m bench.overhead_rank DATA_FOLDER ROUNDS WAY...    as one of 2 or 4 ranks, told by the environment

Every rank prints {"wall": {...}, "cpu": {...}}: seconds of a step, block by block, of each way it was given: with the
probe `off`, `on`, `again` off, or with torch.profiler instead (`profiler`). CPU seconds are those of all its threads.
Blocks are short, since the machine's speed drifts within seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from paceline.identity import this_rank

identity = this_rank()
os.environ |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
CORES = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORES[identity.rank % len(CORES)]})

import torch
import torch.distributed as dist

from bench.loop_speed import our_manifest
from bench.overhead import BLOCK
from paceline.probe.collectives import watch_collectives
from paceline.probe.counter_sampler import EVERY_S, Counters
from paceline.probe.recorder import Recorder
from paceline.storage.folder import RunFolder
from paceline.training import group, loop
from paceline.training.batches import Order
from paceline.training.rank import Rank
from paceline.training.reading import load_data
from paceline.training.session import Session


class Silent:
    """Stands in for the recorder: a loop without a probe."""

    def __init__(self) -> None:
        self._nothing = contextlib.nullcontext()

    def span(self, kind: str) -> contextlib.nullcontext[None]:
        return self._nothing

    def end_step(self, step: int) -> None:
        pass


class Sampling:
    """Counters once in every second with the probe on, over its blocks taken together: most of them are shorter."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._due_s = EVERY_S

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        began_s = time.monotonic()
        with Counters(self._path, host_energy=identity.rank == 0, every_s=self._due_s):
            yield
        took_s = time.monotonic() - began_s
        self._due_s = self._due_s - took_s if took_s < self._due_s else EVERY_S


@contextlib.contextmanager
def probed(way: str, rank: Rank, recorder: Recorder, sampling: Sampling) -> Iterator[None]:
    """The rank with its probe on, off, or with the profiler in its place."""
    rank.recorder = recorder if way == "on" else Silent()  # pyright: ignore[reportAttributeAccessIssue]
    watching = watch_collectives(recorder) if way == "on" else None
    beside = contextlib.nullcontext()
    if way == "on":
        beside = sampling.on()
    elif way == "profiler":
        beside = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with beside:
        yield
    del watching


def probed_rank(data: Path, folder: Path) -> Rank:
    """A rank of the default study; its counters are switched on and off with the rest."""
    manifest = our_manifest(data, identity.size)
    session = Session(identity, RunFolder(folder), manifest, time.monotonic_ns())
    session._counters.close()
    rank = session.rank(load_data(data, manifest.point, identity.rank))
    rank.network.begin_training()
    return rank


def take_steps(rank: Rank, order: Order, count: int) -> None:
    for _ in range(count):
        with rank.recorder.span("step"):
            loop._step(rank, order, rank.progress.step % (rank.inputs.batches.steps_per_epoch - 1))


def main() -> None:
    data, rounds, ways = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    wall: dict[str, list[float]] = {way: [] for way in ways}
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        group.join(identity, RunFolder(folder), our_manifest(data, identity.size), torch.device("cpu"))
        own = folder / f"rank-{identity.rank}"
        rank = probed_rank(data, own)
        recorder, order = rank.recorder, rank.inputs.batches.order(0)
        sampling = Sampling(RunFolder(own).rank_counters(identity.rank))
        chance = random.Random(rounds)  # the same order on every rank
        for number in range(rounds + 1):
            for way in chance.sample(ways, len(ways)):
                with probed(way, rank, recorder, sampling):
                    take_steps(rank, order, 1)
                    dist.barrier()
                    started, worked = time.perf_counter(), time.process_time()
                    take_steps(rank, order, BLOCK)
                    dist.barrier()
                    took = (time.perf_counter() - started) / BLOCK, (time.process_time() - worked) / BLOCK
                if number:  # the first round warms up
                    wall[way].append(took[0])
                    cpu[way].append(took[1])
        recorder.close()
    json.dump({"wall": wall, "cpu": cpu}, sys.stdout)
    group.leave()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
