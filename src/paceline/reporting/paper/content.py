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
from paceline.records.results import Interval, StudyResults
from paceline.reporting.figures import scaling
from paceline.reporting.figures.scaling import Scaling
from paceline.reporting.model import ReportModel
from paceline.reporting.paper.captions import conditions, plot_lead, scaling_word, table_lead
from paceline.reporting.paper.scaling_table import scaling_table
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.choice import is_weak, same_epochs
from paceline.reporting.wording.phrases import shared_epoch_note

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
    told: tuple[tuple[str, tuple[str, ...]], ...]
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
        told=tuple(_told(report)),
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


def _told(report: ReportModel) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a report says besides its verdict and findings: scaling laws, and the published study."""
    laws = tuple(told.text for told in report.laws.told)
    if laws:
        yield "Scaling laws", laws
    published = report.published
    about = (*(f"{fact.label}: {fact.text}" for fact in published.about), *published.disagreements)
    if about:
        yield "Beside the published study", about
    answers = tuple(f"{answer.name}: {answer.question} {answer.verdict}" for answer in published.answers)
    if answers:
        yield "Open questions", answers
