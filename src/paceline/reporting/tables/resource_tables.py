"""Resources of each point's median run: messages, memory, CPU time, energy.

    messages, payload       its traces        per step, and × the steps of an epoch
    memory, real, user, sys its counters      as `paceline trace` shows them for all processes together
    energy                  meters of hosts   where they could be read

What was not measured is a dash, and a footnote says why. A column without any figure is left out, but for energy: that
there is no meter has to be known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paceline.metrics import metric
from paceline.records.results import PointResult, StudyResults
from paceline.reporting.cells import (
    NONE,
    Cell,
    Form,
    bytes_cell,
    count_cell,
    duration_cell,
    fraction_cell,
    number_cell,
    seconds_cell,
)
from paceline.reporting.tables.point_tables import MOST_RANKS, Table, key_cells, key_columns, word_columns
from paceline.reporting.wording.characters import printable
from paceline.units import duration_text

if TYPE_CHECKING:
    from paceline.records.counters import CpuTime, CpuTimes, HostEnergy

_SENT = ("messages per step", "messages per epoch", "payload per step", "payload per epoch")
_COUNTED = ("memory of a rank", "real", "user", "sys")
_ENERGY = "energy"
_ADDED_UP = (
    "real is from the launch to the end of the run; user and sys are those of all its processes added up, as the "
    "command time does, each until its last sample."
)
_WORTH_SAYING_S = 0.1
"""CPU time of child processes below it is that of small tools which a library has asked something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Used:
    """A point with what its median run used."""

    point: PointResult
    times: CpuTimes | None

    @property
    def whole(self) -> CpuTime | None:
        return self.times.whole if self.times else None


def resource_table(results: StudyResults, cpu_times: Mapping[str, CpuTimes]) -> Table:
    """One row for each point whose median run has traces or counters."""
    all_used = [_Used(point=point, times=cpu_times.get(point.point_id)) for point in results.points]
    used = [each for each in all_used if each.point.anatomy or each.times]
    figures = {name: [cell(each) for each in used] for name, cell in _CELLS.items()}
    counted = any(each.times for each in used)
    shown = [
        name
        for name, cells in figures.items()
        if (name == _ENERGY and counted) or any(cell.value is not None for cell in cells)
    ]
    return Table(
        caption="Resources: what the median run of each point sent, held and used",
        columns=(*key_columns(results), *(metric(name).heading for name in shown)),
        rows=tuple(
            (*key_cells(results, each.point), *(figures[name][row] for name in shown)) for row, each in enumerate(used)
        ),
        blank=tuple(metric(name).heading for name in shown if all(cell.value == 0 for cell in figures[name])),
        footnotes=tuple(_notes(used, {name: figures[name] for name in shown})),
        keys=len(key_columns(results)),
        words=word_columns(results),
    )


def _notes(used: Sequence[_Used], shown: Mapping[str, Sequence[Cell]]) -> Iterator[str]:
    """How real, user and sys are meant, and why there are dashes."""
    missing = [name for name, cells in shown.items() if any(cell.value is None for cell in cells)]
    if "user" in shown or "sys" in shown:
        yield _ADDED_UP
    children_s = max((each.whole.children_s or 0.0 for each in used if each.whole), default=0.0)
    if children_s >= _WORTH_SAYING_S:
        yield f"Not in them: child processes that had ended, up to {duration_text(children_s)} of CPU time in a run."
    sent = [name for name in missing if name in _SENT]
    if sent:
        yield f"{NONE} {', '.join(sent)}: not measured: the traces of the run do not show them."
    uncounted = [name for name in missing if name in _COUNTED]
    if uncounted:
        yield f"{NONE} {', '.join(uncounted)}: not measured: the run has no such counters."
    if _ENERGY in missing:
        yield f"{NONE} energy: not measured: no meter of a host could be read."


def _epoch_steps(used: _Used) -> int | None:
    """Steps of a whole epoch of the median run, of its first phase; None where it has none."""
    curve = next((curve for curve in used.point.curves if curve.run == used.point.median_run), None)
    epochs = curve.epochs if curve else ()
    ended_at = {0: 0} | {epoch.epoch: epoch.step for epoch in epochs}
    steps = (e.step - ended_at[e.epoch - 1] for e in epochs if e.whole and e.epoch - 1 in ended_at)
    return next(steps, None)


def _per_epoch(per_step: float | None, used: _Used) -> float | None:
    steps = _epoch_steps(used)
    return None if per_step is None or steps is None else per_step * steps


