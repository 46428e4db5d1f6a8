"""The training loop of one rank, readable in one sitting.

    input-wait ─▶ forward ─▶ backward ─▶ exchange ─▶ optimizer          once a step
                                                      checkpoint         every so many steps
    evaluate on validation, one line of curves.csv                       once an epoch

Random numbers (dropout) follow from (seed, step, rank): a run that stopped anywhere goes on with
the same ones. The last step always leaves a checkpoint where any are asked for: the trained model.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from paceline import units
from paceline.probe.recorder import Recorder
from paceline.records.codec import write_atomically
from paceline.records.folder import RunFolder
from paceline.records.run import Epoch, Manifest
from paceline.train import checkpoint
from paceline.train.batches import Batch, Batches, Samples, ShareBatches
from paceline.train.evaluate import evaluate
from paceline.train.notice import Notice
from paceline.train.parallel.base import Strategy


@dataclass(slots=True, kw_only=True)
class Rank:
    """What a rank trains with: everything the loop needs, made by `session.py`."""

    manifest: Manifest
    folder: RunFolder
    rank: int
    size: int
    host: str
    versions: dict[str, str]
    recorder: Recorder
    model: nn.Module
    strategy: Strategy
    optimizer: torch.optim.Optimizer
    batches: Batches | ShareBatches
    samples: Samples
    validation: np.ndarray
    notice: Notice = field(default_factory=Notice)
    on_step: Callable[[int, torch.Tensor], None] | None = None
    """Called with the step and this rank's part of the step's mean loss; for tests."""

    step: int = 0
    epochs: tuple[Epoch, ...] = ()
    sums: torch.Tensor
    """Loss sum and correct answers of this rank in the epoch so far."""
    epoch_elapsed_s: float = 0.0
    resumed_in_epoch: bool = False

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole run."""
        train = self.manifest.point.train
        return train.steps if train.steps is not None else (train.epochs or 0) * self.batches.steps_per_epoch


def train(rank: Rank) -> bool:
    """Train from wherever the rank stands to the end; False where it was told to leave before, with a checkpoint."""
    recorder, per_epoch = rank.recorder, rank.batches.steps_per_epoch
    rank.model.train()
    with recorder.span("startup", "warm-up"):
        rank.strategy.warm_up(lambda: _warm_up_pass(rank))
        rank.strategy.peers.barrier()
    recorder.begin_steps(rank.step, rank.total_steps)
    while rank.step < rank.total_steps:
        epoch = rank.step // per_epoch
        last_step = min((epoch + 1) * per_epoch, rank.total_steps)
        order = rank.batches.order(epoch)
        started_at_ns = recorder.clock_ns() - units.nanoseconds(rank.epoch_elapsed_s)
        while rank.step < last_step:
            if rank.notice.agreed(rank.step, rank.strategy.peers, rank=rank.rank, device=rank.sums.device):
                save_checkpoint(rank)
                rank.strategy.peers.barrier()  # nobody leaves before it is on the disk
                return False
            with recorder.span("step"):
                _step(rank, order, rank.step - epoch * per_epoch)
            if rank.step == last_step:
                _await_device(rank)
            rank.epoch_elapsed_s = units.seconds(recorder.clock_ns() - started_at_ns)
            if rank.step < last_step and _checkpoint_due(rank):
                save_checkpoint(rank)
        _end_epoch(rank, epoch, last_step - epoch * per_epoch)
        # After the epoch's line is written: a run that resumes here must not lose it.
        if _checkpoint_due(rank):
            save_checkpoint(rank)
    return True


def _step(rank: Rank, order: torch.Tensor, number: int) -> None:
    """One optimizer step."""
    recorder, strategy = rank.recorder, rank.strategy
    with recorder.span("input-wait"):
        batch = rank.batches.take(order, number)
    strategy.before_forward()
    _seed_step(rank)
    with recorder.span("forward"):
        scores = strategy.module(batch.inputs)
        loss_sum = _loss_sum(scores, batch)
        _count(rank, batch, scores.detach(), loss_sum.detach())
    with recorder.span("backward"):
        (loss_sum * (strategy.loss_factor / batch.samples_global)).backward()
    strategy.exchange()
    with recorder.span("optimizer"):
        strategy.update()
        strategy.clear()
    rank.step += 1
    recorder.end_step(rank.step)
    if rank.on_step:
        rank.on_step(rank.step, loss_sum.detach() / batch.samples_global)


