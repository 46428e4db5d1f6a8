"""Tables of a study that varies more than ranks: series side by side, and what was measured besides training."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.metrics import metric, point_metric
from paceline.records.results import Comparison, PointResult, StudyResults
from paceline.reporting.cells import Cell, interval_cell, metric_cell
from paceline.reporting.tables.point_tables import (
    Table,
    fairness_marks,
    fairness_notes,
    key_cells,
    key_columns,
    metric_columns,
    word_columns,
)
from paceline.reporting.wording.choice import by_id, is_several
from paceline.reporting.wording.facts import Fact, term_facts
from paceline.reporting.wording.phrases import factor_heading
from paceline.reporting.wording.side_by_side import comparison_sentence
from paceline.units import counted


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
    points = tuple(point for point_id in comparison.points if (point := by_id(results, point_id)))
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
    """What the figures of several series mean, where there are any."""
    servers = any(point.point.servers for point in results.points)
    compared = ("series", "common baseline", "of the fastest", "cannot be told apart", "payload per step", "exposed")
    return term_facts(*(("servers",) if servers else ()), *(compared if is_several(results) else ()))


def _last(points: tuple[PointResult, ...]) -> str:
    mixed = len({point.fair for point in points if point.samples_per_s}) > 1
    return ", those that say little about scaling last" if mixed else ""
