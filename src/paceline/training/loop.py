"""The training loop of one rank.

    input-wait ─▶ forward ─▶ backward ─▶ exchange ─▶ optimizer          every step
                                                      checkpoint         every so many steps
    evaluate on validation, one line of curves.csv                       every epoch

This is one phase; `phase_runner.py` runs the phases. Random numbers (dropout) follow from (seed, step, index along the
data axis): ranks with equal samples draw equal numbers, and so does a resumed run. If checkpoints are configured, the
last step of a phase always writes one: the trained model.

With train.accumulate = A a rank computes its share of a step in A micro-batches, in less memory. A micro-batch's loss
is the sum over its samples, divided by the samples of the whole step: its gradients add up to those of the whole step,
up to the order of summation. DDP sends nothing before the last backward pass. Batch-norm statistics are of a
micro-batch.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, fields, replace

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from paceline import units
from paceline.records.run import Epoch, NoiseEpoch
from paceline.storage.codec import write_atomically
from paceline.training.batches import Batch, Order, share
from paceline.training.rank import Rank
from paceline.training.resume import save_checkpoint


def train(rank: Rank) -> bool:
    """Whether the phase was trained to its end; False after a termination notice, with a checkpoint written."""
    recorder, phase, per_epoch = rank.recorder, rank.phase, rank.inputs.batches.steps_per_epoch
    device = rank.objective.sums.device
    rank.network.begin_training()
    with recorder.span("startup", "warm-up"):
        rank.optim.strategy.warm_up(lambda: _warm_up_pass(rank))
        rank.optim.strategy.everyone.barrier()
    recorder.begin_steps(rank.progress.step, rank.total_steps)
    while rank.progress.step < phase.last_step:
        epoch = phase.epoch(rank.progress.step, per_epoch)
        first_step = phase.first_step + (epoch - phase.first_epoch) * per_epoch
        last_step = min(first_step + per_epoch, phase.last_step)
        order = rank.inputs.batches.order(epoch)
        started_at_ns = recorder.clock_ns() - units.nanoseconds(rank.progress.epoch_elapsed_s)
        while rank.progress.step < last_step:
            everyone = rank.optim.strategy.everyone
            if rank.notice.agreed(rank.progress.step, everyone, rank=rank.place.rank, device=device):
                save_checkpoint(rank)
                everyone.barrier()  # no rank exits before it is on the disk
                return False
            with recorder.span("step"):
                _step(rank, order, rank.progress.step - first_step)
            if rank.progress.step == last_step:
                _await_device(rank)
            rank.progress.epoch_elapsed_s = units.seconds(recorder.clock_ns() - started_at_ns)
            if rank.progress.step < last_step and _checkpoint_due(rank):
                save_checkpoint(rank)
        _end_epoch(rank, epoch, last_step - first_step)
        # After the line of the epoch: a run that resumes here needs it.
        if _checkpoint_due(rank):
            save_checkpoint(rank)
    return True


def _step(rank: Rank, order: Order, number: int) -> None:
    """One optimizer step."""
    recorder, strategy = rank.recorder, rank.optim.strategy
    with recorder.span("input-wait"):
        batch = rank.inputs.batches.take(order, number)
    strategy.before_forward()
    _seed_step(rank)
    # Before the exchange: servers get the rate with the gradients.
    _set_rate(rank)
    *first, last = micro_batches(batch, rank.place.manifest.point.train.accumulate)
    with no_sync(strategy.module, bool(first)):
        losses = [_forward_backward(rank, part) for part in first]
    losses.append(_forward_backward(rank, last))
    strategy.exchange()
    with recorder.span("optimizer"):
        _measure_noise(rank, batch.samples_global)
        if clip_norm := rank.place.manifest.point.train.clip_norm:
            strategy.clip(clip_norm)
        strategy.update()
        strategy.clear()
        if rank.optim.adascale:
            rank.optim.adascale.advance()
        if rank.optim.average:
            rank.optim.average.update(rank.progress.step + 1 - rank.phase.first_step)
    rank.progress.step += 1
    recorder.end_step(rank.progress.step)
    if rank.on_step:
        rank.on_step(rank.progress.step, torch.stack(losses).sum() / batch.samples_global)


def micro_batches(batch: Batch, parts: int) -> list[Batch]:
    """At most `parts` micro-batches of a batch, each with samples; a batch without samples stays whole."""
    count = min(parts, batch.samples)
    if count <= 1:
        return [batch]
    bounds = [share(batch.samples, part, count) for part in range(count)]
    return [
        Batch(batch.inputs[start:end], batch.labels[start:end], end - start, batch.samples_global)
        for start, end in bounds
    ]


def no_sync(module: nn.Module, wanted: bool = True) -> AbstractContextManager[None]:
    """Context in which DDP does not send gradients, if `wanted`; other strategies never send during a pass."""
    return module.no_sync() if wanted and isinstance(module, DistributedDataParallel) else nullcontext()


def _forward_backward(rank: Rank, batch: Batch) -> torch.Tensor:
    """Sum of the losses of a micro-batch; adds its gradients."""
    optim, network = rank.optim, rank.network
    if network.participation:
        network.participation.counted = batch.samples > 0
    with optim.noise.watching(network.learner, rank.progress.step, batch, optim.strategy.loss_factor):
        return optim.strategy.forward_backward(batch, rank.objective)


def _measure_noise(rank: Rank, samples_global: int) -> None:
    """Measure the gradient noise of this step, if configured; AdaScale's rate for this step follows from it."""
    rank.optim.noise.exchanged(rank.network.learner, rank.progress.step, samples_global)
    if rank.optim.adascale:
        for seen in rank.optim.noise.gather(rank.optim.strategy.peers):  # a message of a few bytes in every step
            rank.optim.adascale.measured(seen.variance, seen.signal, seen.parts)
        _set_rate(rank)


