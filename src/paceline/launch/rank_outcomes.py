"""Reports, exit codes and times that ranks wrote to the run folder, whichever program started them."""

from __future__ import annotations

import signal

from paceline.launch import machine
from paceline.launch.launcher import Outcome
from paceline.records.run import STOPPED, Manifest, RankEnd, RankReport, RankStart
from paceline.storage.codec import optional_record, read_record
from paceline.storage.folder import RunFolder


def reports(folder: RunFolder, size: int) -> list[RankReport]:
    """The final reports of ranks, as far as they can be read."""
    found = (optional_record(folder.rank_report(rank), RankReport) for rank in range(size))
    return [report for report in found if report is not None]


def failed_by_itself(folder: RunFolder, size: int) -> bool:
    """Whether a rank failed on its own: an error that blames no peer, a crash, or an exit without a report."""
    written = {report.rank: report for report in reports(folder, size)}
    for rank in range(size):
        report, end = written.get(rank), optional_record(folder.rank_end(rank), RankEnd)
        if report is not None and report.status == "failed" and report.error_kind != "peer":
            return True
        # SIGKILL and SIGTERM come from others.
        from_outside = (STOPPED, -signal.SIGKILL, -signal.SIGTERM)
        if report is None and end is not None and end.code not in from_outside:
            return True
    return False


def all_ended(folder: RunFolder, size: int) -> bool:
    """Whether the wrapper of every rank has recorded its end."""
    return all(folder.rank_end(rank).exists() for rank in range(size))


def all_done(folder: RunFolder, size: int) -> bool:
    """Whether every rank has ended successfully."""
    ends = [optional_record(folder.rank_end(rank), RankEnd) for rank in range(size)]
    succeeded = all(end is not None and end.code == 0 for end in ends)
    return succeeded and [report.status for report in reports(folder, size)] == ["done"] * size


def outcome(folder: RunFolder, manifest: Manifest, reports: tuple[RankReport, ...]) -> Outcome:
    """A run from its first rank's start to its last rank's end, on this host's clock: without time in a queue."""
    check = machine.allocation_record(folder)
    clocks = machine.launcher_clocks(check, check.clocks, here=machine.LauncherClock.now()) if check else ()
    offsets_ns = {clock.rank: clock.offset_ns for clock in clocks}
    starts_ns, ends_ns = [], []
    for rank in range(manifest.point.processes):
        start, end = read_record(folder.rank_start(rank), RankStart), read_record(folder.rank_end(rank), RankEnd)
        starts_ns.append((start.started_at_ns or manifest.launched_at_ns) - offsets_ns.get(rank, 0))
        ends_ns.append(end.ended_at_ns - offsets_ns.get(rank, 0))
    return Outcome(started_at_ns=min(starts_ns), ended_at_ns=max(ends_ns), reports=reports)
