"""What the ranks of `ranks.py` are asked to do. Every case gets its rank and size first."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import noise_cases
import numpy as np
import pretrained_cases
import torch
import torch.distributed as dist
import two_axis

from paceline import catalog
from paceline.analyze.run.messages import COLLECTIVE
from paceline.data.cache import open_dataset
from paceline.identity import Identity
from paceline.probe.collectives import watch_collectives
from paceline.records.run import Manifest
from paceline.records.settings import AugmentSettings, DataSettings, FinetuneSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import read_spans
from paceline.training import evaluate as evaluation
from paceline.training import loop, mpi_session
from paceline.training.batches import Samples
from paceline.training.checkpoint import state_tensors
from paceline.training.rank import Rank
from paceline.training.reading import load_data
from paceline.training.resume import resume
from paceline.training.session import Session, weights_sha256
from paceline.training.termination_notice import TerminationNotice

two_axis.register()
noise = noise_cases.noise
frozen_base = pretrained_cases.frozen_base


def leave() -> None:
    """End MPI where a case has started it."""
    mpi_session.finalize()


_sessions: list[Session] = []


def kept(one: Session) -> Session:
    """The same, to be ended by `over`."""
    _sessions.append(one)
    return one


def over() -> None:
    """End the threads that sessions have started: each looks at all the others every second."""
    while _sessions:
        one = _sessions.pop()
        one._counters.close()
        one._recorder._over.set()


class Stopped(Exception):
    """The run was stopped by the test."""


def identity(rank: int, size: int) -> Identity:
    return Identity(
        rank=rank,
        size=size,
        local_rank=rank,
        local_size=size,
        launcher="test",
        host=socket.gethostname(),
        store_host="127.0.0.1",
        store_port=0,
        store_fd=None,
        parent_pid=None,
    )


def session(rank: int, size: int, folder: str, data: str, settings: dict[str, Any]) -> tuple[Session, Manifest]:
    """A session over digits whose settings differ from a small default in what is given."""
    strategy = settings.get("strategy", "ddp")
    train = {"batch_global": 64, "epochs": 1, "optimizer": "adam", "precision": "float64", **settings.get("train", {})}
    point = Point(
        data=DataSettings(**{"dataset": "digits", "train_samples": 640, **settings.get("data", {})}),
        data_digest="",
        model=ModelSettings(
            name=settings.get("model", "cnn-small"),
            options=settings.get("options", {"dropout": 0.0, "dense_dropout": 0.0}),
        ),
        model_digest="",
        train=TrainSettings(**train),
        augment=AugmentSettings(**settings.get("augment", {})),
        finetune=FinetuneSettings(**settings.get("finetune", {})),
        ranks=size,
        strategy=strategy,
        options=settings.get("strategy_options", dict(catalog.strategy(strategy).options)),
    )
    manifest = Manifest(
        study="test",
        point_id=point.point_id,
        point=point,
        run=1,
        seed=settings.get("seed", 3),
        data_folder=data,
        model_file=settings.get("model_file"),
        cores=None,
        placement="",
        launched_at_ns=time.monotonic_ns(),
        launched_at="",
    )
    return kept(Session(identity(rank, size), RunFolder(Path(folder)), manifest, time.monotonic_ns())), manifest


def train(rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any], stop_at: int = 0) -> dict:
    """Train, from a checkpoint where the folder has one; `stop_at` ends it there as a kill would."""
    one, manifest = session(rank, size, folder, data, settings)
    held = load_data(Path(data), manifest.point, rank)
    me = one.rank(held)
    runner = one.phase_runner(me, held)
    losses: list[float] = []

    def on_step(step: int, loss: torch.Tensor) -> None:
        losses.append(loss.item())
        if stop_at and step == stop_at:
            raise Stopped

    me.on_step = on_step
    resumed = resume(me)
    try:
        runner.run()
    except Stopped:
        if size > 1:
            dist.barrier()
        return {"stopped": me.progress.step}
    together = torch.tensor(losses, dtype=torch.float64)
    me.optim.strategy.peers.sum(together)
    state = state_tensors(me.network.model, me.optim.optimizer)
    return {
        "losses": together.tolist(),
        "weights": weights_sha256(me.network.model),
        "state": {name: hash(tensor.contiguous().numpy().tobytes()) for name, tensor in state.items()},
        "curves": json.dumps([[e.train_loss, e.train_accuracy, e.validation_loss, e.step] for e in me.progress.epochs]),
        "resumed_from": resumed.step if resumed else None,
        "phases": [(phase.name, phase.steps, phase.test_loss, phase.test_accuracy) for phase in me.progress.phases],
        "tests_timed": [bool(phase.test_s) for phase in me.progress.phases],
        "trainable": [phase.trainable for phase in me.progress.phases],
        "epochs": [(line.epoch, line.step, line.phase) for line in me.progress.epochs],
        "features_found": me.progress.features and me.progress.features.found,
        "last_rate": me.optim.optimizer.param_groups[0]["lr"],
    }


def first_step(rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any]) -> dict:
    """One step and the validation after it: the weights before and after, and what each was given and told."""
    one, manifest = session(rank, size, folder, data, {**settings, "train": {**settings["train"], "steps": 1}})
    me = one.rank(load_data(Path(data), manifest.point, rank))
    losses: list[float] = []
    me.on_step = lambda step, loss: losses.append(loss.item())
    batch = me.inputs.batches.take(me.inputs.batches.order(0), 0)
    before = {name: weights.detach().clone().numpy() for name, weights in me.network.model.named_parameters()}
    with torch.no_grad():
        scores, labels = me.network.model(batch.inputs).numpy(), batch.labels.numpy()
    loop.train(me)
    with torch.no_grad():
        inputs, validation_labels = me.inputs.samples.gather(torch.from_numpy(me.inputs.validation))
        validation_scores = me.network.model(inputs).numpy()
    return {
        "before": before,
        "after": {name: weights.detach().numpy() for name, weights in me.network.model.named_parameters()},
        "scores": scores,
        "labels": labels,
        "loss": losses[0],
        "validation_scores": validation_scores,
        "validation_labels": validation_labels.numpy(),
        "validation_loss": me.progress.epochs[0].validation_loss,
    }


def evaluate(rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any], count: int) -> tuple:
    """Loss and accuracy of an untrained model on the first `count` test samples."""
    mapped = open_dataset(Path(data))
    one, manifest = session(rank, size, folder, data, settings)
    me = one.rank(load_data(Path(data), manifest.point, rank))
    test = one._samples(mapped.test_images, mapped.test_labels, mapped.dataset)
    indices = torch.arange(count).numpy()
    return evaluated(me, test, indices)


def evaluated(me: Rank, test: Samples, indices: np.ndarray) -> tuple[float, float]:
    """Loss and accuracy over all ranks."""
    return evaluation.evaluate(
        me.network.model,
        test,
        indices,
        me.recorder,
        me.optim.strategy.peers,
        index=me.place.data_index,
        size=me.place.data_size,
    )


def learned(rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any]) -> float:
    """Train; the accuracy on the test set."""
    one, manifest = session(rank, size, folder, data, settings)
    held = load_data(Path(data), manifest.point, rank)
    me = one.rank(held)
    loop.train(me)
    mapped = held.mapped
    test = one._samples(mapped.test_images, mapped.test_labels, mapped.dataset)
    indices = torch.arange(mapped.dataset.test).numpy()
    return evaluated(me, test, indices)[1]


def range_curve(
    rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any], warned: bool = False
) -> dict:
    """A range test: what rank 0 wrote down, the steps that were taken, and the weights they led to."""
    one, manifest = session(rank, size, folder, data, settings)
    held = load_data(Path(data), manifest.point, rank)
    me = one.rank(held)
    if warned:
        me.notice = TerminationNotice(possible=True)
        me.notice._note(signal.SIGUSR1, None)
    assert one.phase_runner(me, held).run()
    if size > 1:
        dist.barrier()
    lines = me.place.folder.lr_range.read_text().splitlines()
    curve = [tuple(map(float, line.split(","))) for line in lines[1:]]
    return {"header": lines[0], "curve": curve, "steps": me.progress.step, "weights": weights_sha256(me.network.model)}


def seen_collectives(rank: int, size: int, *, folder: str, data: str, settings: dict[str, Any]) -> dict:
    """Train with the probe on; the collectives that it saw and the trace's own account of them."""
    one, manifest = session(rank, size, folder, data, settings)
    watching = watch_collectives(one._recorder)
    me = one.rank(load_data(Path(data), manifest.point, rank))
    loop.train(me)
    with torch.inference_mode():
        dist.all_reduce(torch.ones(3))
    del watching
    one._recorder.close()
    trace = read_spans(me.place.folder.rank_spans(rank), rank)
    grad_bytes = sum(p.numel() * p.element_size() for p in me.network.model.parameters())
    rows = [
        (trace.operation[i], int(trace.bytes[i]), int(trace.sequence[i]), int(trace.step[i]))
        for i in range(len(trace))
        if trace.kind[i] == COLLECTIVE
    ]
    rows.sort(key=lambda row: row[2])  # written as they ended, and two under way may end in either order
    shapes = [tuple(p.shape) for p in me.network.model.parameters()]
    return {"rows": rows, "grad_bytes": grad_bytes, "shapes": shapes, "steps": me.progress.step}