def _loss_sum(scores: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Sum of the losses of the samples that count: zero for a rank without any."""
    loss = functional.cross_entropy(scores, batch.labels, reduction="sum")
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
    """A forward and backward pass whose gradients nobody uses."""
    batch = rank.batches.take(rank.batches.order(0), 0)
    _loss_sum(rank.strategy.module(batch.inputs), batch).backward()


def _seed_step(rank: Rank) -> None:
    """Give every (seed, step, rank) random numbers of its own, in all generators that a model may use."""
    seed = np.random.SeedSequence((rank.manifest.seed, rank.step, rank.rank)).generate_state(1)[0].item()
    torch.manual_seed(seed)
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
            rank.model,
            rank.samples,
            rank.validation,
            recorder,
            rank.strategy.peers,
            rank=rank.rank,
            size=rank.size,
        )
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
    )
    rank.epochs += (done,)
    rank.sums.zero_()
    rank.epoch_elapsed_s = 0.0
    rank.resumed_in_epoch = False
    if rank.rank == 0:
        write_atomically(rank.folder.curves, _curves_csv(rank.epochs))


def _curves_csv(epochs: tuple[Epoch, ...]) -> bytes:
    text = io.StringIO()
    lines = csv.DictWriter(text, [each.name for each in fields(Epoch)], lineterminator="\n")
    lines.writeheader()
    lines.writerows(asdict(epoch) for epoch in epochs)
    return text.getvalue().encode()


def _checkpoint_due(rank: Rank) -> bool:
    every = rank.manifest.point.train.checkpoint_every
    return every > 0 and (rank.step % every == 0 or rank.step == rank.total_steps)


def save_checkpoint(rank: Rank) -> None:
    """Write a checkpoint of this step; rank 0 writes for all, after hearing every rank's sums."""
    with rank.recorder.span("checkpoint"):
        rank.strategy.settle()
        sums = rank.strategy.peers.gather(rank.sums)
        if rank.rank == 0:
            standing = checkpoint.Standing(
                point_id=rank.manifest.point_id,
                seed=rank.manifest.seed,
                size=rank.size,
                step=rank.step,
                epochs=rank.epochs,
                epoch_elapsed_s=rank.epoch_elapsed_s,
                host=rank.host,
                versions=rank.versions,
            )
            tensors = checkpoint.state_tensors(rank.model, rank.optimizer) | {"progress": sums}
            checkpoint.write_checkpoint(rank.folder.checkpoints, standing, tensors)


def resume(rank: Rank) -> checkpoint.Standing | None:
    """Continue from the newest checkpoint of this run, the same one on every rank; None starts afresh."""
    step = torch.tensor([-1])
    found = None
    if rank.rank == 0:
        found = checkpoint.newest_checkpoint(
            rank.folder.checkpoints, rank.manifest.point_id, rank.manifest.seed, rank.size
        )
        step[0] = found[1].step if found else -1
    step = step.to(rank.sums.device)
    rank.strategy.peers.tell(step)
    if step.item() < 0:
        return None
    if found:
        _, standing, tensors = found
    else:
        standing, tensors = checkpoint.read_checkpoint(rank.folder.checkpoints / f"step-{int(step.item()):06d}")
    checkpoint.restore(rank.model, rank.optimizer, tensors)
    rank.strategy.restored()
    rank.sums.copy_(tensors["progress"][rank.rank])
    rank.step, rank.epochs, rank.epoch_elapsed_s = standing.step, standing.epochs, standing.epoch_elapsed_s
    # Even where it begins an epoch, that epoch's first steps are this process's first: not to be timed.
    rank.resumed_in_epoch = True
    return standing
