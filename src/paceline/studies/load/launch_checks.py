"""Checks of launchers and of `[launch]`, before any process starts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paceline import catalog
from paceline.records.settings import LaunchSettings, RunSettings
from paceline.records.study import Study
from paceline.studies.expand.expand import site_keys, variants
from paceline.studies.load.keys import KEYS, TEXTS, Problem, mistake, shown
from paceline.units import counted


def problems(study: Study) -> Iterator[Problem]:
    """All mistakes in how the ranks of a study are started."""
    each = list(variants(study))
    runs = [variant.run for variant in each]
    reads = study.vary.get("data.read", (study.data.read,))
    for launch in dict.fromkeys(variant.launch for variant in each):
        yield from _settings(launch)
        yield from _hosts(launch, [variant.run for variant in each if variant.launch == launch], fits=study.fits)
    yield from _untaken_options(study, runs)
    yield from _untaken_sites(study, runs)
    for strategy, launcher in dict.fromkeys((run.strategy, run.launcher) for run in runs):
        yield from _carried("run.strategy", strategy, launcher, catalog.carriers(strategy))
    for launcher in dict.fromkeys(run.launcher for run in runs):
        if "mpi-io" in reads:
            yield from _carried("data.read", "mpi-io", launcher, catalog.with_mpi())


def _settings(launch: LaunchSettings) -> Iterator[Problem]:
    for key, kind in KEYS["launch"].items():
        value = getattr(launch, key)
        texts = value if kind == TEXTS else (value,) if kind is str else ()
        # Each is one line of a job script or one argument of a command.
        if not all(text.isprintable() for text in texts):
            yield _wrong(key, value, "must not have line breaks or control characters in it.")
        elif kind == TEXTS and not all(texts):
            yield _wrong(key, value, "must not have empty texts in it.")
    if any(name.startswith("-") or set(name) & set(" ,") for name in launch.machines):
        yield _wrong("machines", launch.machines, "must be names of hosts, without spaces, commas and a dash in front.")
    elif len(set(launch.machines)) < len(launch.machines):
        yield _wrong("machines", launch.machines, "each host may stand there once.")
    if not launch.agent:
        yield _wrong("agent", launch.agent, 'must name a command, e.g. ["ssh"].')
    if not launch.mpiexec:
        yield _wrong("mpiexec", launch.mpiexec, "must be a name on the path, or a path.")
    if launch.start not in ("srun", "mpiexec"):
        yield _wrong("start", launch.start, 'must be "srun" or "mpiexec".')
    if launch.gpus_per_host < 0:
        yield _wrong("gpus_per_host", launch.gpus_per_host, "must be 0 or more.")
    if not (math.isfinite(launch.grace_s) and launch.grace_s >= 0):
        yield _wrong("grace_s", launch.grace_s, "must be a finite number, 0 or more.")


def _untaken_options(study: Study, runs: list[RunSettings]) -> Iterator[Problem]:
    """Options that no strategy of the study takes."""
    strategies = tuple(dict.fromkeys(run.strategy for run in runs))
    if not all(catalog.known("strategy", strategy) for strategy in strategies):
        return
    for option in catalog.RUN_OPTIONS:
        value = study.vary.get(f"run.{option}", getattr(study.run, option))
        if value is None or any(option in catalog.strategy(strategy).options for strategy in strategies):
            continue
        takers = [name for name, entry in catalog.entries("strategy") if option in entry.options]
        yield mistake(
            f"run.{option}", value, f"{_named(strategies)} does not take it; {_listed(takers)} would.", "run.strategy"
        )


def _untaken_sites(study: Study, runs: list[RunSettings]) -> Iterator[Problem]:
    """Factors of `[launch]` that no launcher of the study uses."""
    looked_at = {key for run in runs for key in site_keys(run)}
    launchers = tuple(dict.fromkeys(run.launcher for run in runs))
    for path, values in study.vary.items():
        section, key = path.split(".", 1)
        if section == "launch" and key not in looked_at:
            who = f"the launcher {launchers[0]}" if len(launchers) == 1 else f"none of {_listed(launchers)}"
            hosts = " with one host" if key == "interface" else ""
            text = f"{path} = {shown(values)}: {who} is no faster or slower by it{hosts}. Give one value."
            yield Problem((path, "run.launcher"), text)


def _hosts(launch: LaunchSettings, runs: list[RunSettings], *, fits: str) -> Iterator[Problem]:
    """Requirements of several hosts: a launcher with that capability, an interface, for some the names of the hosts.

    With `fits`, points that need more hosts are not a mistake: they are not run.
    """
    spread = [run for run in runs if run.hosts > 1]
    if fits:
        spread = [run for run in spread if _several_hosts(run) and not _too_many(launch, run)]
    for here in dict.fromkeys(run.launcher for run in spread if not _several_hosts(run)):
        if catalog.known("launcher", here):
            others = [name for name, entry in catalog.entries("launcher") if entry.several_hosts]
            text = f"all its ranks are on this machine, but run.hosts asks for more. {_can(others)}"
            yield mistake("run.launcher", here, text, "run.hosts")
    several = [run for run in spread if _several_hosts(run)]
    if several and not launch.interface:
        text = 'say which network the hosts share, e.g. interface = "eth0". `ip -br addr` lists them.'
        yield Problem(("launch.interface", "run.hosts"), f"launch.interface is missing: {text}")
    needed = max((run.hosts for run in several if catalog.launcher(run.launcher).named_machines), default=0)
    if needed > len(launch.machines):
        named = counted(len(launch.machines), "host")
        text = f"launch.machines names {named}, but run.hosts asks for {needed}: name at least as many."
        yield Problem(("launch.machines", "run.hosts"), text)


def _several_hosts(run: RunSettings) -> bool:
    return catalog.launcher(run.launcher).several_hosts


def _too_many(launch: LaunchSettings, run: RunSettings) -> bool:
    return catalog.launcher(run.launcher).named_machines and run.hosts > len(launch.machines)


def _carried(path: str, value: str, launcher: str, carriers: tuple[str, ...]) -> Iterator[Problem]:
    if catalog.known("launcher", launcher) and launcher not in carriers:
        text = f"{path} = {shown(value)}: needs MPI, which the launcher {launcher} does not bring. {_can(carriers)}"
        yield Problem((path, "run.launcher"), text)


def _can(launchers: tuple[str, ...] | list[str]) -> str:
    return f"{_listed(launchers)} can: run.launcher = {shown(launchers[0])}." if launchers else "No launcher here can."


def _named(strategies: tuple[str, ...]) -> str:
    return f"the strategy {strategies[0]}" if len(strategies) == 1 else f"none of {_listed(strategies)}"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last


def _wrong(key: str, value: object, text: str) -> Problem:
    return mistake(f"launch.{key}", value, text)
