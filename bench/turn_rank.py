"""One rank of a group that waits for its turn: stands in for the worker under any launcher (bench/turns.py).

A block is named after a strategy, or "alone": one rank's own step, while the others sleep; or "apart": all ranks take
steps of their own at the same time and tell each other nothing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # started as a file, on any host, from any folder

from paceline import catalog
from paceline.guard import end_with_launcher, keep_freed_memory, pin
from paceline.identity import Identity, this_rank
from paceline.records.run import Manifest
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

SOLO = ("alone", "apart")


def main() -> None:
    identity = this_rank()
    end_with_launcher(identity)
    keep_freed_memory()
    folder = RunFolder(Path(sys.argv[1]))
    manifest = read_record(folder.manifest, Manifest)
    if manifest.cores is not None:
        pin(manifest.cores[identity.local_rank])
    from paceline.training.session import Session

    session = Session(identity, folder, manifest, time.monotonic_ns())
    if manifest.point.role(identity.rank) == "rank":
        take_turns(identity, folder, manifest)
        write_record(folder.rank_report(identity.rank), session._done(steps=0))
    else:
        write_record(folder.rank_report(identity.rank), session.run())


def take_turns(identity: Identity, folder: RunFolder, manifest: Manifest) -> None:
    """Do what rank 0 finds in the folder, until it finds the end."""
    import torch

    from bench.turns import TurnFolder
    from paceline.training import allocation_check, group

    torch.set_num_threads(manifest.point.threads)
    torch.set_num_interop_threads(1)
    device = torch.device("cpu")
    group.join(identity, folder, manifest, device)
    allocation_check.run_allocation_check(identity, folder, manifest, device)
    names = json.loads((folder.path / "blocks.json").read_text())
    ranks = {name: block(name, identity, folder, manifest) for name in names}
    peers = next(strategy for name, (strategy, _) in ranks.items() if name not in SOLO).peers
    turns, told = TurnFolder(folder.path), torch.zeros(2, dtype=torch.int64)
    while True:
        if identity.rank == 0:
            turn = turns.await_turn()
            told.copy_(torch.tensor([names.index(turn.block) if turn.block else -1, turn.steps]))
        peers.broadcast(told)
        number, count = told.tolist()
        started = time.perf_counter()
        if number >= 0:
            ranks[names[number]][1](count)
            peers.barrier()
        if identity.rank == 0:
            turns.answer(time.perf_counter() - started)
        if number < 0:
            break
    for strategy, _ in ranks.values():
        strategy.leave()
    group.leave()


def block(name: str, identity: Identity, folder: RunFolder, manifest: Manifest) -> tuple:
    """The strategy of a block, and a function that takes so many steps with it."""
    from bench.loop_speed import our_steps
    from paceline.training.reading import load_data
    from paceline.training.session import Session

    solo = name in SOLO
    options = dict(catalog.strategy(name).options)
    point = replace(manifest.point, ranks=1) if solo else replace(manifest.point, strategy=name, options=options)
    me = replace(identity, rank=0, size=1) if solo else identity
    place = RunFolder(folder.path / f"{name}-{identity.rank}")
    session = Session(me, place, replace(manifest, point=point), time.monotonic_ns())
    rank = session.rank(load_data(Path(manifest.data_folder), point, me.rank))
    rank.network.begin_training()
    sleeps = name == "alone" and identity.rank != 0
    steps: Callable[[int], None] = (lambda count: None) if sleeps else our_steps(rank)
    return rank.optim.strategy, steps


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
