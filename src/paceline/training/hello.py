"""A rank that only meets the others and exchanges a few numbers: python -m paceline.training.hello RUN_DIR

Started in the worker's place, it proves that a launcher brings ranks to life that find each other: `paceline doctor
--site NAME` does so. It joins as a training rank does, sums arrays of a few sizes over all ranks, and checks the sums.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

# Nothing heavy before the rank is tied and pinned: see worker.py.
from paceline import host
from paceline.errors import RunError
from paceline.guard import end_with_launcher, pin
from paceline.identity import Identity, this_rank, versions
from paceline.records.run import Manifest, RankReport
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

SIZES = (4, 64_000, 4_000_000)
"""Bytes of the arrays that are summed: a message's own cost, and what a small network's gradient takes."""
_REPEATS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """`ranks/rank-0003.hello`: what a rank met with."""

    SCHEMA = "paceline.hello/1"

    rank: int
    host: str
    started_s: float
    """From the launch to this process's start, by the clocks of the two hosts: time in a queue is in it."""
    met_s: float
    """From that start until all ranks had met; loading torch is in it."""
    sizes_bytes: tuple[int, ...]
    exchanges_s: tuple[float, ...]
    """Of the fastest sum over all ranks, by size."""


def hello_file(folder: RunFolder, rank: int) -> Path:
    """Where a rank says what it met with."""
    return folder.ranks / f"rank-{rank:04d}.hello"


def main() -> int:
    """Say hello; 0 when all sums were right, 1 when it failed and said how."""
    identity = this_rank()
    end_with_launcher(identity)
    folder = RunFolder(Path(sys.argv[1]))
    manifest = read_record(folder.manifest, Manifest)
    if manifest.cores is not None:
        pin(manifest.cores[identity.local_rank])
    failed: dict[str, Any] = {}
    try:
        write_record(hello_file(folder, identity.rank), _hello(identity, folder, manifest))
    except Exception as error:  # noqa: BLE001 - whatever ends a rank has to reach the launcher
        from paceline.training.group import failure_facts

        failed = failure_facts(error)
    write_record(folder.rank_report(identity.rank), _report(identity, manifest, failed))
    return 1 if failed else 0


def _hello(identity: Identity, folder: RunFolder, manifest: Manifest) -> Hello:
    import torch

    from paceline.training.group import join

    born = psutil.Process().create_time()
    join(identity, folder, manifest, torch.device("cpu"))
    met_s = time.time() - born
    exchanges = [_exchange(identity, num_bytes) for num_bytes in SIZES]
    return Hello(
        rank=identity.rank,
        host=identity.host,
        started_s=max(0.0, born - datetime.fromisoformat(manifest.launched_at).timestamp()),
        met_s=met_s,
        sizes_bytes=SIZES,
        exchanges_s=tuple(exchanges),
    )


def _exchange(identity: Identity, num_bytes: int) -> float:
    """Seconds of the fastest of a few sums over all ranks; RunError where one is wrong."""
    import torch
    import torch.distributed as dist

    wanted, times = sum(range(1, identity.size + 1)), []
    for _ in range(_REPEATS):
        array = torch.full((num_bytes // 4,), float(identity.rank + 1))
        began = time.perf_counter()
        if identity.size > 1:
            dist.all_reduce(array)
        times.append(time.perf_counter() - began)
        if not bool((array == wanted).all()):
            raise RunError(
                f"{num_bytes} bytes came back wrong from the other ranks: {array[0].item():g} in place of {wanted}.",
                right="Every rank adds its number plus one.",
            )
    return min(times)


def _report(identity: Identity, manifest: Manifest, failed: dict[str, Any]) -> RankReport:
    return RankReport(
        rank=identity.rank,
        host=identity.host,
        pid=os.getpid(),
        device="cpu",
        backend="gloo",
        threads=manifest.point.threads,
        affinity=host.pinned(),
        versions=versions(),
        steps=0,
        ended_at_ns=time.monotonic_ns(),
        **(failed or {"status": "done"}),
    )


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
