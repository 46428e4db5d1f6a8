"""Paper: all that a proposal says of a study, before it is drawn or set.

plots    speed-up and efficiency (strong-scaling or weak-scaling), time (epoch-time or step-time), and where ranks share
         an epoch while the batch grows with them, strong scaling of the epoch (epoch-scaling)
tables   the one that computing centres ask for, then those of the report by their names
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paceline.metrics import metric
from paceline.records.results import Interval, PointResult, StudyResults
from paceline.records.study import factor_value
from paceline.reporting.cells import Cell, factor_cell, interval_cell, number_cell, percent_cell
from paceline.reporting.figures import scaling
from paceline.reporting.figures.scaling import Scaling
from paceline.reporting.model import ReportModel
from paceline.reporting.paper.captions import conditions, plot_lead, scaling_word, table_lead
from paceline.reporting.paper.style import MOST_NAMED
from paceline.reporting.tables.point_tables import Table, fairness_marks, fairness_notes, speedup_heading, time_unit
from paceline.reporting.wording.choice import is_script, is_weak, same_epochs
from paceline.reporting.wording.phrases import factor_heading, shared_epoch_note
from paceline.units import counted

_LEFT_OUT = ("figures", "brief_ledger", "tree", "inside", "rank_ledgers")
"""Parts of the report whose tables another one of a paper has, too, or that are about single ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One figure over ranks."""

    scaling: Scaling
    axis: str
    """What stands at its vertical axis, with the unit."""
    from_zero: bool
    """Whether its axis begins there: shares do, and what is compared by ratios is on a logarithmic one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One figure of a paper: panels over the same ranks, and the caption that belongs to them."""

    name: str
    """Of its files, without an ending."""
    title: str
    panels: tuple[Panel, ...]
    lead: str
    """What it shows, and what its marks mean."""
    conditions: str
    """How it was measured: the same for all of a study."""

    @property
    def caption(self) -> str:
        """All that a reader needs who sees nothing but this."""
        return f"{self.lead} {self.conditions}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """Everything that is shown; a report's sentences are taken as they are."""

    report: ReportModel
    table: Table
    """One row per point, with resources, times, speed-up and efficiency."""
    table_lead: str
    conditions: str
    """How everything was measured."""
    plots: tuple[Plot, ...]
    """Without any where nothing was measured at two numbers of ranks."""
    others: tuple[tuple[str, Table], ...]
    """The tables of the report that have rows, by name."""
    sentences: tuple[tuple[str, tuple[str, ...]], ...]
    """Headings, and sentences below each."""

    @property
    def table_caption(self) -> str:
        """What the table shows and how it was measured."""
        return f"{self.table_lead} {self.conditions}"


def paper(results: StudyResults, report: ReportModel, step_s: Mapping[str, Interval]) -> Paper:
    """What a proposal says of a study's results; `step_s` has the seconds of a step by point_id."""
    return Paper(
        report=report,
        table=scaling_table(results, step_s),
        table_lead=table_lead(results),
        conditions=conditions(results, report),
        plots=tuple(_plots(results, report, step_s)),
        others=tuple(_others(report)),
        sentences=tuple(_sentences(report)),
    )


def _plots(results: StudyResults, report: ReportModel, step_s: Mapping[str, Interval]) -> Iterator[Plot]:
    weak, what, measured = is_weak(results), scaling_word(results), conditions(results, report)
    speedup = Panel(scaling=scaling.speedups(results), axis=metric("speed-up").heading, from_zero=False)
    efficiency = Panel(scaling=scaling.efficiencies(results), axis="efficiency (%)", from_zero=True)
    if _is_drawable(speedup.scaling):
        shown = "speed-up and efficiency over ranks"
        yield Plot(
            name=what.lower().replace(" ", "-"),
            title=what,
            panels=(speedup, efficiency),
            lead=plot_lead(results, what, shown, speedup.scaling),
            conditions=measured,
        )
    name, shown = ("step-time", "time of a step") if weak else ("epoch-time", "time of an epoch")
    times = scaling.step_times(results, step_s) if weak else scaling.epoch_times(results)
    if _is_drawable(times):
        panel = Panel(scaling=times, axis=f"{shown} ({times.unit})", from_zero=weak)
        lead = plot_lead(results, what, f"{shown} over ranks", times)
        yield Plot(name=name, title=shown.capitalize(), panels=(panel,), lead=lead, conditions=measured)
    if (note := shared_epoch_note(results)) and _is_drawable(speedup.scaling):
        what = "Strong scaling of an epoch"
        panels, shown = tuple(_epoch_panels(results, speedup.scaling)), "speed-up and time of an epoch"
        shown += ", and time of a run" if len(panels) > 2 else ""
        lead = f"{plot_lead(results, what, f'{shown} over ranks', speedup.scaling)} {note}"
        yield Plot(name="epoch-scaling", title=what, panels=panels, lead=lead, conditions=measured)


def _epoch_panels(results: StudyResults, speedup: Scaling) -> Iterator[Panel]:
    """Speed-up and time of an epoch; the time of whole runs where all train for as many epochs."""
    yield Panel(scaling=speedup, axis=metric("speed-up of an epoch").heading, from_zero=False)
    times = scaling.epoch_times(results)
    yield Panel(scaling=times, axis=metric("epoch time").heading_in(times.unit), from_zero=False)
    if same_epochs(results):
        yield Panel(scaling=scaling.run_times(results), axis=metric("run time").heading, from_zero=False)


def _is_drawable(figure: Scaling) -> bool:
    """Whether a line has two points."""
    return any(sum(estimate is not None for estimate in line.measured) > 1 for line in figure.lines)


def _others(report: ReportModel) -> Iterator[tuple[str, Table]]:
    """The tables of a report in its order, as far as they have rows; several of one part are numbered."""
    for field in dataclasses.fields(report):
        if field.name in _LEFT_OUT:
            continue
        found, name = list(_tables(getattr(report, field.name))), field.name.replace("_", "-")
        for number, table in enumerate(found, start=1):
            yield (name if len(found) == 1 else f"{name}-{number}"), table


def _tables(part: object) -> Iterator[Table]:
    """The tables with rows in a part of a report, however deep."""
    if isinstance(part, Table):
        yield from (part,) if part.rows else ()
    elif isinstance(part, tuple):
        for item in part:
            yield from _tables(item)
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from _tables(getattr(part, field.name))


def _sentences(report: ReportModel) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Headings and sentences besides verdict and findings: scaling laws, and the published study."""
    laws = tuple(series.text for series in report.laws.sentences)
    if laws:
        yield "Scaling laws", laws
    published = report.published
    about = (*(f"{fact.label}: {fact.text}" for fact in published.about), *published.disagreements)
    if about:
        yield "Beside the published study", about
    answers = tuple(f"{answer.name}: {answer.question} {answer.verdict}" for answer in published.answers)
    if answers:
        yield "Open questions", answers


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
