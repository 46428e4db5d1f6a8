"""The nodes of a Ray cluster, and whether the ranks of a point fit on them. Pure: Ray is not imported.

    hosts = 2, ranks = 4, spread     STRICT_SPREAD   [2 ranks] [2 ranks]      two nodes, or none
    hosts = 2, ranks = 4, packed     PACK            [2 ranks] [2 ranks]      one node if both fit
    hosts = 1                        STRICT_PACK     [4 ranks]                one node: these ranks use loopback

A bundle is a reservation on one node: here for the ranks of one host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import RequestError
from paceline.records import process_roles
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from paceline.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One live node."""

    node: str
    """Ray's id of it."""
    host: str
    address: str
    cpus: int
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlace:
    """The bundle and local rank of one rank."""

    bundle: int
    local_rank: int
    local_size: int


def lost_ranks_file(folder: RunFolder) -> Path:
    """The file to which the driver writes a line for every rank that Ray lost."""
    return folder.ranks / "ray-lost"


def bundles(point: Point, settings: LaunchSettings) -> list[dict[str, float]]:
    """The resources requested from Ray, one bundle per host."""
    gpus = {"GPU": float(settings.gpus_per_host)} if settings.gpus_per_host else {}
    first, asked = 0, []
    for count in point.ranks_on_hosts:
        cpus = sum(process_roles.cores(point, process) for process in range(first, first + count))
        first += count
        if count:
            asked.append({"CPU": float(cpus), **gpus})
    return asked


def placement_strategy(point: Point, settings: LaunchSettings) -> str:
    """Ray's strategy for placing bundles on nodes."""
    if point.hosts == 1:
        return "STRICT_PACK"
    return "STRICT_SPREAD" if settings.spread else "PACK"


def rank_places(point: Point, nodes: Sequence[str]) -> list[RankPlace]:
    """The place of every rank, given the node of each bundle: two bundles may be on one node."""
    bundle_of = [bundle for bundle, ranks in enumerate(point.ranks_on_hosts) for _ in range(ranks)]
    node_of = [nodes[bundle] for bundle in bundle_of]
    return [
        RankPlace(bundle=bundle_of[rank], local_rank=node_of[:rank].count(node), local_size=node_of.count(node))
        for rank, node in enumerate(node_of)
    ]


def check_capacity(point: Point, settings: LaunchSettings, nodes: Sequence[Node], cluster: str) -> None:
    """Raise RequestError if even the idle cluster is too small for a point."""
    requested = bundles(point, settings)
    if _fits(requested, nodes, apart=placement_strategy(point, settings) == "STRICT_SPREAD"):
        return
    what = f"{counted(point.processes, 'rank')} of {counted(point.threads, 'thread')}"
    each = " and ".join(counted(int(amount), resource) for resource, amount in requested[0].items())
    needs = f"{each} on one node" if point.hosts == 1 else f"{counted(len(requested), 'node')} with {each} each"
    raise RequestError(
        f"{what} need {needs}, and {cluster} has {_offer(nodes)}.",
        right="Ray would wait forever for the missing resources.",
        next="Request fewer ranks, threads or hosts (run.ranks, run.threads, run.hosts), or add nodes: "
        "ray start --address=ADDRESS.",
    )


def _fits(requested: Sequence[dict[str, float]], nodes: Sequence[Node], *, apart: bool) -> bool:
    """Whether every bundle fits on a node. Where bundles may share nodes, necessary conditions only."""
    gpus = int(requested[0].get("GPU", 0.0))
    wanted = sorted((int(bundle["CPU"]) for bundle in requested), reverse=True)
    existing = sorted((node.cpus for node in nodes if node.gpus >= gpus), reverse=True)
    if apart:
        return len(existing) >= len(wanted) and all(has >= needs for has, needs in zip(existing, wanted, strict=False))
    enough_gpus = sum(node.gpus for node in nodes) >= gpus * len(requested)
    return enough_gpus and max(existing, default=0) >= wanted[0] and sum(existing) >= sum(wanted)


def _offer(nodes: Sequence[Node]) -> str:
    """'2 nodes: host-1 with 2 CPUs, host-2 with 4 CPUs'; shortened if there are many."""
    if not nodes:
        return "no live node"
    words = [
        f"{node.host} with {counted(node.cpus, 'CPU')}" + (f" and {counted(node.gpus, 'GPU')}" if node.gpus else "")
        for node in nodes
    ]
    shown = words if len(words) <= 8 else [*words[:7], "…"]
    return f"{counted(len(nodes), 'node')}: {', '.join(shown)}"
