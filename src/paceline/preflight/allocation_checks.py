"""Allocation checks: the request of a run compared with the facts of its processes. Pure; a table of checks.

    complaints(manifest, ranks, clocks)  ──▶  name, severity, sentence, what would be right, what to do

fatal stops the run before its first step unless it is forced: its figures would be recorded under settings that it did
not have, or would not measure training. warning concerns the interpretation of figures; info is for the record.
A new check is a function and a line in CHECKS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from paceline.preflight.checked_run import (
    CheckedRun,
    grouped,
    hosts_text,
    processes_text,
    rank_numbers,
    ranks_text,
    spread_text,
    subject,
)
from paceline.preflight.core_checks import (
    more_threads_than_cores,
    shared_cores,
    threads_beyond_affinity,
    threads_not_as_asked,
)
from paceline.records.allocation import SEVERITIES, Clock, Complaint, ProcessFacts
from paceline.records.run import Manifest
from paceline.units import counted, duration_text, seconds

CLOCKS_APART_S = 1.0
"""Above it, times in logs and files of two hosts cannot be compared."""

# hashed contents -> name of the complaint, and words for the sentence
_DIGESTS = {
    "code_sha256": ("code-differs", "other code of Paceline"),
    "model_sha256": ("model-differs", "another model file"),
    "settings_sha256": ("settings-differ", "other settings (manifest.json)"),
}


def complaints(manifest: Manifest, ranks: Sequence[ProcessFacts], clocks: Sequence[Clock]) -> tuple[Complaint, ...]:
    """The results of all CHECKS, the most severe first."""
    case = CheckedRun(manifest, ranks, clocks)
    found = [complaint for check in CHECKS for complaint in check(case)]
    return tuple(sorted(found, key=lambda complaint: SEVERITIES.index(complaint.severity)))


def number_of_hosts(case: CheckedRun) -> Iterator[Complaint]:
    """Fewer or more hosts than requested: the figure would be recorded under a wrong number."""
    point = case.manifest.point
    asked, found = min(point.hosts, point.processes), len(case.hosts)
    if found == asked:
        return
    shown = ", ".join(f"{processes_text(len(own))} on {own[0].place}" for own in case.hosts.values())
    if found == 1:
        shown = f"{'its' if len(case.ranks) == 1 else 'all'} {processes_text(len(case.ranks))} on {case.ranks[0].place}"
    yield Complaint(
        name="fewer-hosts" if found < asked else "more-hosts",
        severity="fatal",
        what=f"The run has {counted(found, 'host')} instead of {asked}: {shown}.",
        right=f"{counted(asked, 'host')} with {spread_text(point.ranks_on_hosts[:asked])} processes.",
        next="Check launch.machines, the nodes of the job and how its launcher distributes processes, or request "
        f"run.hosts={found}.",
    )


def uneven_spread(case: CheckedRun) -> Iterator[Complaint]:
    """The requested number of hosts, with other numbers of processes on them."""
    asked = case.manifest.point.ranks_on_hosts
    found = tuple(sorted((len(own) for own in case.hosts.values()), reverse=True))
    if len(found) == len(asked) and found != asked:
        yield Complaint(
            name="uneven-spread",
            severity="warning",
            what=f"The hosts run {spread_text(found)} processes instead of {spread_text(asked)}.",
            right="Processes are distributed over the hosts as evenly as possible.",
            next="Check the slots of launch.machines, or how the launcher of the job distributes processes.",
        )


def no_gpu(case: CheckedRun) -> Iterator[Complaint]:
    """Ranks without a dedicated GPU, if GPUs were requested or exist."""
    asked = case.manifest.point.device
    if asked == "cpu" or (asked == "auto" and not any(process.gpus for process in case.ranks)):
        return
    without = [process for process in case.ranks if process.role == "rank" and not process.device.startswith("cuda")]
    if without:
        first = without[0]
        yield Complaint(
            name="no-gpu",
            severity="fatal",
            what=f"{subject(without, 'has', 'have')} no GPU: rank {first.rank} sees {counted(len(first.gpus), 'GPU')} "
            f"on {first.place}, for {processes_text(first.local_size)} there.",
            right=f"One GPU for every rank of a host, because run.device is {asked!r}.",
            next="Request GPUs for the job (launch.gpus_per_host), install a torch with GPU support, or run on the "
            "CPU: --set run.device=cpu.",
            ranks=rank_numbers(without),
        )


def different_digests(case: CheckedRun) -> Iterator[Complaint]:
    """Code, model file or settings that differ between processes: they would not train the same model."""
    for attribute, (name, noun) in _DIGESTS.items():
        by_digest = grouped(case.ranks, lambda process, attribute=attribute: getattr(process, attribute))
        if len(by_digest) == 1:
            continue
        usual, most = max(by_digest.items(), key=lambda item: len(item[1]))
        others = [process for process in case.ranks if process not in most]
        other = getattr(others[0], attribute)
        yield Complaint(
            name=name,
            severity="fatal",
            what=f"{subject(others, 'has', 'have')} {noun} on {hosts_text(others)} than {ranks_text(most)} on "
            f"{hosts_text(most)}: {other[:10] or 'none'} instead of {usual[:10] or 'none'}.",
            right="All processes of a run compute the same thing.",
            next="Put Paceline, the model file and the study folder on a file system that all hosts share.",
            ranks=rank_numbers(others),
        )


def different_versions(case: CheckedRun) -> Iterator[Complaint]:
    """Versions that differ between processes; a difference in more than the patch level is fatal."""
    for name in dict.fromkeys(name for process in case.ranks for name in process.versions):
        by_version = grouped(case.ranks, lambda process, name=name: process.versions.get(name, "none"))
        if len(by_version) == 1:
            continue
        shown = "; ".join(f"{version} on {hosts_text(own)} ({ranks_text(own)})" for version, own in by_version.items())
        yield Complaint(
            name="versions-differ",
            severity="warning" if len({tuple(v.split(".")[:2]) for v in by_version}) == 1 else "fatal",
            what=f"Not all processes have the same {name}: {shown}.",
            right="One version on every host.",
            next="Install the same environment on all hosts, for instance on a shared file system.",
        )


def clocks_apart(case: CheckedRun) -> Iterator[Complaint]:
    """Wall clocks that disagree; ledgers are not affected, because they use aligned monotonic clocks."""
    ahead_ns = wall_offsets_ns(case.ranks, case.clocks)
    late, early = min(case.ranks, key=lambda g: ahead_ns[g.rank]), max(case.ranks, key=lambda g: ahead_ns[g.rank])
    apart_s = seconds(ahead_ns[early.rank] - ahead_ns[late.rank])
    if apart_s > CLOCKS_APART_S:
        yield Complaint(
            name="clocks-apart",
            severity="warning",
            what=f"Wall clocks are {duration_text(apart_s)} apart: that of {early.place} (rank {early.rank}) is ahead "
            f"of that of {late.place} (rank {late.rank}).",
            right=f"Within {duration_text(CLOCKS_APART_S)}. Ledgers are not affected: they use monotonic clocks, "
            "which were aligned.",
            next="Synchronise the hosts with one time server (NTP); until then, do not compare times in their logs.",
            ranks=tuple(sorted((late.rank, early.rank))),
        )


def wall_offsets_ns(ranks: Sequence[ProcessFacts], clocks: Sequence[Clock]) -> dict[int, int]:
    """How far each process's wall clock is ahead of rank 0's."""
    offset_ns = {clock.rank: clock.offset_ns for clock in clocks}
    base_ns = ranks[0].wall_ns - ranks[0].monotonic_ns
    return {
        process.rank: process.wall_ns - process.monotonic_ns - base_ns + offset_ns.get(process.rank, 0)
        for process in ranks
    }


def emulated_hosts(case: CheckedRun) -> Iterator[Complaint]:
    """One machine under several host names."""
    for own in case.machines.values():
        names = {(process.node, process.host) for process in own}
        if len(names) > 1:
            yield Complaint(
                name="emulated-hosts",
                severity="info",
                what=f"The hosts {hosts_text(own)} are one machine: {len(names)} of them share its "
                f"{counted(own[0].cores, 'core')} and its kernel.",
                right="Such hosts show that a run works across hosts, not how fast: they are excluded from fits.",
                next="For figures, use separate machines.",
                ranks=rank_numbers(own),
            )


CHECKS: tuple[Callable[[CheckedRun], Iterator[Complaint]], ...] = (
    number_of_hosts,
    uneven_spread,
    different_digests,
    different_versions,
    no_gpu,
    threads_beyond_affinity,
    shared_cores,
    more_threads_than_cores,
    threads_not_as_asked,
    clocks_apart,
    emulated_hosts,
)
