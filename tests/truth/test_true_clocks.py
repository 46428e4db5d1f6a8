"""Clocks that are off by a known amount: put on one time line, and nothing shorter than the error is claimed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from paceline.analyze.run.messages import messages
from paceline.analyze.run.run_summary import trace_summary
from paceline.records.allocation import Clock
from paceline.records.run import Machine, RankReport
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder
from paceline.storage.run_trace import read_run

PROGRAM = Path(__file__).with_name("clock_rank.py")
AHEAD_NS = 5_000_000_000_000
"""What rank 1's clock shows more: far more than the run takes."""
ERROR_NS = 5_000_000
WAITS_S = [(0.0, 0.06), (0.06, 0.0), (0.0, 0.002), (0.0, 0.06), (0.002, 0.0), (0.0, 0.06)] * 2


@dataclass(frozen=True)
class Recorded:
    """A run, and when its ranks did what by the clock that they share."""

    folder: RunFolder
    before_ns: np.ndarray
    after_ns: np.ndarray
    """Of every rank's messages, by rank: it was issued between the two."""
    started_ns: int
    ended_ns: int
    """Of rank 1, whose clock is another."""


def record(folder: RunFolder, gain: float) -> Recorded:
    """Two processes that issue messages together, after waits of their own."""
    ranks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), str(folder.path), *map(str, clock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for rank, clock in enumerate(((0, 0.0), (AHEAD_NS, gain)))
    ]
    try:
        started = [int(process.stdout.readline()) for process in ranks]
        issued = []
        for waits in WAITS_S:
            for process, wait in zip(ranks, waits, strict=True):
                process.stdin.write(f"{wait}\n")
            issued.append([tuple(map(int, process.stdout.readline().split())) for process in ranks])
        for process in ranks:
            process.stdin.close()
        ended = [int(process.stdout.readline()) for process in ranks]
        assert [process.wait(30) for process in ranks] == [0, 0]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
            process.stdout.close()
    before, after = np.moveaxis(np.array(issued), 0, -1).swapaxes(0, 1)
    return Recorded(folder, before, after, started[1], ended[1])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(RunFolder(tmp_path_factory.mktemp("clocks")), gain=0.0)


def say_clocks(folder: RunFolder, *offsets: tuple[int, int], error_ns: int | None = ERROR_NS) -> None:
    """What was found out about rank 1's clock: what it showed, and how much more than rank 0's."""
    own = [Clock(rank=1, offset_ns=more, error_ns=error_ns, method="exchange", at_ns=at) for at, more in offsets]
    machine = Machine(
        hosts=("h1", "h2"),
        cpu="",
        cores=1,
        logical_cores=1,
        memory_bytes=0,
        gpus=(),
        platform="",
        affinity=(),
        threads=(),
        devices=(),
        backend="gloo",
        versions={},
        clocks=(Clock(rank=0, offset_ns=0, error_ns=0, method="same"), own[0]),
        clocks_at_end=tuple(own[1:]),
    )
    write_record(folder.machine, machine)
    for rank in range(2):
        report = RankReport(
            rank=rank,
            status="done",
            host=f"h{rank + 1}",
            pid=1,
            device="cpu",
            backend="gloo",
            threads=1,
            affinity=(),
            versions={},
            steps=len(WAITS_S),
            ended_at_ns=1,
            clock_error_ns=error_ns if rank else 0,
        )
        write_record(folder.rank_report(rank), report)


@pytest.mark.parametrize("off_by_ns", [0, 3_000_000, -3_000_000])
def test_instants_are_those_of_one_clock_to_within_the_error(recorded, off_by_ns) -> None:
    say_clocks(recorded.folder, (0, AHEAD_NS + off_by_ns))
    run = read_run(recorded.folder)
    assert run.clock_error_ns == ERROR_NS
    for rank, own in enumerate(messages(run.traces, 2)):
        true = own.issued_ns + (off_by_ns if rank else 0)
        assert (true >= recorded.before_ns[rank]).all() and (true <= recorded.after_ns[rank]).all()
        assert (own.gathered_ns >= own.issued_ns).all() and (own.completed_ns >= own.gathered_ns).all()


@pytest.mark.parametrize("off_by_ns", [0, 3_000_000, -3_000_000])
def test_a_rank_is_called_late_only_where_it_was(recorded, off_by_ns) -> None:
    """However the clocks are off within the error: never where another was last, always where late by twice that."""
    say_clocks(recorded.folder, (0, AHEAD_NS + off_by_ns))
    found = trace_summary(read_run(recorded.folder))
    before, after = recorded.before_ns, recorded.after_ns
    for rank, other in ((0, 1), (1, 0)):
        least, most = before[rank] - after[other], after[rank] - before[other]
        # The first step warms up; where it ends is known to the error, too.
        assert (least[1:] > 2 * ERROR_NS).sum() <= found.arrivals[rank].last <= (most > 0).sum()
    assert (before[1] - after[0] > 2 * ERROR_NS).sum() >= 4, "nobody was late, so nothing was tested"
    assert found.clock_error_s == ERROR_NS / 1e9


def test_without_its_offset_a_clock_would_lead_astray(recorded) -> None:
    """Which is why the offset is taken off: unaligned, rank 1 seems to be last, always and by over an hour."""
    say_clocks(recorded.folder, (0, 0))
    assert trace_summary(read_run(recorded.folder)).wall_s > 3600


def test_a_clock_that_gains_is_put_right_between_two_comparisons(tmp_path) -> None:
    """Twenty milliseconds a second: with the first comparison alone, the last messages would be far off."""
    gain = 0.02
    drifting = record(RunFolder(tmp_path), gain)
    lasted = drifting.ended_ns - drifting.started_ns
    first = (drifting.started_ns + AHEAD_NS, AHEAD_NS)
    last = (drifting.ended_ns + AHEAD_NS + round(lasted * gain), AHEAD_NS + round(lasted * gain))
    off = {}
    for name, offsets in (("once", (first,)), ("twice", (first, last))):
        say_clocks(drifting.folder, *offsets)
        own = messages(read_run(drifting.folder).traces, 2)[1]
        off[name] = np.abs(own.issued_ns - drifting.before_ns[1])
    assert np.median(off["twice"]) < 1_000_000
    since_ns = drifting.before_ns[1][-1] - drifting.started_ns
    assert off["once"][-1] > 0.5 * gain * since_ns


def test_a_clock_that_nothing_bounds_is_said(recorded) -> None:
    say_clocks(recorded.folder, (0, AHEAD_NS), error_ns=None)
    assert any("clocks" in problem for problem in read_run(recorded.folder).problems)
