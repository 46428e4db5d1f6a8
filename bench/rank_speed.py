"""Two ranks against one, and against bare DDP: blocks that take turns within one pair of processes.

    python -m bench.rank_speed DATA_FOLDER ROUNDS     as rank 0 or 1 of 2, told by the environment

Rank 0 prints {"one": [...], "two": [...], "bare": [...], "again": [...]}: samples/s of one rank alone with
the global batch (while the other waits in a barrier, asleep), of our loop with ddp on both, of a bare
DDP loop with the same tricks on both, and of one rank alone once more, for the noise floor.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from paceline.identity import this_rank

identity = this_rank()
os.environ |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[identity.rank]})

import torch
import torch.distributed as dist

from bench.loop_speed import BATCH, our_manifest, our_rank, our_steps
from bench.peers.bare_ddp import BareDdp
from paceline.identity import Identity
from paceline.probe.collectives import watch_collectives
from paceline.storage.folder import RunFolder
from paceline.training import group

BLOCK = 20
"""Steps of one block: about a second."""


def loops(data: Path, scratch: Path) -> dict[str, Callable[[int], None]]:
    """What takes turns, each as a function that takes so many steps of the global batch."""
    alone = Identity(
        rank=0,
        size=1,
        local_rank=0,
        local_size=1,
        launcher="none",
        host=identity.host,
        store_host=identity.store_host,
        store_port=0,
        store_fd=None,
        parent_pid=None,
    )
    one = our_steps(our_rank(data, scratch / "one", alone))
    rank = our_rank(data, scratch / "two", identity)
    loops.watching = watch_collectives(rank.recorder)
    two = our_steps(rank)
    bare = BareDdp(data, identity.rank, identity.size, BATCH).steps

    def by_rank_0(count: int) -> None:
        if identity.rank == 0:
            one(count)

    return {"one": by_rank_0, "two": two, "bare": bare, "again": by_rank_0}


def main() -> None:
    data, rounds = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        manifest = our_manifest(data, identity.size)
        group.join(identity, RunFolder(Path(scratch)), manifest, torch.device("cpu"))
        take_turns = loops(data, Path(scratch))
        for steps in take_turns.values():
            steps(5)
        rates: dict[str, list[float]] = {name: [] for name in take_turns}
        for number in range(rounds):
            for name in take_turns if number % 2 else reversed(take_turns):
                dist.barrier()
                started = time.perf_counter()
                take_turns[name](BLOCK)
                if name in ("two", "bare"):
                    dist.barrier()
                rates[name].append(BLOCK * BATCH / (time.perf_counter() - started))
    if identity.rank == 0:
        json.dump(rates, sys.stdout)
    group.leave()


if __name__ == "__main__":
    main()
