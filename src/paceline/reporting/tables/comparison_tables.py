"""Tables of a study that varies more than ranks: series side by side, effects of single factors, points not run."""

from __future__ import annotations

from dataclasses import dataclass

from paceline import metrics
from paceline.metrics import PointMetric, metric, point_metric
from paceline.records.results import Comparison, Effect, PointResult, StudyResults
from paceline.records.study import shown_value
from paceline.reporting.cells import Cell, factor_cell, interval_cell, metric_cell
from paceline.reporting.tables.point_tables import (
    Table,
    fairness_marks,
    fairness_notes,
    key_cells,
    key_columns,
    metric_columns,
    word_columns,
)
from paceline.reporting.wording.choice import has_several_series, point_by_id
from paceline.reporting.wording.facts import Fact, term_facts
from paceline.reporting.wording.learning_words import EXCLUDED_RUNS_NOTE
from paceline.reporting.wording.one_factor_words import FIGURES, real_effects_text
from paceline.reporting.wording.phrases import factor_heading
from paceline.reporting.wording.side_by_side import comparison_sentence
from paceline.units import counted, percent_text


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Series at one number of ranks: a table, and what it shows in a sentence."""

    title: str
    table: Table
    sentence: str


def side_by_side(results: StudyResults) -> tuple[SideBySide, ...]:
    """A table for each number of ranks at which there are several series."""
    return tuple(
        SideBySide(
            title=counted(comparison.ranks, "rank"),
            table=_comparison_table(results, comparison),
            sentence=comparison_sentence(results, comparison),
        )
        for comparison in results.comparisons
    )


def _comparison_table(results: StudyResults, comparison: Comparison) -> Table:
    points = tuple(point for point_id in comparison.points if (point := point_by_id(results, point_id)))
    first = ", ".join(factor_heading(path) for path in results.study.vary) or "series"
    rate, *others = (point_metric(name) for name in ("samples/s", "payload per step", "exposed", "test accuracy"))
    rows = tuple(
        (
            Cell(point.series, marks=fairness_marks(point)),
            metric_cell(rate, point),
            interval_cell(comparison.ratios.get(point.point_id)),
            *(metric_cell(entry, point) for entry in others),
        )
        for point in points
    )
    return Table(
        caption=f"{counted(comparison.ranks, 'rank')} side by side, the fastest first" + _last(points),
        columns=(first, rate.heading, metric("of the fastest").heading, *(entry.heading for entry in others)),
        rows=rows,
        footnotes=tuple(fairness_notes(points)),
        words=(first,),
    )


def extras_table(results: StudyResults) -> Table:
    """Loading, queues and staleness, of the points and in the columns where a study asks for them."""
    shown = metric_columns(results, "extras")
    rows = tuple(
        (*key_cells(results, point), *(metric_cell(column.metric, point) for column in shown))
        for point in (results.points if shown else ())
    )
    return Table(
        caption="Before and beside the training: medians over repeats, the most of any rank",
        columns=(*key_columns(results), *(column.heading for column in shown)),
        rows=rows,
        keys=len(key_columns(results)),
        words=word_columns(results),
    )


def definitions(results: StudyResults) -> tuple[Fact, ...]:
    """Definitions of the figures of several series, and of effects, as far as the study has them."""
    names = ["servers"] if any(point.point.servers for point in results.points) else []
    if has_several_series(results):
        names += ["series", "common baseline", "of the fastest", "cannot be told apart", "payload per step", "exposed"]
    if results.effects:
        names += ["factor", "value", "% of the baseline", *(entry.name for entry in _shown(results))]
        names += ["training time", "real effect"]
    return term_facts(*names)


def _last(points: tuple[PointResult, ...]) -> str:
    mixed = len({point.fair for point in points if point.samples_per_s}) > 1
    return ", those that say little about scaling last" if mixed else ""


def effects_table(results: StudyResults) -> Table:
    """One row per value of every factor: loss, accuracy and time in % of the baseline, and which effects are real."""
    effects, shown = results.effects, _shown(results)
    rows = [
        (
            Cell(factor_heading(effect.factor)),
            factor_cell(shown_value(effect.factor, effect.value)),
            *(interval_cell(entry.value(effect), digits=entry.digits) for entry in shown),
            Cell(real_effects_text(effect)),
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
    return [EXCLUDED_RUNS_NOTE] if any(p.learning and p.learning.faults for p in results.points) else []
