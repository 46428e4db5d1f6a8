"""Ranks that are told to leave: they agree on a step, and asking one another costs next to nothing."""

import itertools
import signal
import threading

import pytest
import torch

from paceline.training.parallel.strategy import NoPeers
from paceline.training.termination_notice import POLL_S, TerminationNotice

CPU = torch.device("cpu")


class Meeting:
    """Adds up what ranks say, each in a thread of its own."""

    def __init__(self, size):
        self._barrier = threading.Barrier(size)
        self._said = []

    def sum(self, tensor):
        self._said.append(tensor.clone())
        self._barrier.wait(10)
        total = torch.stack(self._said).sum(0)
        self._barrier.wait(10)
        tensor.copy_(total)
        self._said.clear()
        self._barrier.wait(10)


def decisions(size, tell, *, steps=200, start=0):
    """The step before which each rank leaves, where `tell` is called before every step; None where it does not."""
    now = [0.0] * size
    meeting, left = Meeting(size), [None] * size
    notices = [TerminationNotice(possible=True, clock=lambda rank=rank: now[rank]) for rank in range(size)]

    def train(rank):
        for step in range(start, start + steps):
            tell(rank, step, notices[rank])
            if notices[rank].agreed(step, meeting, rank=rank, device=CPU):
                left[rank] = step
                return
            now[rank] += 0.01 * (rank + 1)  # clocks that disagree: rank 0's decides

    threads = [threading.Thread(target=train, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return left


@pytest.mark.parametrize("who", [0, 2])
def test_all_leave_before_the_same_step_whoever_was_told(who):
    def tell(rank, step, notice):
        if (rank, step) == (who, 50):
            notice._note(signal.SIGUSR1, None)

    left = decisions(3, tell)
    assert len(set(left)) == 1
    assert left[0] is not None and 50 <= left[0] <= 50 + 2 * POLL_S / 0.01


def test_nobody_leaves_untold():
    assert decisions(3, lambda rank, step, notice: None) == [None] * 3


def test_a_run_gets_somewhere_before_it_leaves():
    assert decisions(2, lambda rank, step, notice: notice._note(signal.SIGTERM, None), start=40) == [41, 41]


class Counted(NoPeers):
    """The peers of a single rank; notes when it was asked."""

    def __init__(self, clock):
        self.clock, self.asked_at = clock, []

    def sum(self, tensor):
        self.asked_at.append(self.clock())


def gaps(step_s, grace_s=60.0):
    """Times between two questions, once they have settled."""
    now = [0.0]
    peers = Counted(lambda: now[0])
    notice = TerminationNotice(possible=True, grace_s=grace_s, clock=lambda: now[0])
    for step in range(int(max(8.0, 10 * step_s) / step_s)):
        notice.agreed(step, peers, rank=0, device=CPU)
        now[0] += step_s
    late = [at for at in peers.asked_at if at > max(3.0, 3 * step_s)]
    return [second - first for first, second in itertools.pairwise(late)]


@pytest.mark.parametrize("step_s", [0.0005, 0.02, 0.4, 5.0])
def test_asking_is_about_once_a_second_or_once_a_step(step_s):
    found = gaps(step_s)
    assert max(found) <= max(1.3 * POLL_S, 1.01 * step_s)
    assert min(found) >= max(0.7 * POLL_S, 0.99 * step_s)


def test_a_short_grace_is_asked_about_more_often():
    assert max(gaps(0.001, grace_s=0.4)) < 0.2


def test_a_first_step_that_was_too_fast_does_not_put_the_question_off_for_long():
    now = [0.0]
    peers = Counted(lambda: now[0])
    notice = TerminationNotice(possible=True, clock=lambda: now[0])
    for step in range(20):
        notice.agreed(step, peers, rank=0, device=CPU)
        now[0] += 0.00001 if step == 0 else 1.0
    assert len(peers.asked_at) > 10


def test_where_nobody_is_warned_nobody_asks():
    peers, notice = Counted(lambda: 0.0), TerminationNotice()
    notice._note(signal.SIGUSR1, None)
    assert not any(notice.agreed(step, peers, rank=0, device=CPU) for step in range(100))
    assert peers.asked_at == []


def test_a_signal_that_came_before_the_rank_listened_is_heard():
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGTERM)}
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1, signal.SIGTERM))
    try:
        signal.raise_signal(signal.SIGUSR1)  # to this thread: others of the test process do not hold it back
        notice = TerminationNotice(possible=True)
        notice.listen()
        assert notice._received
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGUSR1, signal.SIGTERM}
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGUSR1, signal.SIGTERM))
        for number, handler in before.items():
            signal.signal(number, handler)
