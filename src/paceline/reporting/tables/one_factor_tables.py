"""One factor at a time: every value of every factor in per cent of the baseline, as a table; and what was not run."""

from __future__ import annotations

from paceline import metrics
from paceline.metrics import PointMetric
from paceline.records.results import Effect, StudyResults
from paceline.records.study import shown_value
from paceline.reporting.cells import Cell, factor_cell, interval_cell
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.facts import Fact, term_facts
from paceline.reporting.wording.learning_words import LEFT_OUT
from paceline.reporting.wording.one_factor_words import FIGURES, called
from paceline.reporting.wording.phrases import factor_heading
from paceline.units import percent_text


def effects_table(results: StudyResults) -> Table:
    """One row per value of every factor: loss, accuracy and time in % of the baseline, and which effects are real."""
    effects, shown = results.effects, _shown(results)
    rows = [
        (
            Cell(factor_heading(effect.factor)),
            factor_cell(shown_value(effect.factor, effect.value)),
            *(interval_cell(entry.value(effect), digits=entry.digits) for entry in shown),
            Cell(called(effect)),
        )
        for effect in effects
    ]
    return Table(
        caption="In % of the baseline, which has the first value of every factor",
        columns=("factor", "value", *(entry.heading for entry in shown), "real effect"),
        rows=tuple(rows),
        footnotes=(*_notes(effects), *_unsound(results)) if rows else (),
        keys=2,
        words=("factor", "value", "real effect"),
    )


def not_run_table(results: StudyResults) -> Table:
    """One row per point that the machine or cluster could not hold; without rows where there is none."""
    return Table(
        caption="Not run",
        columns=("point", "reason"),
        rows=tuple((Cell(left_out.label), Cell(left_out.reason)) for left_out in results.not_run),
        words=("point", "reason"),
    )


def definitions(results: StudyResults) -> tuple[Fact, ...]:
    """What the table means, where there is one."""
    if not results.effects:
        return ()
    shown = (entry.name for entry in _shown(results))
    return term_facts("factor", "value", "% of the baseline", *shown, "training time", "real effect")


def _shown(results: StudyResults) -> list[PointMetric]:
    """The metrics that an effect is known on."""
    every = [entry for entry in metrics.POINT_METRICS if entry.key in FIGURES]
    return [entry for entry in every if any(entry.value(effect) for effect in results.effects)]


def _notes(effects: tuple[Effect, ...]) -> list[str]:
    found = [p for e in effects if not e.is_baseline for name in FIGURES if (p := getattr(e, name)) is not None]
    coverages = [percent.interval.coverage for percent in found]
    if not found:
        return []
    if any(each is None for each in coverages):
        return ["[ ] is the range of the ratios within repeats: fewer than five give no interval, and no test."]
    lowest = min(each for each in coverages if each is not None)
    return [f"[ ] is an interval of the ratio within repeats that holds with {percent_text(lowest)} confidence."]


def _unsound(results: StudyResults) -> list[str]:
    """That runs are missing from losses and accuracies, where some are."""
    return [LEFT_OUT] if any(p.learning and p.learning.faults for p in results.points) else []
