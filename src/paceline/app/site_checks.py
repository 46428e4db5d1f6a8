"""Checks of a site profile: its settings are checked, then two ranks are started with its launcher.

    profile ─▶ launcher, interface, partition, modules ─▶ two ranks: start, rendezvous, all-reduce ─▶ a line per rank

The run folder is below runs/, because all hosts need access to it. It is removed after success; after a failure it
stays, with the logs.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from paceline import catalog
from paceline.app.machine_checks import Check
from paceline.errors import PacelineError
from paceline.launch.child import python
from paceline.launch.launcher import Launcher
from paceline.records.run import RankReport
from paceline.records.settings import DataSettings, LaunchSettings, ModelSettings, TrainSettings
from paceline.records.study import Point, Run, Study
from paceline.storage.folder import RunFolder
from paceline.units import bytes_text, duration_text

_HELLO = "paceline.training.hello"
HEARTBEAT_S = 30.0


def checks(name: str, runs: Path) -> Iterator[Check]:
    """All checks of a site profile; ends after a failure that prevents the next checks."""
    from paceline.studies.load.sites import site_file, site_tables

    try:
        tables = site_tables(name)
    except PacelineError as error:
        yield _failed("Profile", error)
        return
    yield Check(name="Profile", found=str(site_file(name)), facts=dict(tables))
    settings, starter = settings_of(name, tables)
    details = list(_details(starter, settings))
    yield from details
    launcher: Launcher = catalog.load("launcher", starter)(command=python("-m", _HELLO), settings=settings)
    point = hello_point(starter, settings)
    try:
        launcher.check(point)
    except PacelineError as error:
        yield _failed("Launcher", error)
        return
    yield Check(name="Launcher", found=f"{starter}: {launcher.placement(point).text}", facts={"launcher": starter})
    if not any(check.status == "error" for check in details):
        yield from _hello(launcher, point, settings, runs)


def settings_of(name: str, tables: dict[str, dict[str, object]]) -> tuple[LaunchSettings, str]:
    """The launch settings of a profile, and the name of its launcher."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in tables["launch"].items()}
    if "grace_s" in values:
        values["grace_s"] = float(str(values["grace_s"]))
    settings = LaunchSettings(site=name, **values)  # pyright: ignore[reportArgumentType]
    return settings, str(tables["run"].get("launcher", "local"))


def hello_point(launcher: str, settings: LaunchSettings) -> Point:
    """A point with two ranks; on two hosts if the profile configures the connection between hosts."""
    entry = catalog.launcher(launcher)
    apart = entry.several_hosts and all(getattr(settings, key) for key in entry.hosts_need)
    apart = apart and (not entry.named_machines or len(settings.machines) > 1)
    return Point(
        data=DataSettings(dataset="digits"),
        data_digest="",
        model=ModelSettings(name="mlp"),
        model_digest="",
        train=TrainSettings(batch_global=2, steps=1),
        ranks=2,
        hosts=2 if apart else 1,
        strategy="flat",
        launcher=launcher,
        device="cpu",
    )


def _details(starter: str, settings: LaunchSettings) -> Iterator[Check]:
    """The checks of settings that can be compared with this machine."""
    entry = catalog.launcher(starter)
    if settings.interface and entry.several_hosts:
        yield _interface(settings.interface, elsewhere=entry.is_scheduler)
    if settings.machines and entry.named_machines:
        yield _agent(settings)
    if entry.lists_partitions:
        yield from _partition(settings.partition)
    if settings.modules and entry.is_scheduler:
        found = f"{', '.join(settings.modules)}: loaded by the job on its hosts; not checked here"
        yield Check(name="Modules", found=found)


def _interface(name: str, *, elsewhere: bool) -> Check:
    """The network interface between hosts; `elsewhere` if ranks run on other hosts than this one."""
    import psutil

    there = {
        key: [address.address for address in own if address.family == socket.AF_INET]
        for key, own in psutil.net_if_addrs().items()
    }
    usable = [key for key, addresses in there.items() if addresses]
    if name in usable:
        return Check(name="Interface", found=f"{name}: {', '.join(there[name])}", facts={"interface": name})
    near = catalog.nearest(name, usable)
    return Check(
        name="Interface",
        found=f"this host has no interface {name!r} with an IPv4 address; it has {', '.join(usable)}",
        status="warning" if elsewhere else "error",
        remedy="The hosts of a job may have other interfaces: see the ranks below."
        if elsewhere
        else f"Set launch.interface to another one{f': did you mean {near!r}?' if near else '.'}",
    )


