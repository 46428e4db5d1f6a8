from __future__ import annotations

from dataclasses import fields, replace

from paceline.records.counters import CpuTime, CpuTimes, HostEnergy
from paceline.reporting.tables.resource_tables import cpu_table, energy_table
from paceline.reporting.text.report_text import table_text


def unmeasured(process: int | None) -> CpuTime:
    return CpuTime(**{field.name: None for field in fields(CpuTime)} | {"process": process, "real_s": 10.0})


def times(*processes: CpuTime, energy: tuple[HostEnergy, ...] = ()) -> CpuTimes:
    return CpuTimes(whole=unmeasured(None), processes=processes, energy=energy, sentence="Real 10.0 s.")


def test_a_row_for_each_process_and_one_for_all() -> None:
    first = replace(
        unmeasured(0), user_s=8.0, system_s=0.5, cores=0.85, comm_s=0.25, minor_faults=1234, peak_bytes=2**28
    )
    shown = table_text(cpu_table(times(first, unmeasured(1))), width=200)
    head, _, row, empty, together = shown.splitlines()[:5]
    assert " ".join(row.split()) == "0 10.0 s 8.00 s 500 ms 0.850 – 250 ms – – – 1,234 268 MB"
    assert empty.split() == ["1", "10.0", "s", *"–" * 10]
    assert together.split()[0] == "all" and head.split()[0] == "process"


def test_one_process_is_not_summed_up_and_meters_that_are_missing_are_named() -> None:
    table = cpu_table(times(unmeasured(0)))
    assert len(table.rows) == 1
    assert table.footnotes[1:] == ("Energy was not measured: no meter of a host could be read.",)


def test_a_host_with_meters_shows_joules_and_watts_of_those_it_has() -> None:
    drawn = HostEnergy(host="n1", sampled_s=10.0, package_j=500.0, memory_j=20.0, gpu_j=None, gpu_use=None)
    found = times(unmeasured(0), energy=(drawn,))
    assert len(cpu_table(found).footnotes) == 1
    (row,) = energy_table(found).rows
    assert [cell.figure for cell in row] == ["n1", "10.0 s", "500 J", "20.0 J", "–", "52.0 W", "–"]
