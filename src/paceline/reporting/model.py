"""ReportModel: the content of a report, before it is rendered as HTML or text.

words    verdict, remarks, findings          tables   figures and ledgers as strings
steps    what to run next, how to repeat     facts    machine, settings, protocol, definitions
series, scaling   numbers to draw            comparison_tables   series side by side
inside   what a run's traces show           tree     factors of the efficiency
resource_tables   messages, memory, real, user and sys, energy
learning_tables, learning_words   what the curves show, and accuracies over repeats
added_section   what another package adds: published tables and open questions
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paceline.records.results import Effect, StudyResults
from paceline.records.run_picture import Picture
from paceline.reporting.added_section import AddedSection
from paceline.reporting.figures import drawn_series, scaling
from paceline.reporting.figures.drawn_series import Accuracies, LearningCurve, Ledger
from paceline.reporting.figures.scaling import Ranking, Scaling
from paceline.reporting.html.inside import RunView, run_views
from paceline.reporting.html.tree import Tree, efficiency_tree
from paceline.reporting.tables import (
    comparison_tables,
    learning_tables,
    point_tables,
    resource_tables,
)
from paceline.reporting.tables.comparison_tables import SideBySide
from paceline.reporting.tables.law_tables import ShownLaws, shown_laws
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording import facts, next_commands, verdict_words
from paceline.reporting.wording.characters import printable
from paceline.reporting.wording.choice import drawn_points, same_epochs
from paceline.reporting.wording.facts import Fact
from paceline.reporting.wording.next_commands import Step
from paceline.reporting.wording.one_factor_words import single_change_labels
from paceline.reporting.wording.phrases import shared_epoch_note
from paceline.reporting.wording.verdict_words import ShownFinding

if TYPE_CHECKING:
    from paceline.records.counters import CpuTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLedger:
    """The ranks of one point's median run."""

    title: str
    table: Table
    series: Ledger
    drawn: bool
    """Whether it has a plot beside its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportModel:
    """Sentences, table rows and plot series, without markup."""

    name: str
    title: str
    question: str
    asks: str
    """time or accuracy."""
    headline: tuple[str, ...]
    """How much was run, of what, on what."""
    verdict: str
    verdict_figure: str
    """The part of the verdict that is emphasized; may be empty."""
    remarks: tuple[str, ...]
    next_step: Step
    findings: tuple[ShownFinding, ...]
    """Failures too, the most severe first."""
    figures: Table
    side_by_side: tuple[SideBySide, ...]
    """One for each number of ranks at which there are several series."""
    extras: Table
    """Loading, queues and staleness; without rows if not measured."""
    effects: Table
    """Every value of every factor in % of the baseline; without rows where the design is another."""
    effects_drawn: tuple[Effect, ...]
    """`effects` as numbers."""
    not_run: Table
    """Points that did not fit on the machine or cluster; may have no rows."""
    learning: Table
    """When points are stable and at the target; without rows where there is no validation."""
    accuracies_drawn: Accuracies
    """Of all points; without any where fewer than two were tested."""
    accuracies: Table
    """Test accuracies against one another; without rows where there is only one."""
    phases: Table
    """The test after every phase; without rows where there is one phase alone."""
    ledger: Table
    brief_ledger: Table
    """`ledger` for a terminal: with many points, only of those that the verdict is about."""
    resources: Table
    """Messages, memory, CPU time and energy of the median runs; without rows where none was measured."""
    tree: Tree
    inside: tuple[RunView, ...]
    """Median runs that can be looked into, the widest first."""
    rank_ledgers: tuple[RankLedger, ...]
    published: AddedSection
    """The comparison with a published study; empty where the study names none."""
    laws: ShownLaws
    """Scaling laws that were fitted, and why others were not."""
    speedup: Scaling
    epoch_time: Scaling
    throughput: Scaling
    run_time: Scaling | None
    """Of whole runs, where ranks share an epoch and all train for as many; None elsewhere."""
    strong_epoch: str
    """That an epoch is strong scaling though a step is weak; empty where it is not."""
    ranking: Ranking
    """The series that the verdict compares."""
    point_ledger: Ledger
    all_ledgers: Ledger
    """Of all points, where `point_ledger` is only of those that the verdict is about; without bars otherwise."""
    curves: tuple[LearningCurve, ...]
    machine: tuple[Fact, ...]
    settings: tuple[Fact, ...]
    protocol: tuple[Fact, ...]
    definitions: tuple[Fact, ...]
    repeat: tuple[Step, ...]


def report_model(
    results: StudyResults,
    pictures: Mapping[str, Picture] | None = None,
    cpu_times: Mapping[str, CpuTimes] | None = None,
    lost_to: Mapping[str, Mapping[str, float]] | None = None,
    published: AddedSection | None = None,
) -> ReportModel:
    """The report of a study's results.

    `pictures` and `cpu_times` are of the points' median runs, `lost_to` has the share of a point's lost efficiency that
    each factor explains. All are by point_id and may lack points. `published` compares them with a published study.
    """
    added = published or AddedSection()
    drawn, laws, names = drawn_points(results), shown_laws(results), single_change_labels(results)
    verdict = verdict_words.verdict(results, added.opening)
    strong_epoch = shared_epoch_note(results)
    model = ReportModel(
        name=results.study.name,
        title=results.study.title or results.study.name,
        question=results.study.question,
        asks=results.study.asks,
        headline=facts.headline_facts(results),
        verdict=verdict,
        verdict_figure=verdict_words.verdict_figure(results, verdict, added.figures),
        remarks=verdict_words.remarks(results, added.opening),
        next_step=next_commands.next_step(results, added.next_step),
        findings=verdict_words.shown_findings(results),
        figures=point_tables.figures_table(results),
        side_by_side=comparison_tables.side_by_side(results),
        extras=comparison_tables.extras_table(results),
        effects=comparison_tables.effects_table(results),
        effects_drawn=results.effects,
        not_run=comparison_tables.not_run_table(results),
        learning=learning_tables.learning_table(results),
        accuracies_drawn=drawn_series.accuracies(results),
        accuracies=learning_tables.accuracy_table(results),
        phases=learning_tables.phase_table(results),
        ledger=point_tables.ledger_table(results, results.points),
        brief_ledger=point_tables.ledger_table(results, drawn),
        resources=resource_tables.resource_table(results, cpu_times or {}),
        tree=efficiency_tree(results, lost_to or {}),
        inside=run_views(results, pictures or {}, cpu_times or {}),
        rank_ledgers=_rank_ledgers(results),
        published=added,
        laws=laws,
        speedup=scaling.speedups(results),
        epoch_time=scaling.epoch_times(results),
        throughput=scaling.throughputs(results),
        run_time=scaling.run_times(results) if strong_epoch and same_epochs(results) else None,
        strong_epoch=strong_epoch,
        ranking=scaling.ranking(results),
        point_ledger=drawn_series.point_ledger(drawn, names),
        all_ledgers=drawn_series.point_ledger(results.points if len(drawn) < len(results.points) else (), names),
        curves=drawn_series.learning_curves(drawn),
        machine=facts.machine_facts(results),
        settings=facts.settings_facts(results),
        protocol=facts.protocol_facts(results),
        definitions=(
            *facts.definitions(results),
            *comparison_tables.definitions(results),
            *learning_tables.definitions(results),
            *laws.definitions,
        ),
        repeat=next_commands.repeat_steps(results),
    )
    return _printable(model)


def _rank_ledgers(results: StudyResults) -> tuple[RankLedger, ...]:
    """Of every point with more than one rank: one rank's ledger is already the point's."""
    drawn = drawn_points(results)
    return tuple(
        RankLedger(
            title=point.label,
            table=point_tables.rank_table(point),
            series=drawn_series.rank_ledger(point),
            drawn=point in drawn,
        )
        for point in results.points
        if len(point.rank_ledgers_s) > 1
    )


def _printable(part: Any) -> Any:
    """The part with control characters of every string replaced."""
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, tuple):
        return tuple(_printable(item) for item in part)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        changed = {field.name: _printable(getattr(part, field.name)) for field in dataclasses.fields(part)}
        return dataclasses.replace(part, **changed)
    return part
