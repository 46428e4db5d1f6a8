"""Tables of a study that varies more than ranks: series side by side, and what was measured besides training."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.records.results import Comparison, PointResult, StudyResults
from paceline.report.cells import Cell, bytes_cell, interval_cell, share_cell, spread_cell
from paceline.report.choice import by_id, is_several
from paceline.report.facts import Fact
from paceline.report.side_by_side import comparison_sentence
from paceline.report.tables import (
    Table,
    factor_heading,
    fairness_marks,
    fairness_notes,
    key_cells,
    key_columns,
    word_columns,
)
from paceline.units import counted

_BASELINE = (
    "Series that differ in strategy, launcher, hosts or pinning alone are measured against one point, that with the "
    "fewest ranks and servers. What changes the work of a step or the means of a rank (data, model, batch, precision, "
    "threads, device) has a baseline of its own."
)


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
    columns = (first, "samples/s", "of the fastest", "payload per step", "exposed", "test accuracy")
    rows = tuple(
        (
            Cell(point.series, marks=fairness_marks(point)),
            interval_cell(point.samples_per_s, digits=4),
            interval_cell(comparison.ratios.get(point.point_id)),
            bytes_cell(point.message_bytes),
            Cell(0) if point.exposed_share == 0 else share_cell(point.exposed_share),
            spread_cell(point.test_accuracy),
        )
        for point in points
    )
    return Table(
        caption=f"{counted(comparison.ranks, 'rank')} side by side, the fastest first" + _last(points),
        columns=columns,
        rows=rows,
        footnotes=tuple(fairness_notes(points)),
        words=(first,),
    )


def extras_table(results: StudyResults) -> Table:
    """Loading, queues and staleness, of the points and in the columns where a study asks for them."""
    columns: list[str] = []
    if any(point.point.data.read != "mapped" for point in results.points):
        columns += ["load time (s)", "read per rank"]
    if any(point.queue_s is not None for point in results.points):
        columns.append("time in the queue (s)")
    if any(point.staleness_max is not None for point in results.points):
        columns.append("staleness")
    cells = {
        "load time (s)": lambda point: interval_cell(point.load_s),
        "read per rank": lambda point: bytes_cell(point.read_bytes),
        "time in the queue (s)": lambda point: interval_cell(point.queue_s),
        "staleness": lambda point: Cell(point.staleness_max),
    }
    rows = tuple(
        (*key_cells(results, point), *(cells[column](point) for column in columns))
        for point in (results.points if columns else ())
    )
    return Table(
        caption="Before and beside the training: medians over repeats, the most of any rank",
        columns=(*key_columns(results), *columns),
        rows=rows,
        keys=len(key_columns(results)),
        words=word_columns(results),
    )


def definitions(results: StudyResults) -> tuple[Fact, ...]:
    """What the figures of several series mean, where there are any."""
    facts = []
    if any(point.point.servers for point in results.points):
        facts.append(
            Fact(
                "servers",
                "Processes that hold parameters and do not train: they count as ranks in ideal and efficiency.",
            )
        )
    if is_several(results):
        facts += [
            Fact("series", "Points that agree in all that is varied but the number of ranks."),
            Fact("common baseline", _BASELINE),
            Fact(
                "of the fastest",
                "Samples/s over those of the fastest series at as many ranks, paired within each repeat.",
            ),
            Fact(
                "cannot be told apart", "That interval contains 1, or there are fewer than five repeats to make one of."
            ),
            Fact(
                "payload per step",
                "Payload of the messages that a rank takes part in, per step, in the timed epochs of the median run.",
            ),
            Fact("exposed", "Part of those epochs in which ranks communicated and computed nothing, mean over ranks."),
        ]
    return tuple(facts)


def _last(points: tuple[PointResult, ...]) -> str:
    mixed = len({point.fair for point in points if point.samples_per_s}) > 1
    return ", those that say little about scaling last" if mixed else ""