def _bytes_cell(value: float | None) -> Cell:
    return Cell(0) if value == 0 else bytes_cell(value)


def _energy_cell(used: _Used) -> Cell:
    """Joules of all hosts that have a meter, and how many of them have one where not all do."""
    hosts = [
        [joules for joules in (host.package_j, host.memory_j, host.gpu_j) if joules is not None]
        for host in (used.times.energy if used.times else ())
    ]
    metered = [joules for joules in hosts if joules]
    if not metered:
        return Cell(None)
    there = 1 if used.point.emulated else len(used.point.point.ranks_on_hosts)
    beside = f"{len(metered)} of {there} hosts" if len(metered) < there else ""
    return replace(number_cell(math.fsum(joules for host in metered for joules in host)), note=beside)


def _of_whole(name: str, cell: Callable[[float | None], Cell]) -> Callable[[_Used], Cell]:
    return lambda used: cell(getattr(used.whole, name) if used.whole else None)


_CELLS: dict[str, Callable[[_Used], Cell]] = {
    "messages per step": lambda used: number_cell(used.point.messages),
    "messages per epoch": lambda used: number_cell(_per_epoch(used.point.messages, used)),
    "payload per step": lambda used: _bytes_cell(used.point.message_bytes),
    "payload per epoch": lambda used: _bytes_cell(_per_epoch(used.point.message_bytes, used)),
    "memory of a rank": _of_whole("peak_bytes", _bytes_cell),
    "GPU memory of a rank": _of_whole("gpu_peak_bytes", _bytes_cell),
    "real": _of_whole("real_s", seconds_cell),
    "user": _of_whole("user_s", seconds_cell),
    "sys": _of_whole("system_s", seconds_cell),
    _ENERGY: _energy_cell,
}


def cpu_table(times: CpuTimes) -> Table:
    """What each process used from its start to its last sample, and all together."""
    shown = times.processes[:MOST_RANKS]
    footnotes = [
        "main, messages: CPU time of the main thread, and of the threads that move messages. no core: time that the "
        "main thread was ready to run, and none was free. waits, forced: how often a thread gave its core up to wait, "
        "and had to give it up. faults: pages that had to be mapped. memory: most that was resident."
    ]
    if len(times.processes) > MOST_RANKS:
        footnotes.append(f"The first {MOST_RANKS} of {len(times.processes)} processes; --json has all.")
    if not times.energy:
        footnotes.append("Energy was not measured: no meter of a host could be read.")
    return Table(
        caption="CPU time and memory of each process; cores: (user + sys) ÷ real",
        columns=(
            *("process", "real", "user", "sys", "cores", "main", "messages", "no core"),
            *("waits/s", "forced/s", "faults", "memory"),
        ),
        rows=tuple(_cpu_row(each) for each in (*shown, *([times.whole] if len(times.processes) > 1 else []))),
        footnotes=tuple(footnotes),
        words=("process",),
    )


def _cpu_row(each: CpuTime) -> tuple[Cell, ...]:
    return (
        Cell("all" if each.process is None else each.process),
        duration_cell(each.real_s),
        duration_cell(each.user_s),
        duration_cell(each.system_s),
        number_cell(each.cores),
        duration_cell(each.main_s),
        duration_cell(each.comm_s),
        duration_cell(each.main_run_queue_wait_s),
        number_cell(each.voluntary_switches_per_s),
        number_cell(each.involuntary_switches_per_s),
        count_cell(each.minor_faults),
        bytes_cell(each.peak_bytes),
    )


def energy_table(times: CpuTimes) -> Table:
    """What each host drew while it was sampled; no rows where nothing was measured."""
    return Table(
        caption="Energy of each host while the run was sampled, of all that ran there",
        columns=("host", "sampled", "processors", "memory", "GPUs", "power", "GPUs busy"),
        rows=tuple(_energy_row(each) for each in times.energy),
        words=("host",),
    )


def _energy_row(each: HostEnergy) -> tuple[Cell, ...]:
    known = [joules for joules in (each.package_j, each.memory_j, each.gpu_j) if joules is not None]
    return (
        Cell(printable(each.host)),
        duration_cell(each.sampled_s),
        *(Cell(joules, form=Form(digits=3, unit="J")) for joules in (each.package_j, each.memory_j, each.gpu_j)),
        Cell(sum(known) / each.sampled_s if known and each.sampled_s > 0 else None, form=Form(digits=3, unit="W")),
        fraction_cell(each.gpu_use, 0),
    )
