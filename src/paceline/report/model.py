"""ReportModel: all that a report says, before it is set in HTML or in text.

words    verdict, remarks, findings          tables   figures and ledgers as strings
steps    what to run next, how to repeat     facts    machine, settings, protocol, definitions
series   numbers to draw
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from paceline.records.results import StudyResults
from paceline.report import facts, series, steps, tables, words
from paceline.report.characters import printable
from paceline.report.facts import Fact
from paceline.report.series import LearningCurve, Ledger, Scaling
from paceline.report.steps import Step
from paceline.report.tables import Table
from paceline.report.words import ShownFinding
from paceline.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLedger:
    """The ranks of one point's median run."""

    title: str
    table: Table
    series: Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportModel:
    """Sentences, table rows and plot series: everything is chosen, nothing is set in type."""

    name: str
    title: str
    question: str
    headline: tuple[str, ...]
    """How much was run, of what, on what."""
    verdict: str
    remarks: tuple[str, ...]
    next_step: Step
    findings: tuple[ShownFinding, ...]
    """Failures too, the most severe first."""
    figures: Table
    ledger: Table
    rank_ledgers: tuple[RankLedger, ...]
    speedup: Scaling
    epoch_time: Scaling
    throughput: Scaling
    point_ledger: Ledger
    curves: tuple[LearningCurve, ...]
    machine: tuple[Fact, ...]
    settings: tuple[Fact, ...]
    protocol: tuple[Fact, ...]
    definitions: tuple[Fact, ...]
    repeat: tuple[Step, ...]


def report_model(results: StudyResults) -> ReportModel:
    """What there is to say about a study's results."""
    model = ReportModel(
        name=results.study.name,
        title=results.study.title or results.study.name,
        question=results.study.question,
        headline=facts.headline_facts(results),
        verdict=words.verdict(results),
        remarks=words.remarks(results),
        next_step=steps.next_step(results),
        findings=words.shown_findings(results),
        figures=tables.figures_table(results),
        ledger=tables.ledger_table(results),
        rank_ledgers=_rank_ledgers(results),
        speedup=series.speedups(results),
        epoch_time=series.epoch_times(results),
        throughput=series.throughputs(results),
        point_ledger=series.point_ledger(results),
        curves=series.learning_curves(results),
        machine=facts.machine_facts(results.machine),
        settings=facts.settings_facts(results),
        protocol=facts.protocol_facts(results),
        definitions=facts.definitions(results),
        repeat=steps.repeat_steps(results),
    )
    return _printable(model)


def _rank_ledgers(results: StudyResults) -> tuple[RankLedger, ...]:
    """Of every point with more than one rank: one rank's ledger is already the point's."""
    return tuple(
        RankLedger(
            title=counted(point.point.ranks, "rank"), table=tables.rank_table(point), series=series.rank_ledger(point)
        )
        for point in results.points
        if len(point.rank_ledgers_s) > 1
    )


def _printable(part: Any) -> Any:
    """The same with every string safe to print."""
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, tuple):
        return tuple(_printable(item) for item in part)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        changed = {field.name: _printable(getattr(part, field.name)) for field in dataclasses.fields(part)}
        return dataclasses.replace(part, **changed)
    return part
