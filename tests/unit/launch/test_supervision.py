"""Supervision with ranks and a clock of the test's own: nothing sleeps."""

import os
import signal
import threading
import time

import pytest

from paceline.errors import RankError
from paceline.launch import supervision
from paceline.launch.launcher import Progress
from paceline.launch.supervision import Watch, end_ranks, interruptible
from paceline.records.run import RankReport
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter


class Clock:
    """Time that passes only in naps, with things that happen at set times."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.events: list[tuple[float, object]] = []

    def __call__(self) -> float:
        return self.now_s

    def at(self, when_s: float, event) -> None:
        self.events.append((when_s, event))

    def nap(self, length_s: float) -> None:
        self.now_s += length_s
        assert self.now_s < 10_000, "supervision does not end"
        for event in [e for e in self.events if e[0] <= self.now_s]:
            self.events.remove(event)
            event[1]()  # pyright: ignore[reportCallIssue]


class FakeRank:
    host = "node-a"

    def __init__(self, number: int, clock: Clock, *, ends_on: tuple[int, ...] = (signal.SIGTERM, signal.SIGKILL)):
        self.number = number
        self.code: int | None = None
        self.ended_at_ns: int | None = None
        self.process_state = "sleeping"
        self.received: list[int] = []
        self.ends_on = ends_on
        self.clock = clock

    def end(self, code: int) -> None:
        self.code, self.ended_at_ns = code, int(self.clock.now_s * 1e9)

    def poll(self) -> int | None:
        return self.code

    def state(self) -> str:
        return self.process_state

    def send(self, number: int) -> None:
        self.received.append(number)
        if number in self.ends_on:
            self.end(-number)


class Scene:
    """Two ranks, their folder, and what a listener is told."""

    def __init__(self, path, heartbeat_s: float = 30.0) -> None:
        self.clock = Clock()
        self.folder = RunFolder(path)
        self.ranks = [FakeRank(0, self.clock), FakeRank(1, self.clock)]
        self.pulses = [PulseWriter(self.folder.rank_pulse(number)) for number in (0, 1)]
        self.told: list[Progress] = []
        self.watch = Watch(self.ranks, self.folder, heartbeat_s, self.told.append, self.clock.nap, self.clock)

    def report(self, rank: int, kind: str | None = None, error: str | None = None) -> None:
        said = RankReport(
            rank=rank,
            status="failed" if kind else "done",
            host="node-a",
            pid=1,
            device="cpu",
            backend="gloo",
            threads=1,
            affinity=(0,),
            versions={},
            steps=3,
            ended_at_ns=int(self.clock.now_s * 1e9),
            error=error,
            error_kind=kind,
        )
        write_record(self.folder.rank_report(rank), said)

    def leave(self, rank: int, code: int = 0, **said: str) -> None:
        self.report(rank, **said)
        self.ranks[rank].end(code)


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def test_reports_come_back_in_order_of_rank(scene):
    scene.clock.at(1.0, lambda: scene.leave(1))
    scene.clock.at(2.0, lambda: scene.leave(0))
    assert [report.rank for report in scene.watch.until_done()] == [0, 1]
    assert scene.clock.now_s == pytest.approx(2.0, abs=2 * supervision.POLL_S)


def test_progress_is_that_of_the_slowest_and_told_only_when_it_changes(scene):
    scene.clock.at(0.5, lambda: scene.pulses[0].beat(phase="compute", step=7, total_steps=10))
    scene.clock.at(1.0, lambda: scene.pulses[1].beat(phase="communicate", step=3, total_steps=10))
    scene.clock.at(1.5, lambda: scene.pulses[0].beat(step=8))
    scene.clock.at(2.0, lambda: (scene.leave(0), scene.leave(1)))
    scene.watch.until_done()
    assert scene.told == [
        Progress(step=0, total_steps=0, phase="startup"),
        Progress(step=0, total_steps=10, phase="startup"),
        Progress(step=3, total_steps=10, phase="communicate"),
    ]


def test_a_peer_that_fails_first_is_not_blamed_when_the_cause_reports_a_little_later(scene):
    scene.clock.at(1.0, lambda: scene.leave(0, 1, kind="peer", error="ConnectionError: lost"))
    scene.clock.at(1.0 + supervision.BLAME_GRACE_S / 2, lambda: scene.leave(1, 1, kind="own", error="ValueError: no"))
    with pytest.raises(RankError, match=r"Rank 1 of 2 .*ValueError: no"):
        scene.watch.until_done()


def test_the_wait_for_others_is_short(scene):
    scene.clock.at(1.0, lambda: scene.ranks[1].end(-signal.SIGKILL))
    with pytest.raises(RankError, match="Rank 1 of 2 on node-a was killed by SIGKILL"):
        scene.watch.until_done()
    assert scene.clock.now_s == pytest.approx(1.0 + supervision.GRACE_S, abs=3 * supervision.POLL_S)


def test_there_is_no_wait_when_all_have_ended(scene):
    scene.clock.at(1.0, lambda: (scene.leave(0), scene.ranks[1].end(3)))
    with pytest.raises(RankError, match="Rank 1 of 2 on node-a ended with exit code 3"):
        scene.watch.until_done()
    assert scene.clock.now_s == pytest.approx(1.0, abs=2 * supervision.POLL_S)


def test_a_rank_that_says_it_failed_and_does_not_leave_is_not_waited_for(scene):
    scene.clock.at(1.0, lambda: scene.report(1, kind="own", error="ValueError: no"))
    with pytest.raises(RankError, match=r"Rank 1 of 2 .*ValueError: no"):
        scene.watch.until_done()
    assert scene.clock.now_s < 2.0


def test_exit_code_zero_without_a_report_is_a_failure(scene):
    scene.clock.at(1.0, lambda: (scene.leave(0), scene.ranks[1].end(0)))
    with pytest.raises(RankError, match="Rank 1 of 2 on node-a ended without a report"):
        scene.watch.until_done()


def test_a_damaged_report_counts_as_none(scene):
    scene.folder.rank_report(1).write_text("{")
    scene.clock.at(1.0, lambda: (scene.leave(0), scene.ranks[1].end(0)))
    with pytest.raises(RankError, match="without a report"):
        scene.watch.until_done()


@pytest.mark.parametrize(("phases", "patience_s"), [(("compute", "communicate"), 30), (("checkpoint", "compute"), 300)])
def test_ranks_that_stand_still_are_called_hung_after_the_heartbeat(scene, phases, patience_s):
    for writer, phase in zip(scene.pulses, phases, strict=True):
        writer.beat(phase=phase, step=5, total_steps=10, collectives=5)
    with pytest.raises(RankError, match="Rank 0 of 2 on node-a hangs after step 5 of 10"):
        scene.watch.until_done()
    assert scene.clock.now_s == pytest.approx(patience_s, rel=0.01)


def test_a_rank_that_never_starts_is_called_hung_after_ten_heartbeats(scene):
    scene.pulses[0].beat(phase="communicate")
    with pytest.raises(RankError, match="Rank 1 of 2 on node-a hangs while starting"):
        scene.watch.until_done()
    assert scene.clock.now_s == pytest.approx(300, rel=0.01)


def test_one_rank_that_moves_keeps_all_alive(scene):
    for writer in scene.pulses:
        writer.beat(phase="compute")
    for second in range(0, 200, 20):
        scene.clock.at(second, lambda: scene.pulses[1].beat())
    scene.clock.at(200, lambda: (scene.leave(0), scene.leave(1)))
    assert len(scene.watch.until_done()) == 2


def test_a_finished_rank_does_not_lend_the_others_its_patience(scene):
    scene.pulses[0].beat(phase="startup")
    scene.leave(0)
    scene.pulses[1].beat(phase="compute", step=5)
    with pytest.raises(RankError, match="Rank 1 of 2 on node-a hangs"):
        scene.watch.until_done()
    assert scene.clock.now_s == pytest.approx(30, rel=0.01)


def test_a_stopped_process_is_evidence(scene):
    for writer in scene.pulses:
        writer.beat(phase="communicate", collectives=4)
    scene.ranks[1].process_state = "stopped"
    with pytest.raises(RankError, match=r"Rank 1 of 2 .*state T"):
        scene.watch.until_done()


def test_time_in_which_the_launcher_itself_was_suspended_is_not_held_against_the_ranks(scene):
    for writer in scene.pulses:
        writer.beat(phase="compute")

    def suspend():
        scene.clock.now_s += 3600

    scene.clock.at(1.0, suspend)
    scene.clock.at(3602.0, lambda: (scene.leave(0), scene.leave(1)))
    assert len(scene.watch.until_done()) == 2


def test_the_log_of_an_earlier_attempt_is_not_quoted(scene):
    scene.folder.logs.mkdir()
    scene.folder.rank_log(1).write_text("=== attempt 1\nold words\n=== attempt 2\nnew words\n")
    scene.ranks[1].end(3)
    with pytest.raises(RankError, match="new words") as caught:
        scene.watch.until_done()
    assert "old words" not in str(caught.value)


def test_of_a_long_log_the_end_is_quoted_and_of_a_crash_its_beginning(scene):
    scene.folder.logs.mkdir()
    scene.ranks[1].end(-signal.SIGSEGV)
    log = scene.folder.rank_log(1)
    log.write_text("".join(f"line {number}\n" for number in range(5000)))
    with pytest.raises(RankError, match="line 4999") as caught:
        scene.watch.until_done()
    assert "line 4980" not in str(caught.value)
    with log.open("a") as file:
        file.write("Fatal Python error: Segmentation fault\n" + "".join(f"  frame {n}\n" for n in range(100)))
    with pytest.raises(RankError, match="Fatal Python error") as caught:
        scene.watch.until_done()
    assert "frame 0\n" in str(caught.value)
    assert "line 4999" not in str(caught.value)


def test_ranks_are_asked_before_they_are_killed():
    clock = Clock()
    willing, stubborn = FakeRank(0, clock), FakeRank(1, clock, ends_on=(signal.SIGKILL,))
    end_ranks([willing, stubborn], nap=clock.nap, clock=clock)
    assert willing.received[0] == signal.SIGTERM
    assert signal.SIGKILL not in willing.received
    assert stubborn.code == -signal.SIGKILL
    assert clock.now_s == pytest.approx(supervision.TERMINATE_S, abs=2 * supervision.POLL_S)


def test_ranks_that_have_ended_get_no_signal():
    clock = Clock()
    rank = FakeRank(0, clock)
    rank.end(0)
    end_ranks([rank], nap=clock.nap, clock=clock)
    assert rank.received == []
    assert clock.now_s == 0


def test_a_rank_that_nothing_ends_is_said_and_not_waited_for_forever():
    clock = Clock()
    with pytest.raises(RankError, match="Rank 0 on node-a does not end, not even by SIGKILL"):
        end_ranks([FakeRank(0, clock, ends_on=())], nap=clock.nap, clock=clock)
    assert clock.now_s < 5.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_raised_where_it_is_asked_for(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interruptible() as check:
        check()
        os.kill(os.getpid(), number)
        time.sleep(0)  # a place where an unguarded interruption would be raised
        reached = True
        check()
        reached = False
    assert reached
    assert signal.getsignal(number) is before


def test_an_interruption_that_nobody_asks_for_is_raised_at_the_end():
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGINT)


def test_an_interruption_during_the_ending_of_a_failure_is_not_lost():
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        raise RankError("a rank failed")


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible() as check:
            os.kill(os.getpid(), signal.SIGINT)
            check()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_handlers_are_left_alone():
    before, inside = signal.getsignal(signal.SIGTERM), []

    def body():
        with interruptible() as check:
            inside.append(signal.getsignal(signal.SIGTERM))
            check()

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert inside == [before]
