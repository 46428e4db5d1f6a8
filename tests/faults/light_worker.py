"""A rank that computes nothing: python light_worker.py LEDGER SECONDS RUN_DIR

Writes a line into a ledger outside of the run folder, waits a moment, and reports weights that can only come from
the settings it was told: so a test can see what was executed, how often, and whether anything was mixed up.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

from paceline.guard import end_with_launcher
from paceline.identity import this_rank
from paceline.records.run import Epoch, Manifest, RankReport, TrainingReport
from paceline.records.study import Point
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder


def weights_sha256(point: Point, seed: int) -> str:
    """What a run of a point has to come to."""
    return hashlib.sha256(f"{point.point_id} {point.train.lr} {point.ranks} {seed}".encode()).hexdigest()


def main() -> None:
    identity = this_rank()
    end_with_launcher(identity)
    ledger, seconds, folder = Path(sys.argv[1]), float(sys.argv[2]), RunFolder(Path(sys.argv[3]))
    manifest = read_record(folder.manifest, Manifest)
    if identity.rank == 0:
        handle = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{manifest.point_id} {manifest.run} {manifest.attempt}\n".encode())
        os.close(handle)
    time.sleep(seconds)
    line = Epoch(
        epoch=1,
        step=1,
        samples=1,
        train_loss=manifest.point.train.lr,
        train_accuracy=0.5,
        validation_loss=None,
        validation_accuracy=None,
        epoch_s=seconds,
        evaluate_s=0.0,
        whole=True,
    )
    report = RankReport(
        rank=identity.rank,
        status="done",
        host=identity.host,
        pid=os.getpid(),
        device="cpu",
        backend="none",
        threads=1,
        affinity=(0,),
        versions={},
        steps=1,
        ended_at_ns=time.monotonic_ns(),
        parameters=1,
        training=TrainingReport(
            epochs=(line,),
            test_loss=0.5,
            test_accuracy=0.5,
            load_s=0.0,
            weights_sha256=weights_sha256(manifest.point, manifest.seed),
        ),
    )
    write_record(folder.rank_report(identity.rank), report)


if __name__ == "__main__":
    main()
