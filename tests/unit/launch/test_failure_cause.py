"""Who is named when a run fails, and in which words."""

from pathlib import Path

import pytest

from paceline.launch.failure_cause import RankView, awaited_rank, failure_error, first_cause, hang_error
from paceline.records.run import RankReport
from paceline.storage.pulse import Pulse


def report(rank: int, *, kind: str | None = None, at_ns: int = 0, **said: object) -> RankReport:
    fields = {
        "rank": rank,
        "status": "failed" if kind else "done",
        "host": "h",
        "pid": 1,
        "device": "cpu",
        "backend": "gloo",
        "threads": 1,
        "affinity": (0,),
        "versions": {},
        "steps": 57,
        "ended_at_ns": at_ns,
        "error_kind": kind,
    }
    return RankReport(**(fields | said))  # pyright: ignore[reportArgumentType]


def view(rank: int, **seen: object) -> RankView:
    return RankView(rank=rank, host="node-a", log=Path(f"logs/rank-{rank}.log"), **seen)  # pyright: ignore[reportArgumentType]


def pulse(phase: str, step: int = 57, collectives: int = 57) -> Pulse:
    return Pulse(beats=100, step=step, total_steps=188, collectives=collectives, phase=phase)


DONE = view(9, code=0, report=report(9))


@pytest.mark.parametrize(
    ("sights", "cause"),
    [
        pytest.param([DONE, view(1, code=-9, ended_at_ns=5)], 1, id="the only one"),
        pytest.param(
            [view(0, code=1, ended_at_ns=9, report=report(0, kind="peer", at_ns=1)), view(1, code=-9, ended_at_ns=5)],
            1,
            id="a signal before a peer's error that came earlier",
        ),
        pytest.param(
            [
                view(0, code=1, ended_at_ns=4, report=report(0, kind="peer", at_ns=4)),
                view(1, code=1, ended_at_ns=5, report=report(1, kind="own", at_ns=3)),
            ],
            1,
            id="an own error before a peer's",
        ),
        pytest.param(
            [
                view(0, code=-6, ended_at_ns=4, report=report(0, kind="peer", at_ns=4)),
                view(1, code=3, ended_at_ns=5),
            ],
            1,
            id="a peer's error before its teardown aborted",
        ),
        pytest.param(
            [
                view(0, code=1, ended_at_ns=4, report=report(0, kind="own", at_ns=4)),
                view(1, code=1, ended_at_ns=9, report=report(1, kind="own", at_ns=3)),
            ],
            1,
            id="the earlier by the ranks' own words, not by when their processes were gone",
        ),
        pytest.param(
            [view(0, report=report(0, kind="peer", at_ns=4)), view(1, report=report(1, kind="own", at_ns=8))],
            1,
            id="ranks that have said so and still run",
        ),
        pytest.param(
            [view(0, code=1, report=report(0, kind="peer", at_ns=4)), view(1, code=0, ended_at_ns=9)],
            1,
            id="one that left without a word",
        ),
        pytest.param(
            [
                view(0, code=1, report=report(0, kind="peer", at_ns=4)),
                view(1, code=1, report=report(1, kind="peer", at_ns=3)),
            ],
            1,
            id="the first of two who blame each other",
        ),
    ],
)
def test_the_first_cause_is_found(sights, cause):
    assert first_cause(sights).rank == cause
    assert first_cause(sights[::-1]).rank == cause


@pytest.mark.parametrize(
    ("sights", "cause"),
    [
        pytest.param(
            [view(0, pulse=pulse("communicate")), view(1, pulse=pulse("compute"))],
            1,
            id="the one not in a collective",
        ),
        pytest.param(
            [view(0, pulse=pulse("communicate", collectives=9)), view(1, pulse=pulse("communicate", collectives=8))],
            1,
            id="the fewest collectives",
        ),
        pytest.param([view(0, pulse=pulse("communicate")), view(1)], 1, id="no pulse yet"),
        pytest.param(
            [view(0, pulse=pulse("compute")), view(1, pulse=pulse("communicate", collectives=99), state="stopped")],
            1,
            id="one that is stopped",
        ),
        pytest.param(
            [view(0, pulse=pulse("communicate"), state="disk-sleep"), view(1, pulse=pulse("compute"))],
            1,
            id="waiting for a disk proves nothing",
        ),
        pytest.param([DONE, view(1, pulse=pulse("communicate"))], 1, id="one that has ended is not waited for"),
    ],
)
def test_the_rank_that_all_wait_for_is_found(sights, cause):
    assert awaited_rank(sights).rank == cause