def every_operation(rank: int, size: int, *, folder: str) -> dict:
    """Results of collectives with the probe on and off, and which of them it saw."""
    from paceline.probe.recorder import Recorder
    from paceline.storage.pulse import PulseWriter
    from paceline.storage.span_stream import SpanWriter

    where = RunFolder(Path(folder))
    recorder = Recorder(SpanWriter(where.rank_spans(rank)), PulseWriter(where.rank_pulse(rank)))
    plain = _collectives(rank, size)
    watching = watch_collectives(recorder)
    watched = _collectives(rank, size)
    del watching
    after = _collectives(rank, size)
    recorder.close()
    trace = read_spans(where.rank_spans(rank), rank)
    rows = np.flatnonzero(trace.kind == COLLECTIVE)
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    return {"equal": plain == watched == after, "seen": [trace.operation[row] for row in rows]}


def strange_threads(rank: int, size: int) -> int:
    """How many of 30 messages were ended by a thread that the interpreter did not know from an earlier one."""
    known, strange = threading.local(), []

    class Ends:
        def message(self, *_: object, **__: object) -> int:
            return 0

        def group(self, *_: object) -> None:
            pass

        def completed(self, number: int) -> None:
            strange.append(not hasattr(known, "met"))
            known.met = True

    watching = watch_collectives(Ends())  # pyright: ignore[reportArgumentType]
    for _ in range(30):
        dist.all_reduce(torch.ones(1000))
    dist.barrier()
    del watching
    assert len(strange) >= 30
    return sum(strange)