def _set_rate(rank: Rank) -> None:
    steps = rank.optim.adascale.progress if rank.optim.adascale else rank.progress.step - rank.phase.first_step
    rate = rank.optim.lr_schedule.lr(steps) * rank.optim.gain
    for group in rank.optim.optimizer.param_groups:
        group["lr"] = rate


def _await_device(rank: Rank) -> None:
    """Wait for queued work before an epoch's clock is read (device sync, once an epoch; nothing on a CPU)."""
    if rank.objective.sums.is_cuda:
        torch.cuda.synchronize()


def _warm_up_pass(rank: Rank) -> None:
    """Forward and backward pass with unused gradients, with the same number of samples as a real step."""
    batches, strategy = rank.inputs.batches, rank.optim.strategy
    batch, *_ = micro_batches(batches.take(batches.order(0), 0), rank.place.manifest.point.train.accumulate)
    if rank.network.participation:
        rank.network.participation.counted = batch.samples > 0
    rank.objective.loss_sum(strategy.module(batch.inputs), batch).backward()


def _seed_step(rank: Rank) -> None:
    """Seed all generators that a model may use with (seed, step, data index)."""
    key = (rank.place.manifest.seed, rank.progress.step, rank.place.data_index)
    seed = np.random.SeedSequence(key).generate_state(1)[0].item()
    # Not torch.manual_seed: before CUDA is initialised it records the call stack each time, 0.25 ms.
    torch.default_generator.manual_seed(seed)
    if rank.objective.sums.is_cuda:
        torch.cuda.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def _end_epoch(rank: Rank, epoch: int, steps: int) -> None:
    """Evaluate, and write a line of `curves.csv`."""
    recorder = rank.recorder
    rank.optim.strategy.settle()
    samples = rank.inputs.batches.samples_until(steps)
    rank.optim.strategy.peers.sum(rank.objective.sums)
    loss_sum, correct = rank.objective.sums.tolist()
    evaluating_at_ns = recorder.clock_ns()
    loss, accuracy = None, None
    if len(rank.inputs.validation):
        loss, accuracy = rank.evaluate(rank.inputs.samples, rank.inputs.validation)
        rank.network.begin_training()
    done = Epoch(
        epoch=epoch + 1,
        step=rank.progress.step,
        samples=samples,
        train_loss=loss_sum / samples,
        train_accuracy=correct / samples,
        validation_loss=loss,
        validation_accuracy=accuracy,
        epoch_s=rank.progress.epoch_elapsed_s,
        evaluate_s=units.seconds(recorder.clock_ns() - evaluating_at_ns),
        whole=samples == rank.inputs.batches.num_samples,
        resumed=rank.progress.resumed_in_epoch,
        phase=rank.phase.name,
    )
    rank.progress.epochs += (done,)
    rank.objective.sums.zero_()
    rank.progress.epoch_elapsed_s = 0.0
    rank.progress.resumed_in_epoch = False
    _end_noise(rank, epoch, rank.progress.step - steps)
    if rank.place.rank == 0:
        write_atomically(rank.place.folder.curves, _csv(rank.progress.epochs))
        if rank.progress.noise_epochs:
            write_atomically(rank.place.folder.noise, _csv(rank.progress.noise_epochs))


def _end_noise(rank: Rank, epoch: int, first_step: int) -> None:
    """Record the gradient noise of an epoch, if it was measured."""
    noise = rank.optim.noise.end_epoch(epoch + 1, first_step, rank.optim.strategy.peers)
    if noise and rank.optim.adascale:
        noise = replace(noise, gain=rank.optim.adascale.gain, progress=rank.optim.adascale.progress)
    if noise:
        rank.progress.noise_epochs += (noise,)


def _csv(epochs: tuple[Epoch, ...] | tuple[NoiseEpoch, ...]) -> bytes:
    return csv_bytes([each.name for each in fields(epochs[0])], [astuple(epoch) for epoch in epochs])


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A CSV file with one header line."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(header)
    lines.writerows(rows)
    return text.getvalue().encode()


def _checkpoint_due(rank: Rank) -> bool:
    every = rank.place.manifest.point.train.checkpoint_every
    return every > 0 and (rank.progress.step % every == 0 or rank.progress.step == rank.phase.last_step)
