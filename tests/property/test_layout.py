"""A layout is a bijection between ranks and coordinates, and each of its axes divides the ranks into groups."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.layout import DATA, Axis, Layout, mesh

NAMES = ("data", "model", "stage", "rows")


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    return Layout(
        tuple(
            Axis(name=name, size=draw(st.integers(1, 4)), divides_network=name != DATA and draw(st.booleans()))
            for name in names
        )
    )


@given(layouts())
def test_coordinates_are_invertible_and_in_row_major_order(layout: Layout):
    assert layout.ranks == math.prod(layout.sizes.values())
    found = [layout.coordinates(rank) for rank in range(layout.ranks)]
    assert [layout.rank_at(coordinates) for coordinates in found] == list(range(layout.ranks))
    in_order = itertools.product(*(range(axis.size) for axis in layout.axes))
    assert [tuple(coordinates.values()) for coordinates in found] == list(in_order)
    for rank, coordinates in enumerate(found):
        assert {name: layout.index(rank, name) for name in layout.sizes} == coordinates


@given(layouts(), st.sampled_from(NAMES))
def test_each_rank_is_in_one_group_per_axis(layout: Layout, axis: str):
    groups = layout.groups(axis)
    assert sorted(itertools.chain(*groups)) == list(range(layout.ranks))
    for rank in range(layout.ranks):
        group = layout.group(rank, axis)
        assert group in groups and len(group) == layout.size(axis)
        assert group[layout.index(rank, axis)] == rank
        assert list(group) == sorted(group)


@given(layouts())
def test_replicas_agree_on_the_axes_that_divide_the_network(layout: Layout):
    divided = [axis.name for axis in layout.axes if axis.divides_network]
    shards = math.prod(axis.size for axis in layout.axes if axis.divides_network)
    for rank in range(layout.ranks):
        replicas = layout.replicas(rank)
        assert rank in replicas and len(replicas) == layout.ranks // shards
        for other in range(layout.ranks):
            alike = all(layout.index(rank, name) == layout.index(other, name) for name in divided)
            assert (other in replicas) == alike == (layout.shard(other) == layout.shard(rank))
    assert {layout.shard(rank) for rank in range(layout.ranks)} == set(range(shards))


@given(layouts())
def test_an_axis_that_is_not_there_has_one_index(layout: Layout):
    for rank in range(layout.ranks):
        assert (layout.size("heads"), layout.index(rank, "heads"), layout.group(rank, "heads")) == (1, 0, (rank,))


@given(st.integers(1, 64))
def test_data_parallel_ranks_are_their_own_indices(ranks: int):
    layout = mesh(ranks)
    assert (layout.ranks, layout.sizes, layout.text) == (ranks, {"data": ranks}, f"data={ranks}")
    assert [layout.index(rank, DATA) for rank in range(ranks)] == list(range(ranks))
    assert layout.groups(DATA) == (tuple(range(ranks)),)
    assert layout.replicas(ranks - 1) == tuple(range(ranks))


def test_a_mesh_of_two_axes_is_numbered_as_documented():
    layout = Layout((Axis(name="data", size=2), Axis(name="model", size=2, divides_network=True)))
    assert layout.text == "data=2,model=2"
    assert (layout.group(2, "data"), layout.group(2, "model")) == ((0, 2), (2, 3))
    assert layout.replicas(3) == (1, 3)


def test_an_axis_that_occurs_twice_and_one_without_ranks_are_our_own_mistakes():
    with pytest.raises(AssertionError):
        Layout((Axis(name="data", size=2), Axis(name="data", size=2)))
    with pytest.raises(AssertionError):
        Axis(name="data", size=0)
