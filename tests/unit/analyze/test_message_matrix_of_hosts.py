"""What goes between hosts is the sum of what goes between their ranks, and nothing is lost on the way."""

from __future__ import annotations

from paceline.analyze.run.message_matrix import host_matrix
from paceline.records.trace_summary import Exchange


def cell(source: int, target: int, payload: int, seconds: float | None = 1.0, *, estimated: bool = True) -> Exchange:
    return Exchange(
        source=source, target=target, payload_bytes=payload, seconds=seconds, messages=2, estimated=estimated
    )


def test_ranks_of_a_host_are_taken_together() -> None:
    ring = [cell(0, 1, 10), cell(1, 2, 20), cell(2, 3, 30, None), cell(3, 0, 40, estimated=False)]
    names, cells = host_matrix(ring, ("b", "b", "a", "a"))
    assert names == ("b", "a")
    assert {(each.source, each.target): each.payload_bytes for each in cells} == {
        (0, 0): 10,
        (0, 1): 20,
        (1, 1): 30,
        (1, 0): 40,
    }
    assert [each.seconds for each in cells] == [1.0, 1.0, 1.0, None]
    assert [each.estimated for each in cells] == [True, True, False, True]


def test_several_pairs_of_the_same_hosts_add_up() -> None:
    names, cells = host_matrix([cell(0, 2, 10, None), cell(1, 2, 5, 0.5), cell(1, 3, 1, 0.25)], ("a", "a", "b", "b"))
    (found,) = cells
    assert (found.payload_bytes, found.seconds, found.messages) == (16, 0.75, 6)
    assert names[found.source] == "a" and names[found.target] == "b"


def test_servers_and_unknown_hosts_are_left_out() -> None:
    assert host_matrix([cell(0, 2, 10)], ("a", "b")) == (("a", "b"), ())
    assert host_matrix([cell(0, 1, 10)], ()) == ((), ())
