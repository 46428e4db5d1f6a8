"""The training loop of one rank, readable in one sitting.

    input-wait ─▶ forward ─▶ backward ─▶ exchange ─▶ optimizer          once a step
                                                      checkpoint         every so many steps
    evaluate on validation, one line of curves.csv                       once an epoch

That is one phase; `course.py` leads from phase to phase.
Random numbers (dropout) follow from (seed, step, rank): a run that stopped anywhere goes on with
the same ones. The last step of a phase always leaves a checkpoint where any are asked for: the trained model.
"""

from __future__ import annotations

import csv
import io
import random
from dataclasses import asdict, fields, replace

import numpy as np
import torch
from torch.nn import functional

from paceline import units
from paceline.records.codec import write_atomically
from paceline.records.run import Epoch, NoiseEpoch
from paceline.train.batches import Batch, Order
from paceline.train.evaluate import evaluate
from paceline.train.optim.parts import in_parts, sending_nothing
from paceline.train.rank import Rank
from paceline.train.resume import save_checkpoint


def train(rank: Rank) -> bool:
    """Train from wherever the rank stands to the end of its phase; False where it was told to leave before that.

    It has then written a checkpoint.
    """
    recorder, phase, per_epoch = rank.recorder, rank.phase, rank.batches.steps_per_epoch
    rank.begin_training()
    with recorder.span("startup", "warm-up"):
        rank.strategy.warm_up(lambda: _warm_up_pass(rank))
        rank.strategy.peers.barrier()
    recorder.begin_steps(rank.step, rank.total_steps)
    while rank.step < phase.last_step:
        epoch = phase.epoch(rank.step, per_epoch)
        first_step = phase.first_step + (epoch - phase.first_epoch) * per_epoch
        last_step = min(first_step + per_epoch, phase.last_step)
        order = rank.batches.order(epoch)
        started_at_ns = recorder.clock_ns() - units.nanoseconds(rank.epoch_elapsed_s)
        while rank.step < last_step:
            if rank.notice.agreed(rank.step, rank.strategy.peers, rank=rank.rank, device=rank.sums.device):
                save_checkpoint(rank)
                rank.strategy.peers.barrier()  # nobody leaves before it is on the disk
                return False
            with recorder.span("step"):
                _step(rank, order, rank.step - first_step)
            if rank.step == last_step:
                _await_device(rank)
            rank.epoch_elapsed_s = units.seconds(recorder.clock_ns() - started_at_ns)
            if rank.step < last_step and _checkpoint_due(rank):
                save_checkpoint(rank)
        _end_epoch(rank, epoch, last_step - first_step)
        # After the epoch's line is written: a run that resumes here must not lose it.
        if _checkpoint_due(rank):
            save_checkpoint(rank)
    return True


def _step(rank: Rank, order: Order, number: int) -> None:
    """One optimizer step."""
    recorder, strategy = rank.recorder, rank.strategy
    with recorder.span("input-wait"):
        batch = rank.batches.take(order, number)
    strategy.before_forward()
    _seed_step(rank)
    # Before anything is sent: servers are told the rate together with the gradients.
    _set_rate(rank)
    *first, last = in_parts(batch, rank.manifest.point.train.accumulate)
    with sending_nothing(strategy.module, bool(first)):
        losses = [_forward_backward(rank, part) for part in first]
    losses.append(_forward_backward(rank, last))
    strategy.exchange()
    with recorder.span("optimizer"):
        _look_at_noise(rank, batch.samples_global)
        _clip(rank)
        strategy.update()
        strategy.clear()
        if rank.adascale:
            rank.adascale.advance()
        if rank.average:
            rank.average.update(rank.step + 1 - rank.phase.first_step)
    rank.step += 1
    recorder.end_step(rank.step)
    if rank.on_step:
        rank.on_step(rank.step, torch.stack(losses).sum() / batch.samples_global)


def _forward_backward(rank: Rank, batch: Batch) -> torch.Tensor:
    """Add the gradients of a batch, or of a part of one, to what is there; the sum of its losses."""
    recorder, strategy = rank.recorder, rank.strategy
    with recorder.span("forward"):
        scores = _scores(rank, batch)
        loss_sum = _loss_sum(rank, scores, batch)
        _count(rank, batch, scores.detach(), loss_sum.detach())
    watching = rank.noise.watching(rank.learner, rank.step, batch, strategy.loss_factor)
    with recorder.span("backward"), watching:
        (loss_sum * (strategy.loss_factor / batch.samples_global)).backward()
    return loss_sum.detach()


def _scores(rank: Rank, batch: Batch) -> torch.Tensor:
    if rank.attendance:
        rank.attendance.counted = batch.samples > 0
    return rank.strategy.module(batch.inputs)


def _look_at_noise(rank: Rank, samples_global: int) -> None:
    """Note how noisy the gradient is, where that is asked for; AdaScale's rate for this very step follows from it."""
    rank.noise.exchanged(rank.learner, rank.step, samples_global)
    if rank.adascale:
        for seen in rank.noise.gather(rank.strategy.peers):  # a message of a few bytes in every step
            rank.adascale.measured(seen.variance, seen.signal, seen.parts)
        rank.gain = rank.adascale.gain
        _set_rate(rank)


