"""Who may go on under a bound on staleness, whatever the order in which gradients arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.training.parallel.server import StalenessBound


def test_ranks_walk_in_step_with_a_bound_of_0():
    pacing = StalenessBound(3, 0)
    assert [pacing.applied(rank) for rank in (1, 0, 2)] == [[], [], [1, 0, 2]]
    assert [pacing.applied(rank) for rank in (2, 1, 0)] == [[], [], [2, 1, 0]]
    assert (pacing.steps, pacing.counts) == (2, (6,))


def test_a_fast_rank_is_held_until_the_slowest_gives():
    pacing = StalenessBound(2, 2)
    assert [pacing.applied(0) for _ in range(3)] == [[0], [0], []], "three ahead of rank 1: held"
    assert pacing.applied(1) == [0, 1]
    assert pacing.counts == (2, 1, 1), "rank 0 went on with parameters that lacked 1, then 2 steps of rank 1"
    assert pacing.applied(0) == []
    assert pacing.counts == (2, 1, 2)


def test_parameters_that_were_pulled_lack_nothing_that_has_come_meanwhile():
    """At the end of an epoch all wait for all, and take over the same parameters."""
    pacing = StalenessBound(2, 2)
    assert [pacing.applied(rank) for rank in (0, 1)] == [[0], [1]]
    for rank in (0, 1):
        pacing.pulled(rank)
    assert pacing.applied(0) == [0]
    assert pacing.counts == (3,)


def test_one_rank_is_never_held():
    pacing = StalenessBound(1, 0)
    assert [pacing.applied(0) for _ in range(5)] == [[0]] * 5
    assert pacing.counts == (5,)


@given(st.data(), st.integers(1, 5), st.integers(0, 4))
def test_in_any_order_the_bound_holds_and_somebody_can_always_go_on(data, ranks, bound):
    pacing = StalenessBound(ranks, bound)
    free, given_by = set(range(ranks)), [0] * ranks
    for _ in range(60):
        assert free, "nobody may go on"
        rank = data.draw(st.sampled_from(sorted(free)))
        free.remove(rank)
        given_by[rank] += 1
        free |= set(pacing.applied(rank))
        assert all(given_by[other] - min(given_by) <= bound for other in free)
        assert free == {other for other in range(ranks) if given_by[other] - min(given_by) <= bound}
    assert sum(pacing.counts) == 60
    assert len(pacing.counts) <= bound + 1
    assert pacing.steps == min(given_by)
