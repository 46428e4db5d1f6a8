"""The nodes of a Ray cluster, and whether the ranks of a point fit onto them. Pure: nothing here knows Ray.

    hosts = 2, ranks = 4, spread     STRICT_SPREAD   [2 ranks] [2 ranks]      two nodes, or none
    hosts = 2, ranks = 4, packed     PACK            [2 ranks] [2 ranks]      one node where both fit
    hosts = 1                        STRICT_PACK     [4 ranks]                one node: these ranks meet on loopback

A bundle is what Ray gives out at once, on one node: here the ranks of one host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import RequestError
from paceline.records import roles
from paceline.records.folder import RunFolder
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node that is alive."""

    node: str
    """Ray's number of it."""
    host: str
    address: str
    cpus: int
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlace:
    """Where one rank goes."""

    bundle: int
    local_rank: int
    local_size: int


def lost_ranks_file(folder: RunFolder) -> Path:
    """Where the driver says which ranks Ray lost, a line each."""
    return folder.ranks / "ray-lost"


def bundles(point: Point, settings: LaunchSettings) -> list[dict[str, float]]:
    """What is asked of Ray, once per host."""
    gpus = {"GPU": float(settings.gpus_per_host)} if settings.gpus_per_host else {}
    first, asked = 0, []
    for count in point.ranks_on_hosts:
        cpus = sum(roles.cores(point, process) for process in range(first, first + count))
        first += count
        if count:
            asked.append({"CPU": float(cpus), **gpus})
    return asked


def placement_strategy(point: Point, settings: LaunchSettings) -> str:
    """How Ray is to lay the bundles over its nodes."""
    if point.hosts == 1:
        return "STRICT_PACK"
    return "STRICT_SPREAD" if settings.spread else "PACK"


def rank_places(point: Point, nodes: Sequence[str]) -> list[RankPlace]:
    """Where every rank goes, given the node of each bundle: two bundles may have come to lie on one."""
    bundle_of = [bundle for bundle, ranks in enumerate(point.ranks_on_hosts) for _ in range(ranks)]
    node_of = [nodes[bundle] for bundle in bundle_of]
    return [
        RankPlace(bundle=bundle_of[rank], local_rank=node_of[:rank].count(node), local_size=node_of.count(node))
        for rank, node in enumerate(node_of)
    ]


def check_capacity(point: Point, settings: LaunchSettings, nodes: Sequence[Node], cluster: str) -> None:
    """Raise RequestError where the cluster could never give what a point asks for, even with nothing else on it."""
    asked, how = bundles(point, settings), placement_strategy(point, settings)
    if _fits(asked, nodes, apart=how == "STRICT_SPREAD"):
        return
    what = f"{counted(point.processes, 'rank')} of {counted(point.threads, 'thread')}"
    needs = _needs(asked[0]) if point.hosts == 1 else f"{counted(len(asked), 'node')} with {_needs(asked[0])} each"
    raise RequestError(
        f"{what} need {needs}{' on one node' if point.hosts == 1 else ''}, and {cluster} has {_offer(nodes)}.",
        right="Ray would wait for the rest forever: a node that is not there yet has to be added first.",
        next="Ask for fewer ranks, threads or hosts (run.ranks, run.threads, run.hosts), or add nodes: "
        "ray start --address=ADDRESS.",
    )


def _fits(asked: Sequence[dict[str, float]], nodes: Sequence[Node], *, apart: bool) -> bool:
    """Whether every bundle can find a node; where several may share one, whether it is not plainly impossible."""
    gpus = int(asked[0].get("GPU", 0.0))
    wanted = sorted((int(bundle["CPU"]) for bundle in asked), reverse=True)
    there = sorted((node.cpus for node in nodes if node.gpus >= gpus), reverse=True)
    if apart:
        return len(there) >= len(wanted) and all(has >= needs for has, needs in zip(there, wanted, strict=False))
    enough_gpus = sum(node.gpus for node in nodes) >= gpus * len(asked)
    return enough_gpus and max(there, default=0) >= wanted[0] and sum(there) >= sum(wanted)


def _needs(bundle: dict[str, float]) -> str:
    """'2 CPUs', '4 CPUs and 1 GPU'."""
    words = [counted(int(much), kind) for kind, much in bundle.items()]
    return " and ".join(words)


def _offer(nodes: Sequence[Node]) -> str:
    """'2 nodes: host-1 with 2 CPUs, host-2 with 4 CPUs'; the middle is left out where there are many."""
    if not nodes:
        return "no node that is alive"
    words = [
        f"{node.host} with {counted(node.cpus, 'CPU')}" + (f" and {counted(node.gpus, 'GPU')}" if node.gpus else "")
        for node in nodes
    ]
    shown = words if len(words) <= 8 else [*words[:7], "…"]
    return f"{counted(len(nodes), 'node')}: {', '.join(shown)}"
