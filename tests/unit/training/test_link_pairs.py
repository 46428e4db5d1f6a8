"""Between which ranks links are measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.records.allocation import ProcessFacts
from paceline.training.links import MAX_PAIRS, Pair, pairs


def ranks(*hosts: str) -> list[ProcessFacts]:
    return [ProcessFacts(rank=rank, host=host) for rank, host in enumerate(hosts)]


def test_inside_each_host_and_from_each_to_the_next() -> None:
    found = pairs(ranks("a", "a", "b", "c", "c", "c"))
    assert found == (
        Pair(0, 1, "inside"),
        Pair(3, 4, "inside"),
        Pair(0, 2, "between"),
        Pair(2, 3, "between"),
    )


def test_a_rank_alone_has_no_link() -> None:
    assert pairs(ranks("a")) == ()


@given(st.lists(st.sampled_from([f"h{number}" for number in range(20)]), min_size=1, max_size=60))
def test_pairs_are_few_and_what_they_are_called(hosts) -> None:
    found = pairs(ranks(*hosts))
    assert len(found) <= 2 * MAX_PAIRS
    for pair in found:
        assert pair.source != pair.target
        assert (hosts[pair.source] == hosts[pair.target]) == (pair.kind == "inside")
    if len(hosts) > 1:
        assert found
