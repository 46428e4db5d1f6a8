"""The table that computing centres ask for: what each point was given, how long it took, how well it scales."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.metrics import metric
from paceline.records.results import Interval, PointResult, StudyResults
from paceline.records.study import factor_value
from paceline.reporting.cells import Cell, factor_cell, interval_cell, number_cell, percent_cell
from paceline.reporting.paper.style import MOST_NAMED
from paceline.reporting.tables.point_tables import Table, fairness_marks, fairness_notes, speedup_heading, time_unit
from paceline.reporting.wording.choice import is_script, is_weak
from paceline.reporting.wording.phrases import factor_heading, shared_epoch_note
from paceline.units import counted

_SHOWN_ANYWAY = ("run.hosts", "run.ranks_per_host", "run.servers")
"""Factors that have a column, or follow from two."""


def scaling_table(results: StudyResults, step_s: Mapping[str, Interval]) -> Table:
    """One row per point: hosts, ranks, cores or GPUs, factors, repeats, times, speed-up, ideal and efficiency.

    In weak scaling the time of a step, too: there it is what stays the same, where nothing is lost.
    """
    script, weak = is_script(results), is_weak(results) and bool(step_s)
    unit, factor = time_unit(results.points)
    factors = [path for path in results.study.vary if path not in _SHOWN_ANYWAY]
    servers = any(point.point.servers for point in results.points)
    columns = ("hosts", "ranks", *(("servers",) if servers else ()), _resource(results), *map(factor_heading, factors))
    keys = len(columns)
    epoch = () if script else (metric("epoch time").heading_in(unit),)
    columns += ("repeats", *(("step time (ms)",) if weak else ()), *epoch, metric("run time").heading)
    columns += (speedup_heading(results), metric("ideal").heading, metric("efficiency").heading)
    rows = []
    for point in results.points:
        row = [Cell(point.point.hosts), Cell(point.point.ranks, marks=fairness_marks(point))]
        row += [Cell(point.point.servers)] if servers else []
        row.append(_resources(results, point))
        row += [factor_cell(factor_value(point.point, path)) for path in factors]
        row.append(Cell(point.runs))
        row += [interval_cell(step_s.get(point.point_id), 1e3)] if weak else []
        row += [] if script else [interval_cell(point.epoch_s, factor)]
        row += [interval_cell(point.total_s), interval_cell(point.speedup), _ideal(results, point)]
        row.append(percent_cell(point.efficiency))
        rows.append(tuple(row))
    notes = _footnotes(results, servers=servers)
    return Table(
        caption="Resources, time, speed-up and efficiency: medians over repeats",
        columns=columns,
        rows=tuple(rows),
        footnotes=tuple(filter(None, (*fairness_notes(results.points), shared_epoch_note(results), *notes))),
        keys=keys,
        words=_words(results, factors),
    )


def _resource(results: StudyResults) -> str:
    """What a rank computes on."""
    devices = results.machine.devices if results.machine else ()
    return "GPUs" if any(device.startswith("cuda") for device in devices) else "cores"


def _resources(results: StudyResults, point: PointResult) -> Cell:
    """How many cores or GPUs the point was given; those that ranks had to share are not counted as theirs."""
    if point.oversubscribed:
        return Cell("shared")
    if _resource(results) == "GPUs":
        return Cell(point.point.ranks)
    server_threads = point.point.options.get("server_threads", 1)
    return Cell(point.point.ranks * point.point.threads + point.point.servers * server_threads)


def _ideal(results: StudyResults, point: PointResult) -> Cell:
    base = next((other for other in results.points if other.point_id == point.baseline), None)
    if base is None:
        return Cell(None)
    ratio = point.ranks_and_servers / base.ranks_and_servers
    return Cell(int(ratio)) if ratio.is_integer() else number_cell(ratio)


def _footnotes(results: StudyResults, *, servers: bool) -> list[str]:
    notes = ["Servers count as ranks in the efficiency."] if servers else []
    if len(results.not_run) <= MOST_NAMED:
        notes += [f"Not run: {left.label}. {left.reason}" for left in results.not_run]
    else:
        notes.append(f"Not run: {counted(len(results.not_run), 'point')}, each with its reason in a table of its own.")
    return [*notes, "– not measured."] if any(p.epoch_s is None or p.speedup is None for p in results.points) else notes


def _words(results: StudyResults, factors: list[str]) -> tuple[str, ...]:
    """Those of the factors' columns that hold names."""
    return tuple(
        factor_heading(path)
        for path in factors
        if any(isinstance(factor_value(point.point, path), str) for point in results.points)
    )