def _set_rate(rank: Rank) -> None:
    steps = rank.adascale.progress if rank.adascale else rank.step - rank.phase.first_step
    rate = rank.pace.lr(steps) * rank.gain
    for group in rank.optimizer.param_groups:
        group["lr"] = rate


def _clip(rank: Rank) -> None:
    """Shorten the gradient to what it may be at most: that of the whole batch, which every rank has by now.

    Under local-sgd there is none of the whole batch, and a rank shortens its own.
    """
    clip_norm = rank.manifest.point.train.clip_norm
    if clip_norm:
        torch.nn.utils.clip_grad_norm_(rank.model.parameters(), clip_norm)


def _loss_sum(rank: Rank, scores: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Sum of the losses of the samples that count: zero for a rank without any."""
    smoothing = rank.manifest.point.train.label_smoothing
    loss = functional.cross_entropy(scores, batch.labels, reduction="sum", label_smoothing=smoothing)
    return loss if batch.samples else loss * 0.0


def _count(rank: Rank, batch: Batch, scores: torch.Tensor, loss_sum: torch.Tensor) -> None:
    """Add a step to the epoch's loss and accuracy."""
    if batch.samples:
        correct = (scores.argmax(1) == batch.labels).sum()
        rank.sums += torch.stack((loss_sum.double(), correct.double()))


def _await_device(rank: Rank) -> None:
    """Let queued work end before an epoch's clock is read (device sync, once an epoch; nothing on a CPU)."""
    if rank.sums.is_cuda:
        torch.cuda.synchronize()


def _warm_up_pass(rank: Rank) -> None:
    """A forward and backward pass whose gradients nobody uses, over as many samples as any other has."""
    batch, *_ = in_parts(rank.batches.take(rank.batches.order(0), 0), rank.manifest.point.train.accumulate)
    _loss_sum(rank, _scores(rank, batch), batch).backward()


def _seed_step(rank: Rank) -> None:
    """Give every (seed, step, rank) random numbers of its own, in all generators that a model may use."""
    seed = np.random.SeedSequence((rank.manifest.seed, rank.step, rank.rank)).generate_state(1)[0].item()
    # Not torch.manual_seed: where CUDA was never used it notes the call stack each time, a quarter of a millisecond.
    torch.default_generator.manual_seed(seed)
    if rank.sums.is_cuda:
        torch.cuda.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def _end_epoch(rank: Rank, epoch: int, steps: int) -> None:
    """Evaluate, and note the epoch as a line of `curves.csv`."""
    recorder = rank.recorder
    rank.strategy.settle()
    samples = rank.batches.samples_until(steps)
    rank.strategy.peers.sum(rank.sums)
    loss_sum, correct = rank.sums.tolist()
    evaluating_at_ns = recorder.clock_ns()
    loss, accuracy = None, None
    if len(rank.validation):
        loss, accuracy = evaluate(
            rank.learner,
            rank.samples,
            rank.validation,
            recorder,
            rank.strategy.peers,
            rank=rank.rank,
            size=rank.size,
            average=rank.average,
        )
        rank.begin_training()
    done = Epoch(
        epoch=epoch + 1,
        step=rank.step,
        samples=samples,
        train_loss=loss_sum / samples,
        train_accuracy=correct / samples,
        validation_loss=loss,
        validation_accuracy=accuracy,
        epoch_s=rank.epoch_elapsed_s,
        evaluate_s=units.seconds(recorder.clock_ns() - evaluating_at_ns),
        whole=samples == rank.batches.num_samples,
        resumed=rank.resumed_in_epoch,
        phase=rank.phase.name,
    )
    rank.epochs += (done,)
    rank.sums.zero_()
    rank.epoch_elapsed_s = 0.0
    rank.resumed_in_epoch = False
    _end_noise(rank, epoch, rank.step - steps)
    if rank.rank == 0:
        write_atomically(rank.folder.curves, _csv(rank.epochs))
        if rank.noise_epochs:
            write_atomically(rank.folder.noise, _csv(rank.noise_epochs))


def _end_noise(rank: Rank, epoch: int, first_step: int) -> None:
    """Note the gradient noise of an epoch, where it was measured."""
    noise = rank.noise.end_epoch(epoch + 1, first_step, rank.strategy.peers)
    if noise and rank.adascale:
        noise = replace(noise, gain=rank.adascale.gain, progress=rank.adascale.progress)
    if noise:
        rank.noise_epochs += (noise,)


def _csv(epochs: tuple[Epoch, ...] | tuple[NoiseEpoch, ...]) -> bytes:
    text = io.StringIO()
    lines = csv.DictWriter(text, [each.name for each in fields(epochs[0])], lineterminator="\n")
    lines.writeheader()
    lines.writerows(asdict(epoch) for epoch in epochs)
    return text.getvalue().encode()


def _checkpoint_due(rank: Rank) -> bool:
    every = rank.manifest.point.train.checkpoint_every
    return every > 0 and (rank.step % every == 0 or rank.step == rank.phase.last_step)