def _agent(settings: LaunchSettings) -> Check:
    from paceline.app.launcher_checks import program_path

    program = program_path(settings.agent[0])
    words = " ".join(settings.agent)
    if program is None:
        remedy = "Set launch.agent to a command that runs another command on a host, such as ssh."
        return Check(name="Agent", found=f"{words}: there is no such program", status="error", remedy=remedy)
    return Check(name="Agent", found=f"{words} ({program}), to {', '.join(settings.machines)}")


def _partition(asked: str) -> Iterator[Check]:
    from paceline.app.launcher_checks import ANSWER_S, Query, slurm_partitions

    output = Query("sinfo", "--noheader", "--format=%R").answer(time.monotonic() + 10 * ANSWER_S)
    known = slurm_partitions(output)
    if known is None:
        remedy = "Check whether SLURM's controller is running: scontrol ping"
        yield Check(name="Partition", found="sinfo does not answer", status="error", remedy=remedy)
    elif asked and asked not in known:
        near = catalog.nearest(asked, known)
        remedy = f"SLURM knows {', '.join(known)}." + (f" Did you mean {near!r}?" if near else "")
        yield Check(name="Partition", found=f"there is no partition {asked!r}", status="error", remedy=remedy)
    else:
        yield Check(name="Partition", found=asked or f"the default one, of {', '.join(known)}")


def _hello(launcher: Launcher, point: Point, settings: LaunchSettings, runs: Path) -> Iterator[Check]:
    """Start the two ranks; a check for each, or the error of the launcher."""
    from paceline.storage.codec import write_record
    from paceline.studies.execute.compose import new_manifest

    new = not runs.exists()
    runs.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(Path(tempfile.mkdtemp(prefix="hello-", dir=runs.absolute())))
    try:
        manifest = new_manifest(
            Run(point=point, number=1),
            study=Study(name="hello", launch=settings),
            data_folder=folder.path,
            model_file=None,
            placement=launcher.placement(point),
            attempt=1,
        )
        write_record(folder.manifest, manifest)
        started_at = time.monotonic()
        outcome = launcher.run(folder, manifest, heartbeat_s=HEARTBEAT_S)
        total_s = time.monotonic() - started_at
        ranks = [_rank(folder, report) for report in outcome.reports]
    except PacelineError as error:
        yield _failed("Hello", error)
        return
    shutil.rmtree(folder.path, ignore_errors=True)
    if new:
        with contextlib.suppress(OSError):
            runs.rmdir()
    yield from ranks
    found = f"two ranks started, connected and exchanged data in {duration_text(total_s)}"
    yield Check(name="Hello", found=found, facts={"total_s": total_s})


def _rank(folder: RunFolder, report: RankReport) -> Check:
    """The times of one rank: start, rendezvous and all-reduces."""
    from paceline.storage.codec import plain, read_record
    from paceline.training.hello import Hello, hello_file

    hello = read_record(hello_file(folder, report.rank), Hello)
    exchanges = ", ".join(
        f"{bytes_text(size) if size >= 1000 else f'{size} bytes'} in {duration_text(took_s)}"
        for size, took_s in zip(hello.sizes_bytes, hello.exchanges_s, strict=True)
    )
    # The kernel records the start of a process in hundredths of a second.
    started = "immediately" if hello.started_s < 0.02 else f"{duration_text(hello.started_s)} after the request"
    found = f"on {hello.host}: started {started}, rendezvous in {duration_text(hello.met_s)}; all-reduce of {exchanges}"
    return Check(name=f"Rank {report.rank}", found=found, facts=plain(hello))


def _failed(name: str, error: PacelineError) -> Check:
    """An error as a failed check."""
    remedy = "\n".join(part for part in (error.right, error.next) if part)
    return Check(name=name, found=error.what, status="error", remedy=remedy)
