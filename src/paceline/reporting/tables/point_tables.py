"""Tables of a report: the figures of every point, and where their time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paceline import metrics
from paceline.metrics import PointMetric, metric
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import PointResult, StudyResults
from paceline.records.study import factor_value, shown_value
from paceline.reporting.cells import NONE, Cell, factor_cell, metric_cell, number_cell, seconds_cell
from paceline.reporting.wording.choice import is_script, measures_scaling, shared_epoch
from paceline.reporting.wording.phrases import factor_heading, shared_epoch_note
from paceline.units import percent_text

MOST_RANKS = 64
"""Ranks of a run that are shown one by one: more make a page long and no clearer."""
FAIRNESS_MARKS = {
    "*": "emulated: more ranks or threads than cores. These points say little about scaling.",
    "†": "emulated: hosts that are one machine. These points say little about scaling.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Headings and rows of equal length."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    footnotes: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    """Columns in which every row is zero: a terminal may leave them out."""
    keys: int = 1
    """Number of key columns at the left, repeated in every part of a divided table."""
    words: tuple[str, ...] = ()
    """Columns of text, aligned left."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Heading -> name of its metric, for headings that the registry does not have."""

    @property
    def terms(self) -> tuple[str, ...]:
        """What the registry explains of each column."""
        return tuple(self.meant.get(column, column) for column in self.columns)


