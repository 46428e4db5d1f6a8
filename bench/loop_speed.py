"""One rank, one thread: our loop against the plain one, in blocks that take turns in one process.

python -m bench.loop_speed DATA_FOLDER ROUNDS     prints {"ours": [...], "plain": [...]} in samples/s
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

from bench.peers.plain_loop import PlainLoop
from paceline.data.cache import open_dataset
from paceline.identity import Identity, this_rank
from paceline.records.run import Manifest
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from paceline.training import loop
from paceline.training.rank import Rank
from paceline.training.reading import load_data
from paceline.training.session import Session

BATCH = 128
SAMPLES = 12_000
BLOCK = 30
"""Steps of one block: about a second."""


def our_manifest(data: Path, ranks: int) -> Manifest:
    """What a rank of the default study is told."""
    point = Point(
        data=DataSettings(dataset="mnist", train_samples=SAMPLES),
        data_digest="",
        model=ModelSettings(name="cnn-690k"),
        model_digest="",
        train=TrainSettings(batch_global=BATCH, epochs=1_000),
        ranks=ranks,
    )
    return Manifest(
        study="bench",
        point_id=point.point_id,
        point=point,
        run=1,
        seed=1,
        data_folder=str(data),
        model_file=None,
        cores=None,
        placement="",
        launched_at_ns=0,
        launched_at="",
    )


def our_rank(data: Path, scratch: Path, identity: Identity) -> Rank:
    """A rank of the default study, as the worker makes it."""
    manifest = our_manifest(data, identity.size)
    session = Session(identity, RunFolder(scratch), manifest, time.monotonic_ns())
    rank = session.rank(load_data(data, manifest.point, identity.rank))
    rank.network.begin_training()
    return rank


def our_steps(rank: Rank) -> Callable[[int], None]:
    """Our loop, probe and all, as a function that takes so many steps."""

    def steps(count: int) -> None:
        for _ in range(count):
            epoch, number = divmod(rank.progress.step, rank.inputs.batches.steps_per_epoch - 1)
            if number == 0:
                steps.order = rank.inputs.batches.order(epoch)
            loop._step(rank, steps.order, number)

    return steps


def plain(data: Path) -> Callable[[int], None]:
    mapped = open_dataset(data)
    images = torch.from_numpy(np.array(mapped.train_images[:SAMPLES])).permute(0, 3, 1, 2).contiguous()
    labels = torch.from_numpy(np.array(mapped.train_labels[:SAMPLES])).long()
    return PlainLoop((images.float() / 255 - 0.1307) / 0.3081, labels, BATCH).steps


def main() -> None:
    data, rounds = Path(sys.argv[1]), int(sys.argv[2])
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    rates: dict[str, list[float]] = {"ours": [], "plain": []}
    with tempfile.TemporaryDirectory() as scratch:
        loops = {"ours": our_steps(our_rank(data, Path(scratch), this_rank())), "plain": plain(data)}
        for steps in loops.values():
            steps(BLOCK)
        for number in range(rounds):
            names = list(loops) if number % 2 else list(reversed(loops))
            for name in names:
                started = time.perf_counter()
                loops[name](BLOCK)
                rates[name].append(BLOCK * BATCH / (time.perf_counter() - started))
    json.dump(rates, sys.stdout)


if __name__ == "__main__":
    main()
