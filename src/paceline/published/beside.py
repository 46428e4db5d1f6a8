"""The comparison of a published study with ours: cells, contradictions, answers."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.published.answers.evidence import Evidence
from paceline.published.answers.verdicts_by_name import answers
from paceline.published.matching.contradictions import contradictions
from paceline.published.matching.measures import MeasuredPoint, measured_cell
from paceline.published.matching.row_points import Match, match
from paceline.published.records import (
    ComparedRow,
    ComparedTable,
    MeasuredCell,
    PublishedComparison,
    PublishedStudy,
    PublishedTable,
)
from paceline.records.counters import CpuTimes
from paceline.records.results import Effect, Interval, PointResult, StudyResults

_OTHER_RECIPE = "scale"
"""The recipe that fits rate, warm-up and schedule to the batch, which no report did."""


def published_comparison(
    published: PublishedStudy,
    results: StudyResults,
    cpu_times: Mapping[str, CpuTimes] | None = None,
    updates: Mapping[str, Interval] | None = None,
    overridden: Mapping[str, tuple[str, ...]] | None = None,
) -> PublishedComparison:
    """The published study and our results, cell by cell.

    `cpu_times` are of the points' median runs, `updates` the times of an update by point, `overridden` the settings
    that differ from the shipped study. A study made for some of the questions has these alone, and no table.
    """
    here = results.study.name
    alone = here in published.asked_alone
    questions = [each for each in published.questions if here in each.studies] if alone else published.questions
    found = () if alone else contradictions(published)
    return PublishedComparison(
        published=published,
        tables=() if alone else tuple(_table(table, results, updates or {}) for table in published.tables),
        contradictions=found,
        answers=answers(questions, Evidence(results=results, cpu_times=cpu_times or {}, contradictions=found)),
        overridden=dict(overridden or {}),
    )


def _table(table: PublishedTable, results: StudyResults, updates: Mapping[str, Interval]) -> ComparedTable:
    rows = tuple(_row(table, index, results, updates) for index in range(len(table.rows)))
    return ComparedTable(table=table, rows=rows)


def _row(table: PublishedTable, index: int, results: StudyResults, updates: Mapping[str, Interval]) -> ComparedRow:
    row = table.rows[index]
    baseline = match(table, row.baseline, results, {}).point if row.baseline is not None else None
    cells: list[MeasuredCell] = []
    notes: dict[str, None] = {}
    for column in table.columns:
        found = match(table, index, results, column.settings)
        if found.point is None:
            cells.append(MeasuredCell(column=column.name, reason=found.reason))
            continue
        effect = _effect(results, found.point, baseline)
        looked = MeasuredPoint(
            point=found.point,
            epoch=row.epoch,
            baseline=baseline,
            effect=effect,
            update_s=updates.get(found.point.point_id),
        )
        cells.append(measured_cell(column.measure, column.name, looked))
        notes |= dict.fromkeys(_notes(found))
    return ComparedRow(cells=tuple(cells), notes=tuple(notes))


def _effect(results: StudyResults, point: PointResult, baseline: PointResult | None) -> Effect | None:
    """The comparison that the design of the study has already made, where it is with this baseline."""
    made = next((effect for effect in results.effects if effect.is_baseline), None)
    if baseline is None or made is None or made.point_id != baseline.point_id:
        return None
    return next((effect for effect in results.effects if effect.point_id == point.point_id), None)


def _notes(found: Match) -> list[str]:
    assert found.point is not None
    notes = [found.note] if found.note else []
    if found.point.point.train.recipe == _OTHER_RECIPE:
        notes.append(f"trained by the recipe {_OTHER_RECIPE}, which is not the published training")
    return notes
