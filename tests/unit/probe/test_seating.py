"""Whether every thread can have a core: against all ways to seat them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from paceline.preflight.core_checks import overloaded_processes

SEATS = st.dictionaries(
    st.integers(0, 4), st.tuples(st.sets(st.integers(0, 4), min_size=1), st.integers(1, 2)), min_size=1, max_size=4
)


def fits(seats) -> bool:
    """Whether any way to give threads cores gives each its own."""
    threads = [tuple(cores) for cores, count in seats.values() for _ in range(count)]
    return any(len(set(way)) == len(way) for way in itertools.product(*threads))


@given(SEATS)
def test_nobody_is_crowded_exactly_where_all_fit(seats) -> None:
    assert (overloaded_processes(seats) == frozenset()) == fits(seats)


@given(SEATS)
def test_those_that_are_named_do_not_fit_by_themselves_and_the_others_do(seats) -> None:
    named = overloaded_processes(seats)
    if named:
        among = {process: seats[process] for process in named}
        assert not fits(among)
        cores = set().union(*(own for own, _ in among.values()))
        assert sum(count for _, count in among.values()) > len(cores)
    assert fits({process: seats[process] for process in seats if process not in named})


def test_who_shares_one_core_is_named_whatever_else_there_is() -> None:
    assert overloaded_processes({0: ((0,), 1), 1: ((0,), 1), 2: (range(8), 1)}) == {0, 1}
    assert overloaded_processes({0: ((0, 1), 1), 1: ((0,), 1)}) == frozenset()  # rank 0 moves to core 1
    assert overloaded_processes({rank: (range(128), 1) for rank in range(128)}) == frozenset()
