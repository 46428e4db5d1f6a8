"""Tables as strings: the figures of every point, and where their time went.

A cell is a figure and what qualifies it (an interval, a percentage), kept apart so that a page
can set them differently and a narrow terminal can put one below the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from paceline.records.results import Interval, PointResult, Spread, StudyResults
from paceline.records.trace import LEDGER_KINDS
from paceline.report.words import spread_text
from paceline.units import count_text, counted, finite, interval_text, number_text, percent_text

NONE = "–"
MOST_RANKS = 64
"""Ranks of a run that are shown one by one: more make a page long and no clearer."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure, and what stands beside it in smaller type."""

    figure: str
    beside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Headings and rows of equal length."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    footnotes: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    """Columns in which every row is zero: a terminal may leave them out."""


def figures_table(results: StudyResults) -> Table:
    """One row per point: ranks, epoch time, samples/s, speed-up, efficiency, test accuracy."""
    points, repeats = results.points, results.study.run.repeats
    partial = any(point.runs < repeats for point in points)
    unit, factor = time_unit(points)
    columns = ("ranks", *(("runs",) if partial else ()), f"epoch time ({unit})", "samples/s")
    columns += ("speed-up", "efficiency", "test accuracy")
    rows = []
    for point in points:
        row = [Cell(str(point.point.ranks) + (" *" if point.oversubscribed else ""))]
        if partial:
            row.append(Cell(f"{point.runs} of {repeats}"))
        row.append(_interval_cell(point.epoch_s, factor))
        row.append(_interval_cell(point.samples_per_s, digits=4))
        row.append(_interval_cell(point.speedup))
        row.append(_percent_cell(point.efficiency))
        row.append(_spread_cell(point.test_accuracy))
        rows.append(tuple(row))
    footnotes = [_around_note(points)]
    if any(point.oversubscribed for point in points):
        footnotes.append("* more ranks or threads than cores: these points say little about scaling.")
    caption = "One row per point: medians over repeats"
    return Table(caption=caption, columns=columns, rows=tuple(rows), footnotes=tuple(filter(None, footnotes)))


def ledger_table(results: StudyResults) -> Table:
    """One row per point: the seconds and the share of its median run that each kind took."""
    rows = [
        (Cell(str(point.point.ranks)), *_ledger_cells(point.ledger_s)) for point in results.points if point.ledger_s
    ]
    return _ledger("Where the time went: seconds and share of the median run, mean over ranks", "ranks", rows)


def rank_table(point: PointResult) -> Table:
    """One row per rank of a point's median run, as far as a reader would go down."""
    shown = point.rank_ledgers_s[:MOST_RANKS]
    rows = [(Cell(str(rank)), *_ledger_cells(ledger)) for rank, ledger in enumerate(shown)]
    which = f"The first {MOST_RANKS} ranks" if len(shown) < len(point.rank_ledgers_s) else "Each rank"
    return _ledger(f"{which} of run {point.median_run} with {counted(point.point.ranks, 'rank')}", "rank", rows)


def _ledger(caption: str, first: str, rows: list[tuple[Cell, ...]]) -> Table:
    columns = (first, "whole run", *LEDGER_KINDS)
    blank = tuple(
        kind for index, kind in enumerate(LEDGER_KINDS, start=2) if all(row[index].figure == "0" for row in rows)
    )
    footnotes = ("– not measured",) if any(cell.figure == NONE for row in rows for cell in row) else ()
    return Table(caption=caption, columns=columns, rows=tuple(rows), blank=blank, footnotes=footnotes)


def _ledger_cells(ledger_s: dict[str, float | None]) -> list[Cell]:
    whole_s = sum(value for value in ledger_s.values() if value is not None)
    cells = [Cell(number_text(whole_s))]
    for kind in LEDGER_KINDS:
        value_s = ledger_s.get(kind)
        if value_s is None:
            cells.append(Cell(NONE))
        elif value_s == 0 or whole_s <= 0:
            cells.append(Cell("0"))
        else:
            cells.append(Cell(seconds_text(value_s), share_text(value_s / whole_s)))
    return cells


def seconds_text(value_s: float) -> str:
    """Seconds to a hundredth at most: finer digits of a whole run are noise."""
    if 0 < value_s < 0.005:
        return "<0.01"
    return number_text(value_s) if value_s >= 1 else f"{value_s:.2f}"


def share_text(fraction: float) -> str:
    """A share of a whole, to a per cent."""
    return "<1 %" if 0 < fraction < 0.005 else percent_text(fraction, 0)


def time_unit(points: tuple[PointResult, ...]) -> tuple[str, float]:
    """The unit in which all epoch times are shown, and what a second is in it."""
    longest_s = max((point.epoch_s.median for point in points if point.epoch_s), default=1.0)
    return ("s", 1.0) if longest_s >= 1 else ("ms", 1e3)


def _interval_cell(interval: Interval | None, factor: float = 1.0, digits: int = 3) -> Cell:
    if interval is None or finite(interval.median) is None:
        return Cell(NONE)
    figure, low, high = (value * factor for value in (interval.median, interval.low, interval.high))
    if interval.low == interval.high or finite(low) is None or finite(high) is None:
        return Cell(number_text(figure, digits))
    # One call for all three, so that they share their decimals.
    text, _, around = interval_text(figure, low, high, digits).partition(" ")
    return Cell(text, around)


def _percent_cell(interval: Interval | None) -> Cell:
    if interval is None or finite(interval.median) is None:
        return Cell(NONE)
    beside = "" if interval.low == interval.high else f"[{interval.low * 100:.0f}, {interval.high * 100:.0f}]"
    return Cell(percent_text(interval.median, 0), beside)


def _spread_cell(spread: Spread | None) -> Cell:
    if spread is None or finite(spread.mean) is None:
        return Cell(NONE)
    figure, _, beside = spread_text(spread).partition(" ± ")
    return Cell(figure, f"± {beside}" if beside else "")


def _around_note(points: tuple[PointResult, ...]) -> str:
    intervals = [point.epoch_s for point in points if point.epoch_s and point.epoch_s.n > 1]
    if not intervals:
        return ""
    spread = "± is the standard deviation over repeats."
    if any(interval.coverage is None for interval in intervals):
        return f"[ ] is the range of the repeats: fewer than five give no interval. {spread}"
    coverage = min(interval.coverage for interval in intervals if interval.coverage is not None)
    return f"[ ] is an interval for the median that holds with {percent_text(coverage)} confidence. {spread}"


def parameters_text(results: StudyResults) -> str:
    """The number of the model's parameters, where a run has said it."""
    return count_text(next((point.parameters for point in results.points if point.parameters), None))
