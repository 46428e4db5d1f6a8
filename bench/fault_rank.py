"""A rank that faults are put into: trains thirty steps at a time, each time with another one (bench/live.py).

A delay is put in by PyTorch's own hooks, so that it falls where slow code of a user's would; late batches by a source
of batches that waits for them; checkpoints are large because the model is. Programs beside the ranks are rank 0's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
import torch.distributed as dist

from bench.fault_table import CHECKPOINT_EVERY, Fault
from bench.live import serve
from paceline import catalog
from paceline.identity import Identity
from paceline.probe.collectives import watch_collectives
from paceline.records.run import Manifest
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder
from paceline.training import loop
from paceline.training.batches import Batch, Batches, Order, ShareBatches
from paceline.training.rank import Rank
from paceline.training.reading import load_data
from paceline.training.session import Session

MODEL = Path(__file__).with_name("fault_model.py")
LOAD = Path(__file__).with_name("fault_load.py")
BATCH = 40
CORES = sorted(os.sched_getaffinity(0))


class Delay:
    """Takes so long whenever it is called, and remembers how long it took."""

    def __init__(self, length_s: float, *, busy: bool) -> None:
        self._length_s = length_s
        self._busy = busy
        self._square = torch.ones(64, 64)
        self.taken_s: list[float] = []

    def __call__(self) -> None:
        started = time.monotonic()
        if self._busy:
            while time.monotonic() - started < self._length_s:
                self._square @ self._square
        else:
            time.sleep(self._length_s)
        self.taken_s.append(time.monotonic() - started)


class LateBatches:
    """Batches that have to be waited for."""

    def __init__(self, batches: Batches | ShareBatches, delay: Delay) -> None:
        self._batches = batches
        self._delay = delay

    def take(self, order: Order, number: int) -> Batch:
        self._delay()
        return self._batches.take(order, number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)


def train(
    rank: int,
    size: int,
    *,
    folder: str,
    data: str,
    fault: dict[str, Any],
    prepare: Callable[[Rank], None] = lambda me: None,
) -> dict[str, list[float]]:
    """A run with a fault in it; how long this rank was held up on purpose, each time, as it measured it itself."""
    given = Fault(**{**fault, "rows": tuple(fault["rows"])})
    session, manifest = _session(rank, size, Path(folder), data, given)
    delay = Delay(given.delay_s, busy=given.busy)
    with _pinned(rank, size), _programs(rank, given) as let_go:
        watching = watch_collectives(session._recorder)
        me = session.rank(load_data(Path(data), manifest.point, rank))
        if given.delay_s and given.who in (rank, None):
            put_in(me, given.where, delay)
        prepare(me)
        me.on_step = lambda step, loss: let_go() if step == given.from_step else None
        if not given.from_step:
            let_go()
        loop.train(me)
        dist.barrier()
        del watching
    write_record(RunFolder(Path(folder)).rank_report(rank), session._done(steps=me.progress.step))
    return {"taken_s": delay.taken_s}


def put_in(me: Rank, where: str, delay: Delay) -> None:
    """Have a rank held up in one part of its step."""
    if where == "forward":
        me.network.model.register_forward_pre_hook(lambda module, images: delay())
    elif where == "backward":
        me.network.model.register_forward_hook(lambda module, images, scores: _before_backward(scores, delay))
    elif where == "optimizer":
        me.optim.optimizer.register_step_pre_hook(lambda optimizer, arguments, named: delay())
    else:
        me.inputs = replace(me.inputs, batches=LateBatches(me.inputs.batches, delay))


def _before_backward(scores: torch.Tensor, delay: Delay) -> None:
    if scores.requires_grad:
        scores.register_hook(lambda gradient: delay())


@contextlib.contextmanager
def _pinned(rank: int, size: int) -> Iterator[None]:
    """Two ranks have a core each, as a study would give them; more share what there is."""
    own = {CORES[rank]} if size <= len(CORES) else set(CORES)
    os.sched_setaffinity(0, own)
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


@contextlib.contextmanager
def _programs(rank: int, fault: Fault) -> Iterator[Callable[[], None]]:
    """The programs beside the ranks, held until they are let go; ended with the run."""
    started: list[subprocess.Popen[str]] = []
    if rank == 0 and fault.load:
        for core in CORES if fault.who is None else CORES[fault.who : fault.who + 1]:
            words = [sys.executable, str(LOAD), fault.load, str(core), str(os.getpid())]
            started += [_started(words) for _ in range(fault.programs)]
    try:
        for program in started:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n", "a program beside the ranks did not start"
        yield lambda: _let_go(started)
    finally:
        for program in started:
            program.kill()
            program.wait()
            for pipe in (program.stdin, program.stdout):
                assert pipe is not None
                pipe.close()


def _started(words: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _let_go(programs: Sequence[subprocess.Popen[str]]) -> None:
    for program in programs:
        assert program.stdin is not None
        program.stdin.close()


def _session(rank: int, size: int, folder: Path, data: str, fault: Fault) -> tuple[Session, Manifest]:
    identity = Identity(
        rank=rank,
        size=size,
        local_rank=rank,
        local_size=size,
        launcher="bench",
        host="",
        store_host="",
        store_port=0,
        store_fd=None,
        parent_pid=None,
    )
    point = Point(
        data=DataSettings(dataset="digits"),
        data_digest="",
        model=ModelSettings(name="fault_model.py:build", options={"ballast_mb": fault.ballast_mb}),
        model_digest="",
        train=TrainSettings(
            batch_global=BATCH, steps=fault.steps, checkpoint_every=CHECKPOINT_EVERY if fault.ballast_mb else 0
        ),
        ranks=size,
        strategy=fault.strategy,
        options=dict(catalog.strategy(fault.strategy).options),
    )
    manifest = Manifest(
        study="faults",
        point_id=point.point_id,
        point=point,
        run=1,
        seed=fault.number,
        data_folder=data,
        model_file=str(MODEL),
        cores=None,
        placement="",
        launched_at_ns=time.monotonic_ns(),
        launched_at="",
    )
    return Session(identity, RunFolder(folder), manifest, time.monotonic_ns()), manifest


if __name__ == "__main__":
    serve({"train": train})
