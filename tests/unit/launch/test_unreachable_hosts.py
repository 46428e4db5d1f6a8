"""Which hosts are lost, given what each says; and the question and its answers through a run folder."""

import socket
from dataclasses import dataclass, replace

import pytest

from light_ranks.light_launch import manifest, point
from paceline.errors import RankError
from paceline.launch.wrapper.unreachable_hosts import (
    HostAnswer,
    answer_file,
    question_file,
    unreachable_hosts,
    unreachable_hosts_error,
    write_answer,
)
from paceline.records.run import RankEnd, Rendezvous
from paceline.records.settings import LaunchSettings
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder

FINE = {"up": True, "reaches": True}
HANG = RankError("All ranks hang, rank 0 of 4 on a: no rank has made progress for 30.0 s.\n  rank 0: ...")


def answers(**said):
    return {host: None if words is None else HostAnswer(host=host, **words) for host, words in said.items()}


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (answers(a=FINE, b=FINE, c=FINE), ()),
        (answers(a=FINE, b=FINE, c=None), ("c",)),
        (answers(a=None, b=FINE, c=None), ("a", "c")),
        (answers(a=FINE, b={"up": False, "reaches": False}, c=FINE), ("b",)),
        (answers(a=FINE, b=FINE, c={"up": True, "reaches": False}), ("c",)),
        # the first is down itself: that the others do not reach it is no fault of theirs
        (answers(a={"up": False, "reaches": False}, b={"up": True, "reaches": False}), ("a",)),
        (answers(a=FINE, b={"up": True, "reaches": False}, c={"up": True, "reaches": False}), ("a",)),
        (answers(a=FINE, b={"up": True, "reaches": False}), ("a", "b")),
        # when nobody answers, something else has ended them all
        (answers(a=None, b=None), ()),
    ],
)
def test_the_lost_hosts_are_told_apart(said, lost):
    assert unreachable_hosts(said) == lost


@dataclass
class Rank:
    number: int
    host: str


RANKS = [Rank(0, "a"), Rank(1, "a"), Rank(2, "b"), Rank(3, "b")]


class Time:
    """A clock that goes on by sleeping; things may happen meanwhile."""

    def __init__(self, happens=lambda: None):
        self.now, self.happens = 0.0, happens

    def clock(self):
        return self.now

    def sleep(self, length_s):
        self.now += length_s
        self.happens()


def asked(folder, time, ranks=RANKS):
    return unreachable_hosts_error(ranks, folder, HANG, clock=time.clock, sleep=time.sleep)  # pyright: ignore


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path)
    folder.ranks.mkdir()
    return folder


def test_one_host_is_never_asked(folder):
    assert asked(folder, Time(), [Rank(0, "a"), Rank(1, "a")]) is None
    assert not question_file(folder).exists()


def test_a_host_that_stays_silent_is_named_in_bounded_time(folder):
    time = Time()
    write_record(answer_file(folder, 1), HostAnswer(host="a", **FINE))
    error = asked(folder, time)
    assert question_file(folder).exists()
    assert 5 < time.now < 30
    assert str(error).startswith(
        "Host b no longer answers: ranks 2 and 3 of 4 were there.\n  b: its rank wrapper does not"
    )
    assert "1 host of 2 still answered. The ranks reported: All ranks hang" in str(error)


def test_hosts_that_all_answer_leave_the_error_as_it_is(folder):
    time = Time(lambda: [write_record(answer_file(folder, r.number), HostAnswer(host=r.host, **FINE)) for r in RANKS])
    assert asked(folder, time) is None
    assert time.now < 1


def test_a_host_whose_ranks_were_seen_to_end_is_not_waited_for(folder):
    write_record(answer_file(folder, 0), HostAnswer(host="a", **FINE))
    for rank in (2, 3):
        write_record(folder.rank_end(rank), RankEnd(rank=rank, host="b", code=1, ended_at_ns=1))
    time = Time()
    assert asked(folder, time) is None
    assert time.now == 0


def test_two_hosts_that_do_not_reach_each_other_are_both_named(folder):
    write_record(answer_file(folder, 0), HostAnswer(host="a", **FINE))
    write_record(answer_file(folder, 2), HostAnswer(host="b", up=True, reaches=False))
    assert str(asked(folder, Time())).startswith("Hosts a and b no longer reach each other: ranks 0, 1, 2 and 3 of 4")


def test_a_wrapper_says_whether_its_link_is_up_and_rank_0_in_reach(folder):
    told = manifest(point(2, hosts=2), settings=LaunchSettings(interface="lo"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        write_record(folder.rendezvous, Rendezvous(address="127.0.0.1", port=port, launched_at_ns=0))
        write_answer(folder, told, 1, "b")
    assert read_record(answer_file(folder, 1), HostAnswer) == HostAnswer(host="b", **FINE)
    write_answer(folder, told, 1, "b")  # refused now: the host still answers
    assert read_record(answer_file(folder, 1), HostAnswer).reaches
    write_answer(folder, replace(told, launch=LaunchSettings(interface="none0")), 1, "b")
    assert read_record(answer_file(folder, 1), HostAnswer) == HostAnswer(host="b", up=False, reaches=False)
