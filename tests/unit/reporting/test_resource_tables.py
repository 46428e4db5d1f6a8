"""Resources by point: messages, bytes, memory, real, user and sys, energy; a dash and why where there is none."""

from __future__ import annotations

import csv
import io
from dataclasses import fields, replace
from typing import Any

import pytest

from paceline.analyze.points.step_time import step_times
from paceline.analyze.run.run_summary import trace_summary
from paceline.records.counters import CpuTime, CpuTimes, HostEnergy
from paceline.records.results import StudyResults
from paceline.reporting.html import report_page
from paceline.reporting.model import ReportModel, report_model
from paceline.reporting.paper.content import paper
from paceline.reporting.paper.csv_tables import table_csv
from paceline.reporting.paper.markdown import markdown
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.tables.resource_tables import resource_table
from paceline.reporting.text import report_text
from paceline.reporting.wording.facts import meanings
from samples import picture_samples, series_samples, twelve_points
from samples import report_samples as samples

METERED = HostEnergy(host="node-a", sampled_s=10.0, package_j=500.0, memory_j=20.5, gpu_j=None, gpu_use=None)
NOTHING_DRAWN = replace(METERED, package_j=None, memory_j=None, gpu_use=0.5)


def used(*, energy: tuple[HostEnergy, ...] = (), **measured: Any) -> CpuTimes:
    """All processes of a run together, with what is given and nothing else."""
    none: dict[str, Any] = {field.name: None for field in fields(CpuTime)}
    usual = {"real_s": 10.0, "user_s": 17.25, "system_s": 0.5, "peak_bytes": 457_000_000, "children_s": 0.002}
    whole = CpuTime(**none | usual | measured)
    return CpuTimes(whole=whole, processes=(whole,), energy=energy, sentence="Real 10.0 s.")


def traced() -> StudyResults:
    """One rank and two, of 8 steps that were traced; an epoch has 94."""
    results = samples.typical(ranks=(1, 2))
    run = trace_summary(picture_samples.busy_run(2, 8))
    alone, both = results.points
    alone = replace(alone, anatomy=replace(run, ranks=1, messages=()), messages=0.0, message_bytes=0.0)
    return replace(results, points=(alone, replace(both, anatomy=run, messages=1.0, message_bytes=2_762_360.0)))


def times_of(results: StudyResults, *times: CpuTimes | None) -> dict[str, CpuTimes]:
    return {point.point_id: each for point, each in zip(results.points, times, strict=True) if each}


def cells(table: Table) -> list[dict[str, str]]:
    return [{name: cell.figure for name, cell in zip(table.columns, row, strict=True)} for row in table.rows]


def model() -> ReportModel:
    results = traced()
    return report_model(results, cpu_times=times_of(results, used(), used(energy=(METERED,), user_s=19.0)))


def test_a_row_has_what_the_median_run_sent_held_and_used() -> None:
    one, two = cells(model().resources)
    assert two == {
        "ranks": "2",
        "messages per step": "1.00",
        "messages per epoch": "94.0",
        "payload per step": "2.8 MB",
        "payload per epoch": "260 MB",
        "memory of a rank": "457 MB",
        "real (s)": "10.0",
        "user (s)": "19.0",
        "sys (s)": "0.50",
        "energy (J)": "520",
    }
    assert (one["messages per step"], one["payload per epoch"], one["user (s)"]) == ("0", "0", "17.2")
    assert one["energy (J)"] == "–"


def test_a_dash_has_its_reason() -> None:
    notes = model().resources.footnotes
    assert notes[-1] == "– energy: not measured: no meter of a host could be read."
    assert any(note.startswith("real is from the launch") for note in notes)
    results = traced()
    table = resource_table(results, times_of(results, used(user_s=None), None))
    assert [row["real (s)"] for row in cells(table)] == ["10.0", "–"] and "user (s)" not in table.columns
    assert "– memory of a rank, real, sys: not measured: the run has no such counters." in table.footnotes
    results = replace(
        results, points=(results.points[0], replace(results.points[1], anatomy=None, messages=None, message_bytes=None))
    )
    table = resource_table(results, times_of(results, used(), used(energy=(NOTHING_DRAWN,))))
    assert [row["energy (J)"] for row in cells(table)] == ["–", "–"]
    assert any(note.startswith("– messages per step, messages per epoch, payload per step") for note in table.footnotes)


