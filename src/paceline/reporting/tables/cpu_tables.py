"""CPU time, memory and energy of a run as tables: a row for each process, and one for each host that has meters."""

from __future__ import annotations

from paceline.records.counters import CpuTime, CpuTimes, HostEnergy
from paceline.reporting.cells import (
    Cell,
    Form,
    bytes_cell,
    count_cell,
    duration_cell,
    fraction_cell,
    number_cell,
)
from paceline.reporting.tables.point_tables import MOST_RANKS, Table
from paceline.reporting.wording.characters import printable


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