def test_a_killed_rank_is_named_with_its_signal_step_and_the_end_of_its_log():
    error = failure_error(view(1, code=-9, pulse=pulse("compute")), 4, "loading\nstep 57")
    assert str(error) == (
        "Rank 1 of 4 on node-a was killed by SIGKILL after step 57 of 188.\n"
        "If no user sent this signal, the kernel did, because memory ran out: use fewer ranks.\n"
        "Its log, logs/rank-1.log, ends with:\n  loading\n  step 57"
    )


def test_an_error_is_told_with_where_it_was_raised():
    traceback = 'Traceback (most recent call last):\n  File "loop.py", line 3, in train\n    f()\nValueError: no\n'
    said = report(2, kind="own", error="ValueError: no", traceback=traceback)
    error = failure_error(view(2, code=1, pulse=pulse("compute"), report=said), 4, "not shown")
    assert str(error) == (
        "Rank 2 of 4 on node-a failed after step 57 of 188 (exit code 1): ValueError: no\n"
        '  File "loop.py", line 3, in train\n'
        "Its log: logs/rank-2.log"
    )


def test_the_last_line_of_a_traceback_is_told_where_the_error_says_something_else():
    said = report(0, kind="own", error="The disk is full.", traceback="Traceback\nOSError: [Errno 28]")
    assert "The disk is full.\n  OSError: [Errno 28]\n" in str(failure_error(view(0, code=1, report=said), 1, ""))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"code": 3}, "ended with exit code 3 while starting and wrote no report"),
        ({"code": 1, "report": report(0)}, "ended with exit code 1 after step 57 and had reported that it was done"),
        ({"code": 0, "pulse": pulse("compute")}, "ended without a report, after step 57 of 188"),
        ({"code": -11, "pulse": pulse("compute")}, "was killed by SIGSEGV after step 57"),
        ({"code": -99}, "was killed by signal 99 while starting"),
        ({"report": report(0, kind="own", error="E")}, "failed after step 57: E"),
        ({"code": -6, "report": report(0, kind="own", error="E")}, "failed after step 57 (killed by SIGABRT): E"),
        ({"code": 1, "report": report(0, kind="peer", error="E")}, "no rank reported another cause"),
    ],
)
def test_every_kind_of_end_has_its_words(seen, words):
    assert words in str(failure_error(view(0, **seen), 2, ""))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"pulse": pulse("compute"), "state": "sleeping"}, "in phase 'compute', not in a collective"),
        ({"pulse": pulse("compute"), "state": "stopped"}, "stopped by a signal (state T)"),
        ({"pulse": pulse("done")}, "has finished its work but does not end"),
    ],
)
def test_a_hang_is_told_with_its_evidence(seen, words):
    cause = view(1, **seen)
    error = str(hang_error(cause, [DONE, cause], silence_s=31.0, heartbeat_s=30.0, log_tail=""))
    assert "Rank 1 of 2 on node-a hangs after step 57 of 188: no rank has made progress for 31.0 s." in error
    assert words in error
    assert f"\n  rank 9: ended\n  rank 1: {cause.phase}, after step 57 of 188, 57 collectives issued\n" in error
    assert "heartbeat_s" in error
    assert "logs/rank-1.log" in error


def test_no_single_rank_is_blamed_when_all_wait_in_the_same_collective():
    ranks = [view(rank, pulse=pulse("communicate", collectives=28)) for rank in range(3)]
    error = str(hang_error(ranks[0], ranks, silence_s=6.0, heartbeat_s=6.0, log_tail=""))
    assert error.startswith(
        "All ranks hang, rank 0 of 3 on node-a after step 57 of 188: no rank has made progress for 6"
    )
    assert "Each waits in the same collective" in error
    ranks[0] = view(0, pulse=pulse("communicate", collectives=27))
    assert "has issued the fewest" in str(hang_error(ranks[0], ranks, silence_s=6.0, heartbeat_s=6.0, log_tail=""))
