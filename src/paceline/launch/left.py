"""What ranks have left in the run folder: reports, ends and times, whoever started them."""

from __future__ import annotations

import contextlib
import signal

from paceline.errors import StorageError
from paceline.launch import machine
from paceline.records.codec import read_record
from paceline.records.folder import RunFolder
from paceline.records.run import STOPPED, Manifest, RankEnd, RankReport, RankStart


def reports(folder: RunFolder, size: int) -> list[RankReport]:
    """What ranks said about their end, as far as it can be read."""
    said = []
    for rank in range(size):
        with contextlib.suppress(StorageError):
            said.append(read_record(folder.rank_report(rank), RankReport))
    return said


def failed_by_itself(folder: RunFolder, size: int) -> bool:
    """Whether some rank ended by its own doing: an error that is no peer's, a crash, or leaving without a word."""
    said = {report.rank: report for report in reports(folder, size)}
    for rank in range(size):
        if rank in said and said[rank].status == "failed" and said[rank].error_kind != "peer":
            return True
        with contextlib.suppress(StorageError):
            code = read_record(folder.rank_end(rank), RankEnd).code
            # Killed and terminated are what others do to a rank.
            if code not in (STOPPED, -signal.SIGKILL, -signal.SIGTERM) and rank not in said:
                return True
    return False


def all_ended(folder: RunFolder, size: int) -> bool:
    """Whether the keeper of every rank has seen its end."""
    return all(folder.rank_end(rank).exists() for rank in range(size))


def all_done(folder: RunFolder, size: int) -> bool:
    """Whether every rank has ended as it should."""
    try:
        codes = [read_record(folder.rank_end(rank), RankEnd).code for rank in range(size)]
    except StorageError:
        return False
    return not any(codes) and [report.status for report in reports(folder, size)] == ["done"] * size


def times_ns(folder: RunFolder, manifest: Manifest) -> tuple[int, int]:
    """From the first rank's start to the last one's end, on this host's clock: time in a queue is not in it."""
    roll = machine.roll_call(folder)
    clocks = machine.launcher_clocks(roll, roll.clocks, here=machine.LauncherClock.now()) if roll else ()
    offsets_ns = {clock.rank: clock.offset_ns for clock in clocks}
    starts_ns, ends_ns = [], []
    for rank in range(manifest.point.processes):
        start, end = read_record(folder.rank_start(rank), RankStart), read_record(folder.rank_end(rank), RankEnd)
        starts_ns.append((start.started_at_ns or manifest.launched_at_ns) - offsets_ns.get(rank, 0))
        ends_ns.append(end.ended_at_ns - offsets_ns.get(rank, 0))
    return min(starts_ns), max(ends_ns)
