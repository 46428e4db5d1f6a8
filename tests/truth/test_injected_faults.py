"""Eleven faults as `python -m bench.faults` puts fifty into real runs, but large ones: the cause has to come first.

Another process may disturb a single run, so each fault is put into several: of each suspect the median loss counts.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.fault_runs import FaultRuns, Found, by_group
from bench.fault_table import COUNTS, Fault, faults

WORK = ("forward", "backward")
BUSY = 2.0
"""Runnable processes on a core: another test beside this one stays below it."""
RUNS = 3
"""Of each fault."""
# Larger faults than the benchmark's: whatever else runs on the machine slows ranks down, too. A delay shows in a few
# steps; programs beside the ranks need more, or a single pause of a rank would outweigh them.
ELEVEN = by_group(
    [
        Fault(number=1, kind="slow-rank", ranks=2, who=1, rows=("forward",), where="forward", delay_s=0.15, steps=8),
        Fault(
            number=2,
            kind="slow-rank",
            ranks=3,
            who=0,
            rows=("backward",),
            where="backward",
            delay_s=0.2,
            busy=True,
            steps=8,
        ),
        Fault(
            number=3,
            kind="slow-rank",
            ranks=3,
            who=2,
            rows=("optimizer",),
            where="optimizer",
            delay_s=0.2,
            strategy="flat",
            steps=8,
        ),
        Fault(
            number=4, kind="starved-input", ranks=3, who=1, rows=("input-wait",), where="input", delay_s=0.2, steps=8
        ),
        Fault(
            number=5,
            kind="starved-input",
            ranks=2,
            who=None,
            rows=("input-wait",),
            where="input",
            delay_s=0.2,
            steps=8,
        ),
        Fault(number=9, kind="stalled-checkpoint", ranks=2, who=0, rows=("checkpoint",), ballast_mb=100, steps=11),
        Fault(number=6, kind="oversubscribed", ranks=2, who=1, rows=WORK, load="spin", programs=10, steps=30),
        Fault(number=8, kind="memory-bandwidth", ranks=2, who=0, rows=WORK, load="copy", programs=10, steps=30),
        Fault(number=11, kind="slow-link", ranks=2, who=None, rows=("comm-transfer",), rate_mbit=10, hosts=1, steps=8),
        Fault(number=7, kind="oversubscribed", ranks=2, who=None, rows=WORK, load="spin", programs=5, steps=40),
        Fault(
            number=10,
            kind="slow-link",
            ranks=2,
            who=None,
            rows=("comm-transfer",),
            rate_mbit=15,
            hosts=2,
            strategy="flat",
            steps=8,
        ),
    ]
)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultRuns]:
    folder = tmp_path_factory.mktemp("faults")
    with FaultRuns(digits, folder, lambda: request.getfixturevalue("net_hosts")) as made:
        yield made


@pytest.fixture(scope="module")
def busy() -> bool:
    """Whether much else runs on the machine: looked at before anything is started here."""
    return os.getloadavg()[0] > BUSY * len(os.sched_getaffinity(0))


@pytest.mark.parametrize("fault", ELEVEN, ids=lambda fault: f"{fault.number}-{fault.kind}-{fault.ranks}-ranks")
def test_the_cause_comes_first(busy: bool, runs: FaultRuns, fault: Fault) -> None:
    if fault.needs_hosts:
        runs._hosts()  # skips where there can be none
    crowds_one = fault.programs > 0 and fault.who is not None
    # Programs on one core push whatever else runs on the machine to the others, where it can slow a rank down as much.
    if crowds_one and busy:
        pytest.skip("the machine is too busy to crowd one core more than the others")
    # Counters would say what is true of a machine that others use, too: that all ranks had to share their cores.
    counters = fault.programs > 0 and fault.who is None
    found = [runs.run(fault, counters=counters) for _ in range(RUNS)]
    lost_s = _median_losses(found)
    rank, kind = max(lost_s, key=lost_s.__getitem__, default=(None, ""))
    assert rank == fault.who and kind in fault.rows, lost_s
    assert all(kind != "comm-wait" for _, kind in lost_s), "a symptom was blamed"
    if fault.delay_s:
        shares = [_share_found(one) for one in found]
        assert 0.5 < statistics.median(shares) < 1.5, shares


def _median_losses(found: list[Found]) -> dict[tuple[int | None, str], float]:
    """What each suspect, a rank and a kind of the ledger, cost in the median of some runs; seconds."""
    lost_s = [{(each.rank, each.kind): each.lost_s for each in one.slow_causes} for one in found]
    return {who: statistics.median(one.get(who, 0.0) for one in lost_s) for who in set().union(*lost_s)}


def _share_found(found: Found) -> float:
    """Time that the first suspect is said to have cost, over the delay that was put into the timed steps."""
    fault = found.fault
    assert found.held_up_s is not None
    timed_s = found.held_up_s * (fault.steps - 1) / (fault.steps + (fault.where in WORK))
    return found.slow_causes[0].lost_s / timed_s if found.slow_causes else 0.0


def test_the_table_is_fifty_faults_that_follow_from_the_seed() -> None:
    fifty = faults(1)
    assert len(fifty) == sum(COUNTS.values()) == 50
    assert fifty == faults(1) != faults(2)
    assert [fault.number for fault in fifty] == list(range(1, 51))
    for fault in fifty:
        assert 2 <= fault.ranks <= 4 and fault.rows and (fault.who is None or fault.who < fault.ranks)
        assert fault.delay_s or fault.ballast_mb or fault.rate_mbit or fault.programs, "nothing would be done"
