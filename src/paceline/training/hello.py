"""A rank that only connects and sums a few arrays: python -m paceline.training.hello RUN_DIR

`paceline doctor --site NAME` starts it in place of the worker, to check that a launcher starts ranks that find each
other. It joins as a training rank does, sums arrays of a few sizes over all ranks, and checks the sums.
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

# No heavy imports before the rank is pinned: see worker.py.
from paceline import host
from paceline.errors import RunError
from paceline.guard import end_with_launcher, pin
from paceline.identity import Identity, this_rank, versions
from paceline.records.run import Manifest, RankReport
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

SIZES = (4, 64_000, 4_000_000)
"""Bytes of the summed arrays: latency, and the gradient of a small network."""
_REPEATS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """`ranks/rank-0003.hello`: times that a rank has measured."""

    SCHEMA = "paceline.hello/1"

    rank: int
    host: str
    started_s: float
    """From the launch to the start of this process, by the clocks of the two hosts; includes time in the queue."""
    met_s: float
    """From that start until all ranks were connected; includes loading torch."""
    sizes_bytes: tuple[int, ...]
    exchanges_s: tuple[float, ...]
    """Fastest sum over all ranks, for each size."""


def hello_file(folder: RunFolder, rank: int) -> Path:
    """Path of the times of a rank."""
    return folder.ranks / f"rank-{rank:04d}.hello"


def main() -> int:
    """Exit code: 0 if all sums were right, 1 if the rank failed (the report has the reason)."""
    identity = this_rank()
    end_with_launcher(identity)
    folder = RunFolder(Path(sys.argv[1]))
    manifest = read_record(folder.manifest, Manifest)
    if manifest.cores is not None:
        pin(manifest.cores[identity.local_rank])
    failed: dict[str, Any] = {}
    try:
        write_record(hello_file(folder, identity.rank), _hello(identity, folder, manifest))
    except Exception as error:  # noqa: BLE001 - every failure has to reach the launcher
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
    """Seconds of the fastest of a few sums over all ranks; RunError if one is wrong."""
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
                f"{num_bytes} bytes were summed wrongly over the ranks: {array[0].item():g} instead of {wanted}.",
                right="Every rank contributes its number plus one.",
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
