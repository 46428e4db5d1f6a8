"""A checkpoint of where a rank stands, and how it is taken up again: bit for bit as if the run had not stopped."""

from __future__ import annotations

import torch

from paceline.train import checkpoint
from paceline.train.rank import Rank


def save_checkpoint(rank: Rank) -> None:
    """Write a checkpoint of this step; rank 0 writes for all, after hearing every rank's sums."""
    with rank.recorder.span("checkpoint"):
        rank.strategy.settle()
        sums = rank.strategy.peers.gather(rank.sums)
        rank.noise.gather(rank.strategy.peers)
        if rank.rank == 0:
            standing = checkpoint.Standing(
                point_id=rank.manifest.point_id,
                seed=rank.manifest.seed,
                size=rank.size,
                step=rank.step,
                epochs=rank.epochs,
                noise=rank.noise_epochs,
                epoch_elapsed_s=rank.epoch_elapsed_s,
                host=rank.host,
                versions=rank.versions,
                phase=rank.phase.name,
                phases=rank.phases,
                features=rank.features,
            )
            tensors = checkpoint.state_tensors(rank.model, rank.optimizer) | {"progress": sums}
            tensors |= rank.average.tensors() if rank.average else {}
            tensors |= {"noise": rank.noise.state()} if rank.noise.on else {}
            tensors |= {"adascale": rank.adascale.state()} if rank.adascale else {}
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
    if standing.phase != rank.phase.name:
        assert rank.advance is not None, "a run that was in a second phase has one"
        rank.advance()
    checkpoint.restore(rank.model, rank.optimizer, tensors)
    if rank.average:
        rank.average.restore(tensors)
    if rank.noise.on:
        rank.noise.restore(tensors["noise"])
    if rank.adascale:
        rank.adascale.restore(tensors["adascale"])
    rank.strategy.restored()
    rank.sums.copy_(tensors["progress"][rank.rank])
    rank.step, rank.epochs, rank.epoch_elapsed_s = standing.step, standing.epochs, standing.epoch_elapsed_s
    rank.noise_epochs = standing.noise
    rank.phases, rank.features = standing.phases, standing.features
    # Even where it begins an epoch, that epoch's first steps are this process's first: not to be timed.
    rank.resumed_in_epoch = True
    return standing
