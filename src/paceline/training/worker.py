"""Entry point of every rank, under every launcher: python -m paceline.training.worker RUN_DIR

It reads `manifest.json`, trains, and writes all results to the run folder: spans, curves, checkpoints, and last
`ranks/rank-0003.json`. Standard output and error go to the rank's log.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path

# No heavy imports before the parent watchdog runs and the rank is pinned to its cores:
# torch sizes its thread pools when it is loaded.
from paceline.errors import PacelineError
from paceline.guard import end_with_launcher, keep_freed_memory, pin
from paceline.identity import Identity, this_rank
from paceline.records.run import STOPPED, Manifest, RankReport
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder
from paceline.training import mpi_session


def main() -> int:
    """Exit code of this rank: 0 done, 1 failed (the report has the reason), 75 stopped early with a checkpoint."""
    started_at_ns = time.monotonic_ns()
    identity = this_rank()
    end_with_launcher(identity)
    folder = RunFolder(Path(sys.argv[1]))
    manifest = read_record(folder.manifest, Manifest)
    if manifest.cores is not None:
        pin(manifest.cores[identity.local_rank])
    if manifest.point.script is not None:
        return _run_script(identity, folder, manifest, started_at_ns)
    keep_freed_memory()
    return _run(identity, folder, manifest, started_at_ns)


def _run(identity: Identity, folder: RunFolder, manifest: Manifest, started_at_ns: int) -> int:
    session = None
    try:
        from paceline.training.session import Session

        session = Session(identity, folder, manifest, started_at_ns)
        report = session.run()
    except Exception as error:  # noqa: BLE001 - every failure has to reach the launcher
        report = session.failure(error) if session else _failure_at_start(identity, error)
    write_record(folder.rank_report(identity.rank), report)
    return {"done": 0, "stopped": STOPPED}.get(report.status, 1)


def _run_script(identity: Identity, folder: RunFolder, manifest: Manifest, started_at_ns: int) -> int:
    """Exit code of a rank that runs a user script."""
    try:
        from paceline.training.script_session import ScriptRank

        report, code = ScriptRank(identity, folder, manifest, started_at_ns).run()
    except Exception as error:  # noqa: BLE001 - every failure has to reach the launcher
        report, code = _failure_at_start(identity, error), 1
    write_record(folder.rank_report(identity.rank), report)
    return code


def _failure_at_start(identity: Identity, error: Exception) -> RankReport:
    """Report of a rank that failed before its session started: torch did not load, the disk is full."""
    return RankReport(
        rank=identity.rank,
        status="failed",
        host=identity.host,
        pid=os.getpid(),
        device="",
        backend="",
        threads=0,
        affinity=(),
        versions={},
        steps=0,
        ended_at_ns=time.monotonic_ns(),
        error=str(error) if isinstance(error, PacelineError) else f"{type(error).__name__}: {error}",
        error_kind="own",
        traceback="".join(traceback.format_exception(error)),
    )


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # A script may have registered exit handlers.
    if mpi_session.is_finalized() or "paceline.training.script_session" in sys.modules:
        sys.exit(code)
    # All results are on the disk: an orderly teardown of torch would only cost time.
    os._exit(code)
