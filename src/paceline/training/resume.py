"""Checkpoints of a rank: a resumed run is bitwise equal to one without interruption."""

from __future__ import annotations

import torch

from paceline.training import checkpoint
from paceline.training.rank import Rank


def save_checkpoint(rank: Rank) -> None:
    """Write a checkpoint of this step: rank 0 writes the whole network, with the sums of every data index."""
    place, progress, optim = rank.place, rank.progress, rank.optim
    with rank.recorder.span("checkpoint"):
        optim.strategy.settle()
        sums = optim.strategy.peers.gather(rank.objective.sums)
        optim.noise.gather(optim.strategy.peers)
        tensors = checkpoint.state_tensors(rank.network.model, optim.optimizer)
        tensors |= optim.average.tensors() if optim.average else {}
        tensors = dict(optim.strategy.whole(tensors)) | {"progress": sums}
        tensors |= {"noise": optim.noise.state()} if optim.noise.on else {}
        tensors |= {"adascale": optim.adascale.state()} if optim.adascale else {}
        if place.rank == 0:
            standing = checkpoint.CheckpointState(
                point_id=place.manifest.point_id,
                seed=place.manifest.seed,
                layout=place.layout.sizes,
                step=progress.step,
                epochs=progress.epochs,
                noise=progress.noise_epochs,
                epoch_elapsed_s=progress.epoch_elapsed_s,
                host=place.host,
                versions=place.versions,
                phase=rank.phase.name,
                phases=progress.phases,
                features=progress.features,
            )
            checkpoint.write_checkpoint(place.folder.checkpoints, standing, tensors)


def resume(rank: Rank) -> checkpoint.CheckpointState | None:
    """State of the newest checkpoint, from which every rank continues; None starts from the beginning."""
    place, progress = rank.place, rank.progress
    step = torch.tensor([-1])
    found = None
    if place.rank == 0:
        found = checkpoint.newest_checkpoint(
            place.folder.checkpoints, place.manifest.point_id, place.manifest.seed, place.layout.sizes
        )
        step[0] = found[1].step if found else -1
    step = step.to(rank.objective.sums.device)
    rank.optim.strategy.everyone.broadcast(step)
    if step.item() < 0:
        return None
    if found:
        _, standing, tensors = found
    else:
        standing, tensors = checkpoint.read_checkpoint(place.folder.checkpoints / f"step-{int(step.item()):06d}")
    if standing.phase != rank.phase.name:
        assert rank.advance is not None, "a run that was in a second phase has one"
        rank.advance()
    optim = rank.optim  # of the phase of the checkpoint
    tensors = optim.strategy.shard(tensors)
    checkpoint.restore(rank.network.model, optim.optimizer, tensors)
    if optim.average:
        optim.average.restore(tensors)
    if optim.noise.on:
        optim.noise.restore(tensors["noise"])
    if optim.adascale:
        optim.adascale.restore(tensors["adascale"])
    optim.strategy.restored()
    rank.objective.sums.copy_(tensors["progress"][place.data_index])
    progress.step, progress.epochs, progress.noise_epochs = standing.step, standing.epochs, standing.noise
    progress.epoch_elapsed_s, progress.phases = standing.epoch_elapsed_s, standing.phases
    progress.features = standing.features
    # The first steps of a process are slow: an epoch that contains them is not timed.
    progress.resumed_in_epoch = True
    return standing
