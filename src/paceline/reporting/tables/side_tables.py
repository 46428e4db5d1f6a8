"""Tables with a column for every side of a comparison: what differs, what each measured, and how it stands to A."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from paceline.metrics import metric
from paceline.records.changes import Change, Comparison, SideFigures
from paceline.reporting.cells import Cell, interval_cell
from paceline.reporting.tables.change_tables import (
    accuracy_cell,
    difference_cell,
    p_cell,
    test_outcome,
    time_scale,
    verdict,
)
from paceline.reporting.tables.point_tables import Table
from paceline.units import number_text


def letters(found: Comparison) -> tuple[str, ...]:
    """Of all sides, A first."""
    return ("A", *(changes.letter for changes in found.against))


def all_differences_table(found: Comparison) -> Table:
    """What A and the others do not have in common; where a side is not named by its own difference, it is as A is."""
    known: dict[str, dict[str, str | None]] = {}
    for changes in found.against:
        for each in changes.differences:
            known.setdefault(each.name, {})["A"] = each.a
            known[each.name][changes.letter] = each.b
    rows = tuple(
        (Cell(name), *(Cell(values.get(letter, values["A"]) or None) for letter in letters(found)))
        for name, values in known.items()
    )
    columns = ("", *letters(found))
    return Table(caption="What differs before anything is measured", columns=columns, rows=rows, words=columns)


def sides_table(found: Comparison) -> Table:
    """One row a figure of every point that was compared, a column a side, and what the tests against A say."""
    points = list(dict.fromkeys((each.point, each.unit) for each in found.figures))
    rows = [row for point, unit in points for row in _point_rows(found, point, unit)]
    columns = ("", "figure", *letters(found))
    return Table(
        caption="Side by side: medians, and what the tests against A say",
        columns=columns,
        rows=tuple(rows),
        footnotes=_notes(found),
        keys=2,
        words=("", "figure"),
    )


def _point_rows(found: Comparison, point: str, unit: str) -> Iterable[tuple[Cell, ...]]:
    figures = {each.letter: each for each in found.figures if (each.point, each.unit) == (point, unit)}
    changes = {
        each.letter: change
        for each in found.against
        for change in each.changes
        if (change.a, change.unit) == (point, unit)
    }
    label = Cell(next(iter(figures.values())).label)

    def row(name: str, cells: Callable[[str], Cell]) -> tuple[Cell, ...]:
        return (label, Cell(name), *(cells(letter) for letter in letters(found)))

    times = [interval.median for change in changes.values() for interval in (change.time_s.a, change.time_s.b)]
    scale, factor = time_scale(max(times))
    yield row(f"time per {unit} ({scale})", lambda letter: _time_cell(changes, letter, factor))
    yield row("÷ A", lambda letter: _ratio_cell(changes.get(letter)))
    yield row("verdict", lambda letter: _verdict_cell(changes.get(letter)))
    epochs = [each.epoch_s.median for each in figures.values() if each.epoch_s]
    if epochs:
        unit_s, times_s = time_scale(max(epochs))
        yield row(
            metric("epoch time").heading_in(unit_s),
            lambda letter: _cell(figures.get(letter), lambda each: interval_cell(each.epoch_s, times_s)),
        )
    if any(each.samples_per_s for each in figures.values()):
        yield row(
            metric("samples/s").heading,
            lambda letter: _cell(figures.get(letter), lambda each: interval_cell(each.samples_per_s, digits=4)),
        )
    if any(each.test_accuracy for each in figures.values()):
        yield row(metric("test accuracy").heading, lambda letter: _cell(figures.get(letter), _accuracy))
    if any(change.accuracy for change in changes.values()):
        yield row("accuracy − A (points)", lambda letter: _accuracy_change(changes.get(letter)))


def _time_cell(changes: dict[str, Change], letter: str, factor: float) -> Cell:
    if letter == "A":
        return interval_cell(next(iter(changes.values())).time_s.a, factor)
    change = changes.get(letter)
    return Cell(None) if change is None else interval_cell(change.time_s.b, factor)


def _ratio_cell(change: Change | None) -> Cell:
    return Cell(None) if change is None else interval_cell(change.time_s.change)


def _verdict_cell(change: Change | None) -> Cell:
    return Cell(None) if change is None else Cell(verdict(change), f"p {p_cell(change.time_s).figure}")


def _cell(figures: SideFigures | None, made: Callable[[SideFigures], Cell]) -> Cell:
    return Cell(None) if figures is None else made(figures)


def _accuracy(figures: SideFigures) -> Cell:
    return Cell(None) if figures.test_accuracy is None else accuracy_cell(figures.test_accuracy)


def _accuracy_change(change: Change | None) -> Cell:
    if change is None or change.accuracy is None:
        return Cell(None)
    return replace(difference_cell(change.accuracy.change, 2), note=test_outcome(change.accuracy))


def num_tests(found: Comparison) -> int:
    """Times that could be called different at all."""
    return sum(change.time_s.change.coverage is not None for each in found.against for change in each.changes)


def _notes(found: Comparison) -> tuple[str, ...]:
    notes = []
    coverages = [change.time_s.change.coverage for each in found.against for change in each.changes]
    known = [coverage for coverage in coverages if coverage is not None]
    if known:
        lowest = number_text(100 * min(known))
        notes.append(f"[ ] of a ratio or difference is an interval that holds with {lowest} % confidence or more.")
    if len(known) < len(coverages):
        notes.append("With fewer than four values on a side it is the range of all pairs.")
    if len(known) > 1:
        notes.append(f"p is corrected for {len(known)} tests, of all sides together.")
    if any(each.shared_cores for each in found.figures):
        notes.append("There were more threads than cores at some points: the figures are about how they took turns.")
    return (" ".join(notes),) if notes else ()
