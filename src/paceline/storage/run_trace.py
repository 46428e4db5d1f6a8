"""A run folder -> the spans of all its ranks on one clock.

Only the spans are required: a killed run may have no result, and ranks that another program started have
no manifest. Missing or damaged files are listed as problems, and the rest is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from paceline.errors import FolderError, StorageError
from paceline.records.allocation import AllocationCheck, Clock
from paceline.records.rank_trace import RankTrace
from paceline.records.run import Machine, Manifest, RankReport, RankStart, RunResult
from paceline.records.script_outcome import ScriptOutcome
from paceline.records.trace_summary import RunTrace
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import read_spans
from paceline.units import nanoseconds, seconds

Record = TypeVar("Record")

_MOST_RANKS = 1_000_000
_NEVER = 1 << 62
"""Upper limit of nanoseconds since a host's boot, and of bytes: the sum of two still fits into 64 bits."""
_SHOWN = 8


def read_run(folder: RunFolder) -> RunTrace:
    """The trace of the run in a folder; FolderError if it has no spans."""
    files = sorted(folder.spans.glob("rank-*.arrows"))
    if not files:
        raise FolderError(
            f"There are no spans in {folder.path}.",
            right="A trace is read from the folder of a run, which has spans/rank-0000.arrows and so on.",
            next="paceline run and paceline study make such folders.",
        )
    problems: list[str] = []
    manifest, machine = _read(folder.manifest, Manifest, problems), _read(folder.machine, Machine, problems)
    result = _read(folder.result, RunResult, problems)
    clocks = _clocks(folder, machine, problems)
    traces = _traces(folder, files, clocks, problems)
    there = {trace.rank for trace in traces}
    scripts = [_read(folder.rank_script(rank), ScriptOutcome, problems) for rank in sorted(there)]
    outcomes = {script.rank: script for script in scripts if script is not None}
    ranks = _num_ranks(there, manifest, outcomes.values(), problems)
    missing = [rank for rank in range(ranks) if rank not in there]
    if missing:
        problems.append(f"There are no spans of rank {_some(missing)}.")
    reports = [_read(folder.rank_report(rank), RankReport, problems) for rank in range(ranks)]
    hosts = _hosts(folder, reports, outcomes)
    if len(there) > 1 and not there <= clocks.keys() and len(set(hosts)) != 1:
        problems.append("The clocks of the ranks were not compared: they are taken to be one.")
    device = result.device if result else next((script.device for script in outcomes.values()), "cpu")
    if device != "cpu":
        problems.append("The ranks ran on a GPU: spans show when the host queued its work, not when it was done.")
    window = _window(traces, manifest, result)
    return RunTrace(
        name=str(folder.path),
        ranks=ranks,
        started_at_ns=window[0],
        ended_at_ns=window[1],
        traces=tuple(traces),
        hosts=hosts,
        clock_error_ns=_error_ns(reports, clocks, there),
        device=device,
        problems=(*problems, *dict.fromkeys(note for script in outcomes.values() for note in script.notes)),
    )


def _num_ranks(
    there: Set[int], manifest: Manifest | None, scripts: Iterable[ScriptOutcome], problems: list[str]
) -> int:
    """Number of training ranks: from the manifest, else from the ranks of a script, else from the traces."""
    seen = max((rank + 1 for rank in there), default=0)
    asked = manifest.point.ranks if manifest else max((script.size for script in scripts), default=seen)
    if 1 <= asked <= _MOST_RANKS:
        return asked if manifest else max(asked, seen)
    if manifest or asked:
        problems.append(f"The run is said to have {asked} ranks, which cannot be.")
    return seen


def _hosts(
    folder: RunFolder, reports: Sequence[RankReport | None], scripts: Mapping[int, ScriptOutcome]
) -> tuple[str, ...]:
    """The host of every rank, from its report or from the file of its wrapper; empty if one is unknown."""
    hosts: list[str] = []
    for rank, report in enumerate(reports):
        source = report or scripts.get(rank) or _read(folder.rank_start(rank), RankStart, [])
        if source is None:
            return ()
        hosts.append(source.host)
    return tuple(hosts)


def _clocks(folder: RunFolder, machine: Machine | None, problems: list[str]) -> dict[int, tuple[Clock, ...]]:
    """Clock offsets of every rank: against the launcher's clock, or against rank 0's in a killed run."""
    check = None if machine else _read(folder.allocation_check, AllocationCheck, problems)
    compared = (*machine.clocks, *machine.clocks_at_end) if machine else check.clocks if check else ()
    clocks: dict[int, tuple[Clock, ...]] = {}
    for clock in compared:
        if max(abs(clock.offset_ns), abs(clock.at_ns), clock.error_ns or 0) < _NEVER:
            clocks[clock.rank] = (*clocks.get(clock.rank, ()), clock)
        else:
            problems.append(f"The clock of rank {clock.rank} is said to be off by more than can be: it is not moved.")
    if any(clock.error_ns is None for found in clocks.values() for clock in found):
        problems.append("Nothing bounds how far the ranks' clocks are off the launcher's: start-up may be misplaced.")
    return clocks