def _collectives(rank: int, size: int) -> list[list[float]]:
    def mine() -> torch.Tensor:
        return torch.arange(4, dtype=torch.float32) + 10 * rank

    results = []
    for operation in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN):
        value = mine()
        dist.all_reduce(value, op=operation)
        results.append(value.tolist())
    value = mine()
    dist.broadcast(value, src=size - 1)
    results.append(value.tolist())
    value = mine()
    dist.reduce(value, dst=0)
    results.append(value.tolist() if rank == 0 else [])
    parts = [torch.empty(4) for _ in range(size)]
    dist.all_gather(parts, mine())
    results.append(torch.cat(parts).tolist())
    whole = torch.empty(4 * size)
    dist.all_gather_into_tensor(whole, mine())
    results.append(whole.tolist())
    work = dist.all_reduce(value := mine(), async_op=True)
    work.wait()
    results.append(value.tolist())
    if rank == 0:
        dist.send(mine(), dst=1)
    elif rank == 1:
        value = torch.empty(4)
        dist.recv(value, src=0)
        results.append(value.tolist())
    dist.barrier()
    return results + _lopsided(rank, size)


def _lopsided(rank: int, size: int) -> list[list[float]]:
    """Collectives in which ranks differ in what they pass, and those without an ordinary result."""
    mine, results = torch.arange(3, dtype=torch.float32) + rank, []
    parts = [torch.empty(3) for _ in range(size)] if rank == size - 1 else None
    dist.gather(mine, parts, dst=size - 1)
    results.append([] if parts is None else torch.cat(parts).tolist())
    objects: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object([float(rank)], objects, dst=0)
    results.append([] if objects is None else [value for (value,) in objects])
    part = torch.empty(3)
    dist.scatter(part, [mine + place for place in range(size)] if rank == 0 else None, src=0)
    results.append(part.tolist())
    dist.monitored_barrier()
    places, values = torch.tensor([[rank, size]]), torch.tensor([1.0, 2.0])
    sparse = torch.sparse_coo_tensor(places, values, (size + 1,), check_invariants=True)
    dist.all_reduce(sparse)
    results.append(sparse.to_dense().tolist())
    return results


def set_ddp_warm_up(rank: int, size: int, *, on: bool) -> None:
    """Take DDP's safeguard away, or put it back."""
    from paceline.training.parallel.ddp import Ddp

    if on:
        Ddp.warm_up = _WARM_UP  # type: ignore[method-assign]
    else:
        Ddp.warm_up = lambda self, forward_backward: None  # type: ignore[method-assign]


def _warm_up() -> Any:
    from paceline.training.parallel.ddp import Ddp

    return Ddp.warm_up


_WARM_UP = _warm_up()
