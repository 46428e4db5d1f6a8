"""What is asked of Ray, and what can never be had."""

from __future__ import annotations

import subprocess
import sys

import pytest

from light_ranks.light_launch import light, point
from paceline.errors import RequestError
from paceline.launch.ray.ray_launcher import RayLauncher
from paceline.launch.ray.ray_nodes import Node, RankPlace, bundles, check_capacity, placement_strategy, rank_places
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point

SPREAD, PACKED = LaunchSettings(), LaunchSettings(spread=False)


def nodes(*cpus: int, gpus: int = 0) -> list[Node]:
    return [Node(node=f"n{i}", host=f"h{i}", address=f"10.0.0.{i}", cpus=n, gpus=gpus) for i, n in enumerate(cpus)]


def fits(asked: Point, there: list[Node], settings: LaunchSettings = SPREAD) -> bool:
    try:
        check_capacity(asked, settings, there, "the cluster")
    except RequestError:
        return False
    return True


def test_a_bundle_is_the_ranks_of_one_host() -> None:
    assert bundles(point(5, hosts=2, threads=2), SPREAD) == [{"CPU": 6.0}, {"CPU": 4.0}]
    assert bundles(point(4), LaunchSettings(gpus_per_host=2)) == [{"CPU": 4.0, "GPU": 2.0}]


def test_how_bundles_are_laid_over_nodes() -> None:
    assert placement_strategy(point(4, hosts=2), SPREAD) == "STRICT_SPREAD"
    assert placement_strategy(point(4, hosts=2), PACKED) == "PACK"
    # Ranks of one host meet on loopback: they may not be apart, whatever is asked for.
    assert placement_strategy(point(4), SPREAD) == placement_strategy(point(4), PACKED) == "STRICT_PACK"


def test_ranks_count_among_those_of_their_node() -> None:
    apart = rank_places(point(3, hosts=2), ["a", "b"])
    assert apart == [
        RankPlace(bundle=0, local_rank=0, local_size=2),
        RankPlace(bundle=0, local_rank=1, local_size=2),
        RankPlace(bundle=1, local_rank=0, local_size=1),
    ]
    together = rank_places(point(3, hosts=2), ["a", "a"])
    assert [(place.bundle, place.local_rank, place.local_size) for place in together] == [
        (0, 0, 3),
        (0, 1, 3),
        (1, 2, 3),
    ]


def test_what_fits() -> None:
    assert fits(point(2), nodes(2)) and not fits(point(3), nodes(2, 2))
    assert fits(point(4, hosts=2), nodes(2, 2)) and not fits(point(4, hosts=2), nodes(4))
    assert fits(point(4, hosts=2), nodes(4), PACKED) and not fits(point(4, hosts=2), nodes(3), PACKED)
    assert fits(point(5, hosts=2), nodes(2, 3)) and not fits(point(5, hosts=2), nodes(2, 2, 2))
    assert not fits(point(2, hosts=2), nodes(8, 8), LaunchSettings(gpus_per_host=1))
    assert fits(point(2, hosts=2), nodes(8, 8, gpus=1), LaunchSettings(gpus_per_host=1))
    assert not fits(point(1), [])


def test_the_refusal_says_what_is_there_and_what_was_asked_for() -> None:
    with pytest.raises(RequestError) as caught:
        check_capacity(point(6, hosts=2), SPREAD, nodes(4, 2), "the cluster")
    asked, there = "6 ranks of 1 thread need 2 nodes with 3 CPUs each", "2 nodes: h0 with 4 CPUs, h1 with 2 CPUs"
    assert caught.value.what == f"{asked}, and the cluster has {there}."
    with pytest.raises(RequestError, match="has no live node"):
        check_capacity(point(1), SPREAD, [], "the cluster")


def test_ray_that_is_not_installed_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RequestError, match=r"not installed(.|\n)*pip install 'paceline\[ray\]'"):
        RayLauncher(light()).check(point(2))


def test_the_launcher_never_loads_ray() -> None:
    code = "import sys, paceline.launch.ray.ray_launcher; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], timeout=60).returncode == 0


def test_placement_on_nodes_elsewhere_is_left_to_them() -> None:
    there = RayLauncher(light(), LaunchSettings(ray_address="10.0.0.1:6379"))
    placed = there.placement(point(4, hosts=2))
    assert placed.cores is None and not placed.oversubscribed
    assert placed.text == "4 ranks × 1 thread spread over 2 nodes of the Ray cluster at 10.0.0.1:6379"


def test_the_address_of_rays_client_is_refused() -> None:
    with pytest.raises(RequestError, match="client server"):
        RayLauncher(light(), LaunchSettings(ray_address="ray://10.0.0.1:10001")).check(point(2))