def figures_table(results: StudyResults) -> Table:
    """One row per point: ranks and factors, then the metrics whose place is the table of results."""
    points, repeats = results.points, results.study.run.repeats
    script, scaled = is_script(results), measures_scaling(results)
    partial = any(point.runs < repeats for point in points)
    shown = metric_columns(results, "results")
    columns = (*key_columns(results), *((metric("runs").heading,) if partial else ()))
    rows = []
    for point in points:
        row = key_cells(results, point, marked=True)
        if partial:
            row.append(Cell(f"{point.runs} of {repeats}"))
        rows.append((*row, *(metric_cell(column.metric, point, column.factor) for column in shown)))
    footnotes = [_around_note(points, script=script), *fairness_notes(points)]
    footnotes += [shared_epoch_note(results)] if scaled else []
    if any(point.point.servers for point in points):
        footnotes.append("Servers count as ranks in the efficiency.")
    return Table(
        caption="One row per point: medians over repeats",
        columns=(*columns, *(column.heading for column in shown)),
        rows=tuple(rows),
        footnotes=tuple(filter(None, footnotes)),
        keys=len(key_columns(results)),
        words=word_columns(results),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricColumn:
    """A column of a metric."""

    metric: PointMetric
    heading: str
    factor: float
    """What one of the metric's unit is in the unit of the column."""


def metric_columns(results: StudyResults, table: str) -> tuple[MetricColumn, ...]:
    """The metrics that have a place in a table and are shown for this study, in the order of the columns."""
    ordered: list[PointMetric] = []
    for entry in metrics.POINT_METRICS:
        if entry.place is not None and entry.place.table == table and _is_shown(entry, results):
            keys = [other.key for other in ordered]
            before = entry.place.before
            ordered.insert(keys.index(before) if before in keys else len(keys), entry)
    return tuple(_metric_column(results, entry) for entry in ordered)


def _metric_column(results: StudyResults, entry: PointMetric) -> MetricColumn:
    if entry.key == "speedup":
        return MetricColumn(metric=entry, heading=speedup_heading(results), factor=1.0)
    unit, factor = time_unit(results.points) if entry.key == "epoch_s" else (entry.unit, 1.0)
    return MetricColumn(metric=entry, heading=entry.heading_in(unit), factor=factor)


def _is_shown(entry: PointMetric, results: StudyResults) -> bool:
    def is_measured(points: Iterable[PointResult]) -> bool:
        return any(entry.value(point) is not None for point in points)

    match entry.place and entry.place.shown:
        case "measured":
            return is_measured(results.points)
        case "training":
            return not is_script(results)
        case "script":
            return is_script(results)
        case "scaled":
            return measures_scaling(results)
        case "compared":
            others = (point for point in results.points if point.point_id != point.baseline)
            return measures_scaling(results) and is_measured(others)
        case "loading":
            return any(point.point.data.read != "mapped" for point in results.points)
        case _:
            return True


def speedup_heading(results: StudyResults) -> str:
    """What the speed-ups of a study are called: those of an epoch where ranks share its samples."""
    return metric("speed-up" if shared_epoch(results) is None else "speed-up of an epoch").heading


def fairness_marks(point: PointResult) -> tuple[str, ...]:
    """Marks of a point that says little about scaling."""
    return (*(("*",) if point.oversubscribed else ()), *(("†",) if point.emulated else ()))


def fairness_notes(points: tuple[PointResult, ...]) -> list[str]:
    """Footnotes that explain the marks of points."""
    marks = {mark for point in points for mark in fairness_marks(point)}
    return [f"{mark} {meaning}" for mark, meaning in FAIRNESS_MARKS.items() if mark in marks]


def key_columns(results: StudyResults) -> tuple[str, ...]:
    """Headings of the columns that say which point a row is about: ranks, and what the study varies besides."""
    return ("ranks", *(factor_heading(path) for path in _factors(results)))


def key_cells(results: StudyResults, point: PointResult, *, marked: bool = False) -> list[Cell]:
    """The cells under these headings; `marked` where the rank count carries the marks of unfair points."""
    marks = fairness_marks(point) if marked else ()
    values = (shown_value(path, factor_value(point.point, path)) for path in _factors(results))
    return [Cell(point.point.ranks, marks=marks), *map(factor_cell, values)]


def word_columns(results: StudyResults) -> tuple[str, ...]:
    """Those of the key columns that hold names."""
    return tuple(
        factor_heading(path)
        for path in _factors(results)
        if any(isinstance(factor_value(point.point, path), str) for point in results.points)
    )


def _factors(results: StudyResults) -> list[str]:
    """What the study varies besides ranks; ranks per host follow from the two columns beside them."""
    return [path for path in results.study.vary if not path.endswith(".ranks_per_host")]


def ledger_table(results: StudyResults, points: tuple[PointResult, ...]) -> Table:
    """One row for each of `points`: the seconds and the share of its median run that each kind took."""
    rows = [(*key_cells(results, point), *_ledger_cells(point.ledger_s)) for point in points if point.ledger_s]
    caption = "Where the time went: seconds and share of the median run, mean over ranks"
    if len(points) < len(results.points):
        caption += f" (the report has all {len(results.points)} points)"
    return _ledger(caption, key_columns(results), rows, words=word_columns(results))


def rank_table(point: PointResult) -> Table:
    """One row per rank of a point's median run, as far as a reader would go down."""
    shown = point.rank_ledgers_s[:MOST_RANKS]
    rows = [(Cell(rank), *_ledger_cells(ledger)) for rank, ledger in enumerate(shown)]
    which = f"The first {MOST_RANKS} ranks" if len(shown) < len(point.rank_ledgers_s) else "Each rank"
    return _ledger(f"{which} of run {point.median_run} with {point.label}", ("rank",), rows)


def _ledger(caption: str, keys: tuple[str, ...], rows: list[tuple[Cell, ...]], *, words: tuple[str, ...] = ()) -> Table:
    first = len(keys) + 1
    blank = tuple(
        kind for index, kind in enumerate(LEDGER_KINDS, start=first) if all(row[index].value == 0 for row in rows)
    )
    unmeasured = any(cell.value is None for row in rows for cell in row[first:])
    return Table(
        caption=caption,
        columns=(*keys, metric("whole run").heading, *LEDGER_KINDS),
        rows=tuple(rows),
        blank=blank,
        footnotes=(f"{NONE} not measured",) if unmeasured else (),
        keys=len(keys),
        words=words,
    )


def _ledger_cells(ledger_s: dict[str, float | None]) -> list[Cell]:
    whole_s = sum(value for value in ledger_s.values() if value is not None)
    cells = [number_cell(whole_s)]
    for kind in LEDGER_KINDS:
        value_s = ledger_s.get(kind)
        if value_s is None:
            cells.append(Cell(None))
        elif value_s == 0 or whole_s <= 0:
            cells.append(Cell(0))
        else:
            cells.append(seconds_cell(value_s, share=value_s / whole_s))
    return cells


def time_unit(points: tuple[PointResult, ...]) -> tuple[str, float]:
    """The unit in which all epoch times are shown, and what a second is in it."""
    longest_s = max((point.epoch_s.median for point in points if point.epoch_s), default=1.0)
    return ("s", 1.0) if longest_s >= 1 else ("ms", 1e3)


def _around_note(points: tuple[PointResult, ...], *, script: bool) -> str:
    times = [point.total_s if script else point.epoch_s for point in points]
    intervals = [interval for interval in times if interval and interval.n > 1]
    if not intervals:
        return ""
    spread = "" if script else "± is the standard deviation over repeats."
    if any(interval.coverage is None for interval in intervals):
        return f"[ ] is the range of the repeats: fewer than five give no interval. {spread}".rstrip()
    coverage = min(interval.coverage for interval in intervals if interval.coverage is not None)
    return f"[ ] is an interval for the median that holds with {percent_text(coverage)} confidence. {spread}".rstrip()
