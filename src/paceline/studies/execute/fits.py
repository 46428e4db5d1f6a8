"""Which points fit on this machine or cluster: `study.fits = "machine"`.

    more threads of ranks and servers than twice the cores             not run
    more than the cores, up to twice                                   run, and reported as emulated
    more hosts than configured or available                            not run
    refused by its launcher: memory, a missing program                 not run

A study that was published on 128 nodes is run up to what fits; the report lists the rest with reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline import catalog
from paceline.errors import RequestError
from paceline.launch import machine
from paceline.launch.launcher import Launcher
from paceline.records.results import NotRun
from paceline.records.study import Point, Study, factor_value, point_label
from paceline.studies.expand.expand import launch_of
from paceline.units import counted

MACHINE = "machine"
MOST_PER_CORE = 2
"""Threads per core at most."""


def fitting_points(
    study: Study, points: Sequence[Point], launcher: Callable[[Point], Launcher], *, cores: int | None = None
) -> tuple[tuple[Point, ...], tuple[NotRun, ...]]:
    """The points that are run, and those that are not.

    Without `study.fits` all are run. `cores` is the number of cores of this machine.
    """
    if study.fits != MACHINE:
        return tuple(points), ()
    usable = _cores() if cores is None else cores
    reasons = [misfit_reason(study, point, usable) or _refusal(launcher(point), point) for point in points]
    kept = tuple(point for point, reason in zip(points, reasons, strict=True) if not reason)
    return kept, tuple(not_run(study, p, reason) for p, reason in zip(points, reasons, strict=True) if reason)


def _cores() -> int:
    return machine.usable_count(len(machine.processors()), machine.cgroup_limits().cpus)


def not_run(study: Study, point: Point, reason: str) -> NotRun:
    """The record of a point that is not run."""
    factors = {path: factor_value(point, path) for path in study.vary}
    return NotRun(label=point_label(point, study.vary), settings={"run.ranks": point.ranks, **factors}, reason=reason)


def misfit_reason(study: Study, point: Point, cores: int) -> str:
    """Why a point does not fit on this machine or on the configured hosts; empty if it fits."""
    launch, entry = launch_of(study, point), catalog.launcher(point.launcher)
    if point.hosts > 1 and not entry.several_hosts:
        return f"It needs {counted(point.hosts, 'host')}, and the launcher {point.launcher} has this machine alone."
    if point.hosts > 1 and entry.named_machines and point.hosts > len(launch.machines):
        named = counted(len(launch.machines), "host") if launch.machines else "none"
        return f"It needs {counted(point.hosts, 'host')}, and launch.machines names {named}."
    here = point.hosts == 1 and not entry.is_scheduler and not launch.ray_address
    server_threads = point.options.get("server_threads", 1)
    threads = point.ranks * point.threads + point.servers * server_threads
    if here and threads > MOST_PER_CORE * cores:
        who = _threaded(point.ranks, "rank", point.threads)
        who += f" and {_threaded(point.servers, 'server', server_threads)}" if point.servers else ""
        return f"It has {who}, and this machine {counted(cores, 'core')}: more than twice as many are not run."
    return ""


def _threaded(count: int, what: str, threads: int) -> str:
    """`2 ranks`, or `1 rank of 16 threads` with more than one thread."""
    return counted(count, what) + (f" of {counted(threads, 'thread')}" if threads > 1 else "")


def _refusal(launcher: Launcher, point: Point) -> str:
    try:
        launcher.check(point)
    except RequestError as error:
        return error.what
    return ""
