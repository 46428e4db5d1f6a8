"""Roles of the processes of a run: their threads, cores and names.

    0 … ranks-1             rank             trains
    ranks … +servers-1      server           stores a shard of the parameters
    the last                coordinator      synchronises the ranks; hardly computes

Without servers every process is a rank.
"""

from __future__ import annotations

from paceline.records.study import Point


def threads(point: Point, process: int) -> int:
    """Number of compute threads of a process."""
    own = {"rank": point.threads, "server": point.options.get("server_threads", 1)}
    return own.get(point.role(process), 1)


def cores(point: Point, process: int) -> int:
    """Number of cores of a process; 0 for a coordinator, which is not pinned."""
    role = point.role(process)
    if role == "rank" and point.cores is not None:
        return point.cores
    return 0 if role == "coordinator" else threads(point, process)


def number(point: Point, process: int) -> int:
    """The number of a process among those of its role."""
    return process - point.ranks if point.role(process) == "server" else process


def name(point: Point, process: int) -> str:
    """'rank 3', 'server 0', 'coordinator'."""
    role = point.role(process)
    return role if role == "coordinator" else f"{role} {number(point, process)}"


def title(point: Point, process: int) -> str:
    """'Rank 3 of 4', 'Server 0 (process 4 of 6)': the beginning of a sentence about a process."""
    if point.role(process) == "rank":
        return f"Rank {process} of {point.ranks}"
    return f"{name(point, process).capitalize()} (process {process} of {point.processes})"
