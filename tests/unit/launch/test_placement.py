"""Which rank gets which cores, and the words for it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import RequestError
from paceline.launch.machine import Processor
from paceline.launch.placement import RANK_BYTES, check_memory, placement, placement_of
from paceline.records.settings import RunSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.expand import expand

PLAIN = [Processor(0, 0, 0), Processor(1, 1, 0)]
# Two packages of two cores of two hyper-threads each, in the order of `processors()`.
THREADED = [Processor(n, n % 4, n % 4 // 2) for n in range(8)]


def placed(ranks, threads=1, *, pin=True, processors=PLAIN, quota=None, can_pin=True):
    return placement(ranks, threads, pin=pin, processors=processors, quota=quota, can_pin=can_pin)


@pytest.mark.parametrize(
    ("arguments", "cores", "text"),
    [
        ({"ranks": 1}, ((0,),), "1 rank × 1 thread on 2 cores: rank 0 on core 0"),
        ({"ranks": 2}, ((0,), (1,)), "2 ranks × 1 thread on 2 cores: rank 0 on core 0, rank 1 on core 1"),
        ({"ranks": 1, "threads": 2}, ((0, 1),), "1 rank × 2 threads on 2 cores: rank 0 on cores 0+1"),
        ({"ranks": 2, "pin": False}, None, "2 ranks × 1 thread on 2 cores: pinning is off"),
        (
            {"ranks": 2, "can_pin": False},
            None,
            "2 ranks × 1 thread on 2 cores: not pinned, this operating system cannot keep a process to a core",
        ),
        (
            {"ranks": 4, "processors": THREADED},
            ((0,), (1,), (2,), (3,)),
            "4 ranks × 1 thread on 8 hyper-threads of 4 cores: "
            "rank 0 on core 0, rank 1 on core 1, rank 2 on core 2, rank 3 on core 3",
        ),
        (
            {"ranks": 2, "threads": 4, "processors": THREADED},
            ((0, 4, 1, 5), (2, 6, 3, 7)),
            "2 ranks × 4 threads on 8 hyper-threads of 4 cores: "
            "rank 0 on cores 0+4+1+5, rank 1 on cores 2+6+3+7 (hyper-threads share cores)",
        ),
        (
            {"ranks": 1, "threads": 4, "processors": THREADED},
            ((0, 1, 2, 3),),
            "1 rank × 4 threads on 8 hyper-threads of 4 cores: rank 0 on cores 0-3",
        ),
        (
            {"ranks": 2, "processors": THREADED, "quota": 2.5},
            None,
            "2 ranks × 1 thread on 2 cores (a CPU quota of 2.5 out of 8): "
            "not pinned, a CPU quota says how much but not where",
        ),
        (
            {"ranks": 2, "quota": 64.0},
            ((0,), (1,)),
            "2 ranks × 1 thread on 2 cores: rank 0 on core 0, rank 1 on core 1",
        ),
    ],
)
def test_ranks_get_cores_of_their_own_and_the_reason_is_said(arguments, cores, text):
    found = placed(**arguments)
    assert (found.cores, found.text, found.oversubscribed) == (cores, text, False)


@pytest.mark.parametrize("pin", [True, False])
def test_more_threads_than_cores_are_flagged_and_not_pinned(pin):
    found = placed(3, pin=pin)
    assert (found.cores, found.oversubscribed) == (None, True)
    assert found.text == "3 ranks × 1 thread on 2 cores: not pinned, more threads than cores"


def test_a_quota_counts_when_threads_are_compared_with_cores():
    found = placed(3, processors=THREADED, quota=2.5)
    assert found.oversubscribed
    assert found.text.startswith("3 ranks × 1 thread on 2 cores (a CPU quota of 2.5 out of 8): not pinned, more")


def test_the_words_for_many_ranks_stay_short():
    many = [Processor(number, number, 0) for number in range(64)]
    assert placed(64, processors=many).text.endswith(": rank 0 on core 0, rank 1 on core 1, …, rank 63 on core 63")


@given(ranks=st.integers(1, 12), threads=st.integers(1, 6))
def test_no_core_is_given_twice_and_physical_cores_come_first(ranks, threads):
    found = placed(ranks, threads, processors=THREADED)
    assert found.oversubscribed == (ranks * threads > len(THREADED))
    if found.cores is None:
        return
    given_out = [core for own in found.cores for core in own]
    assert [len(own) for own in found.cores] == [threads] * ranks
    assert len(set(given_out)) == ranks * threads
    assert len({core % 4 for core in given_out}) == min(4, ranks * threads)


def test_more_ranks_than_fit_into_memory_are_refused():
    check_memory(4, 4 * RANK_BYTES)
    with pytest.raises(RequestError) as caught:
        check_memory(4096, 8_000_000_000)
    assert caught.value.what == "4,096 ranks need at least 1.2 TB of memory, and this machine has 8.0 GB."
    assert caught.value.right == "A rank takes 300 MB before its model and data: at most 26 fit."
    assert "--ranks" in caught.value.next


def kept(ranks: int, *, threads: int, cores: int):
    study = Study(name="s", train=TrainSettings(batch_global=8), run=RunSettings(ranks=(ranks,), threads=threads))
    (point,) = expand(replace(study, run=replace(study.run, cores=cores)), data_digest="", model_digest="")
    return placement_of(point, range(ranks), processors=PLAIN, quota=None, can_pin=True)


def test_a_rank_may_be_kept_to_more_or_fewer_cores_than_it_has_threads() -> None:
    """As many as run.cores says; threads that share them do so as was asked for."""
    wide = kept(1, threads=1, cores=2)
    assert (wide.cores, wide.oversubscribed) == (((0, 1),), False)
    assert wide.text == "1 rank × 2 cores on 2 cores: rank 0 on cores 0+1"
    narrow = kept(2, threads=2, cores=1)
    assert (narrow.cores, narrow.oversubscribed) == (((0,), (1,)), True)
    over = kept(1, threads=1, cores=3)
    assert (over.cores, over.oversubscribed) == (None, True)
    assert over.text.endswith("not pinned, more cores than there are")