def test_only_what_was_measured_has_a_row_a_column_and_a_note() -> None:
    results = traced()
    failed = replace(results.points[1], anatomy=None, messages=None, message_bytes=None)
    table = resource_table(replace(results, points=(results.points[0], failed)), {})
    assert [row["ranks"] for row in cells(table)] == ["1"] and table.footnotes == ()
    assert table.columns[1:] == ("messages per step", "messages per epoch", "payload per step", "payload per epoch")
    assert table.blank == table.columns[1:]
    for made in samples.ALL.values():
        assert not resource_table(made(), {}).rows
    assert 'id="resources"' not in report_page.render(report_model(samples.typical()))


def test_without_a_whole_epoch_there_are_figures_of_a_step_alone() -> None:
    results = traced()
    cut = [
        replace(point, curves=tuple(replace(c, epochs=(replace(c.epochs[0], whole=False),)) for c in point.curves))
        for point in results.points
    ]
    table = resource_table(replace(results, points=tuple(cut)), {})
    assert table.columns == ("ranks", "messages per step", "payload per step")


def test_an_epoch_has_the_steps_between_two_ends() -> None:
    results = traced()
    last = results.points[-1]
    curves = tuple(
        replace(c, epochs=(replace(c.epochs[0], step=10, whole=False), replace(c.epochs[1], step=60)))
        for c in last.curves
    )
    (_, row) = cells(resource_table(replace(results, points=(results.points[0], replace(last, curves=curves))), {}))
    assert row["messages per epoch"] == "50.0"
    lost = tuple(replace(c, epochs=c.epochs[1:2]) for c in last.curves)
    (_, row) = cells(resource_table(replace(results, points=(results.points[0], replace(last, curves=lost))), {}))
    assert row["messages per epoch"] == "–"


@pytest.mark.parametrize(
    ("metered", "emulated", "expected"),
    [
        ((METERED,), False, ("520", "1 of 2 hosts")),
        ((METERED, replace(METERED, host="node-b")), False, ("1,041", "")),
        ((METERED,), True, ("520", "")),
    ],
)
def test_a_host_without_a_meter_is_not_passed_over(metered, emulated: bool, expected: tuple[str, str]) -> None:
    results = traced()
    last = replace(results.points[-1], emulated=emulated, point=replace(results.points[-1].point, hosts=2))
    results = replace(results, points=(results.points[0], last))
    shown = resource_table(results, {last.point_id: used(energy=metered)}).rows[1][-1]
    assert (shown.figure, shown.beside) == expected


def test_child_processes_are_said_where_they_count() -> None:
    results = traced()
    notes = resource_table(results, times_of(results, used(), used(children_s=4.0))).footnotes
    assert "Not in them: child processes that had ended, up to 4.00 s of CPU time in a run." in notes
    assert not any("child processes" in note for note in model().resources.footnotes)


def test_memory_of_gpus_has_a_column_where_there_is_one() -> None:
    results = traced()
    table = resource_table(results, times_of(results, used(), used(gpu_peak_bytes=2_000_000_000)))
    assert [row["GPU memory of a rank"] for row in cells(table)] == ["–", "2.0 GB"]
    assert "GPU memory of a rank" not in model().resources.columns


def test_every_column_has_a_meaning() -> None:
    results = traced()
    found = report_model(results, cpu_times=times_of(results, used(), used(gpu_peak_bytes=1)))
    assert len(meanings(found.resources.columns, found.definitions)) == len(found.resources.columns)


def test_the_page_the_text_and_a_paper_have_it() -> None:
    found, results = model(), traced()
    page = report_page.render(found)
    assert 'id="resources"' in page and "payload per step × steps of an epoch" in page
    assert page.index('id="ledgers"') < page.index('id="resources"') < page.index('id="cost"')
    assert found.resources.caption in report_text.render(found)
    written = paper(results, found, step_times(results.points))
    tables = dict(written.others)
    *_, two = csv.DictReader(io.StringIO(table_csv(tables["resources"]).decode()))
    assert (two["user (s)"], two["energy (J)"], two["payload per epoch"]) == ("19.0", "520", "260 MB")
    assert found.resources.caption in markdown(written, {})


def test_a_terminal_leaves_out_what_is_long() -> None:
    results, _ = twelve_points.twelve_points(steps=20)
    found = report_model(results)
    assert len(found.resources.rows) == 12 and found.resources.caption not in report_text.render(found)
    assert found.resources.caption in report_page.render(found).replace("&#39;", "'")


def test_points_are_told_apart_by_what_is_varied() -> None:
    results = series_samples.batches()
    times = {point.point_id: used() for point in results.points}
    table = resource_table(results, times)
    assert table.columns[:2] == ("ranks", "batch global") and len(table.rows) == len(results.points)