def on_one_clock(trace: RankTrace, clocks: Sequence[Clock]) -> RankTrace:
    """A trace with instants on the launcher's clock; -1 stays -1.

    Between two comparisons of a clock, a linear drift is assumed.
    """
    if not any(clock.offset_ns for clock in clocks):
        return trace

    def moved(instants: np.ndarray) -> np.ndarray:
        by_ns = np.full(len(instants), clocks[0].offset_ns)
        drift_ns, apart_ns = clocks[-1].offset_ns - clocks[0].offset_ns, clocks[-1].at_ns - clocks[0].at_ns
        if abs(drift_ns) < apart_ns:
            # Only the drift is a float: an offset of days would lose precision.
            by_ns = by_ns + np.rint((instants - clocks[0].at_ns) * (drift_ns / apart_ns)).astype(np.int64)
        return np.where(instants >= 0, instants - by_ns, instants)

    return replace(trace, start_ns=moved(trace.start_ns), end_ns=moved(trace.end_ns), begun_ns=moved(trace.begun_ns))


def _traces(
    folder: RunFolder, files: Sequence[Path], clocks: Mapping[int, Sequence[Clock]], problems: list[str]
) -> list[RankTrace]:
    """The readable traces, in order of rank; the others are added to `problems`."""
    traces = []
    for path in files:
        number = path.stem.removeprefix("rank-")
        if not number.isdecimal() or int(number) >= _MOST_RANKS or path != folder.rank_spans(int(number)):
            problems.append(f"{path.name} does not say whose it is.")
            continue
        try:
            trace = read_spans(path, int(number))
            check_trace(trace)
        except StorageError as error:
            problems.append(error.what)
            continue
        # Corrupt bytes can raise any of these.
        except (pa.ArrowException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            problems.append(f"{path} is damaged: {error}.")
            continue
        traces.append(on_one_clock(trace, clocks.get(trace.rank, ())))
        if trace.truncated:
            problems.append(f"The spans of rank {trace.rank} break off: what came after the last flush is lost.")
        elif not len(trace):
            problems.append(f"The file of rank {trace.rank} has no spans in it.")
    return sorted(traces, key=lambda trace: trace.rank)


def check_trace(trace: RankTrace) -> None:
    """Raise ValueError if a trace has values that no rank can have written."""
    for instants, least in ((trace.start_ns, 0), (trace.end_ns, -1), (trace.begun_ns, -1)):
        if len(instants) and (instants.min() < least or instants.max() >= _NEVER):
            raise ValueError("an instant in it is none")
    if len(trace) and trace.bytes.max() >= _NEVER:
        raise ValueError("a size in it is none")
    _ = trace.groups  # ValueError if it does not name ranks


def _window(traces: Sequence[RankTrace], manifest: Manifest | None, result: RunResult | None) -> tuple[int, int]:
    """Start and end in ns: from the launch to the last rank's end, or from the first span to the last if unknown."""
    launched = manifest.launched_at_ns if manifest and 0 <= manifest.launched_at_ns < _NEVER else None
    first = min((int(trace.start_ns.min()) for trace in traces if len(trace)), default=launched or 0)
    last = max((int(max(trace.end_ns.max(), trace.start_ns.max())) for trace in traces if len(trace)), default=first)
    started = first if launched is None else min(launched, first)
    if result is not None and result.launched_at_ns == started and 0 <= result.wall_s < seconds(_NEVER):
        return started, max(started, started + nanoseconds(result.wall_s))
    return started, max(started, last)


def _error_ns(reports: Sequence[RankReport | None], clocks: Mapping[int, Sequence[Clock]], ranks: Set[int]) -> int:
    """Upper bound of the clock error between two ranks, in ns: each is compared with rank 0.

    A killed rank has no report: the preflight check has its error.
    """
    errors = {rank: max((clock.error_ns or 0 for clock in clocks.get(rank, ())), default=0) for rank in ranks}
    for report in reports:
        if report is not None and report.rank in ranks:
            at_end = report.clock_at_end.error_ns if report.clock_at_end else None
            errors[report.rank] = max(report.clock_error_ns or 0, at_end or 0)
    return sum(sorted(errors.values())[-2:])


def _some(ranks: Sequence[int]) -> str:
    """A short list of ranks: `1, 2 and 5 more`."""
    shown = ", ".join(map(str, ranks[:_SHOWN]))
    return shown if len(ranks) <= _SHOWN else f"{shown} and {len(ranks) - _SHOWN} more"


def _read(path: Path, cls: type[Record], problems: list[str]) -> Record | None:
    """A record, or None if it is missing; one that cannot be read is added to `problems`."""
    try:
        return read_record(path, cls) if path.exists() else None
    except StorageError as error:
        problems.append(error.what)
    except (OSError, RecursionError) as error:
        problems.append(f"{path} cannot be read: {error}.")
    return None
