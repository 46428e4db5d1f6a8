"""Tables of a comparison: what differed beforehand, times, parts, efficiencies, messages, accuracies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from paceline.records.changes import Change, Difference, MessageChange, Versus
from paceline.records.results import Interval
from paceline.reporting.cells import Cell, Form, bytes_cell, fraction_cell, interval_cell, number_cell
from paceline.reporting.tables.point_tables import Table
from paceline.units import counted, number_text, percent_text

_MOST_MESSAGES = 6
_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))


def differences_table(differences: Sequence[Difference], letter: str = "B") -> Table:
    """Settings and environment in which A and B differ."""
    rows = tuple((Cell(each.name), Cell(each.a or None), Cell(each.b or None)) for each in differences)
    columns = ("", "A", letter)
    return Table(caption="What differs before anything is measured", columns=columns, rows=rows, words=columns)


def times_table(changes: Sequence[Change], unit: str, letter: str = "B", tests: int | None = None) -> Table:
    """One row a pair: the time of A and of B, their ratio, and what the test says; `tests` were made in all."""
    own = [change for change in changes if change.unit == unit]
    scale, factor = time_scale(max(max(change.time_s.a.median, change.time_s.b.median) for change in own))
    rows = tuple(
        (
            Cell(change.label),
            Cell(_sizes(change)),
            interval_cell(change.time_s.a, factor),
            interval_cell(change.time_s.b, factor),
            interval_cell(change.time_s.change),
            p_cell(change.time_s),
            Cell(verdict(change)),
        )
        for change in own
    )
    return Table(
        caption=f"Time per {unit}: medians over {' or '.join(dict.fromkeys(map(_values, own)))}",
        columns=("", "values", f"A ({scale})", f"{letter} ({scale})", f"{letter} ÷ A", "p", "verdict"),
        rows=rows,
        footnotes=tuple(filter(None, (_interval_note(own, letter, tests), *_block_notes(own, letter)))),
        words=("", "values", "verdict"),
    )


def parts_table(change: Change, letter: str = "B") -> Table:
    """One row a kind of the ledger: they sum to the last."""
    a_s, b_s = change.time_s.a.median, change.time_s.b.median
    scale, factor = time_scale(max(a_s, b_s))
    decimals = _decimals(max(a_s, b_s) * factor)

    def row(name: str, first_s: float, second_s: float, change_s: Interval | None, share: float) -> tuple[Cell, ...]:
        form = Form(scale=factor, decimals=decimals)
        times = (Cell(value_s, form=form) for value_s in (first_s, second_s))
        more = _signed_cell(second_s - first_s, change_s, factor, decimals)
        return (Cell(name), *times, more, _signed_cell(share, None, 100, 1))

    rows = [
        row(part.kind, part.a_s or 0.0, part.b_s or 0.0, part.change_s, part.share or 0.0)
        for part in change.parts
        if round(max(part.a_s or 0.0, part.b_s or 0.0) * factor, decimals) > 0
    ]
    if rows:
        rows.append(row(f"whole {change.unit}", a_s, b_s, None, b_s / a_s - 1))
    missing = [part.kind for part in change.parts if part.a_s is None]
    return Table(
        caption=f"Where it comes from with {change.label}: time per {change.unit} by kind, mean over ranks, of the "
        f"median {'run' if change.over == 'runs' else 'block'} of each",
        columns=("kind", f"A ({scale})", f"{letter} ({scale})", f"{letter} − A ({scale})", "points of A's time"),
        rows=tuple(rows),
        footnotes=(f"Not measured, and in other: {', '.join(missing)}.",) if missing and rows else (),
        words=("kind",),
    )


def efficiencies_table(change: Change, letter: str = "B") -> Table:
    """The efficiency tree on both sides."""
    rows = tuple(
        (
            Cell(name.replace("_", " ")),
            fraction_cell(found.a.median),
            fraction_cell(found.b.median),
            difference_cell(found.change, 1),
            Cell(test_outcome(found)),
        )
        for name, found in change.efficiencies.items()
        if min(found.a.low, found.b.low) < 1  # without any loss there is nothing to compare
    )
    return Table(
        caption=f"Efficiencies with {change.label}",
        columns=("", "A", letter, f"{letter} − A (points)", "verdict"),
        rows=rows,
        words=("", "verdict"),
    )


def messages_table(change: Change, letter: str = "B") -> Table:
    """Messages by operation and size, those with the most bytes."""
    shown = [row for row in change.messages if row.main][:_MOST_MESSAGES]
    more = len(change.messages) - len(shown)
    return Table(
        caption=f"Messages with {change.label}, most bytes first: how many in a step, and bus bandwidth",
        columns=("operation", "size", "in a step", "A (MB/s)", f"{letter} (MB/s)", f"{letter} ÷ A", "verdict"),
        rows=tuple(map(_message_row, shown)),
        footnotes=(f"{counted(more, 'more row')} of the table: --json.",) if more else (),
        keys=2,
        words=("operation", "verdict"),
    )


def accuracy_table(changes: Sequence[Change], letter: str = "B") -> Table:
    """Test accuracy of both sides, a row a pair."""
    rows = tuple(
        (
            Cell(change.label),
            accuracy_cell(found.a),
            accuracy_cell(found.b),
            difference_cell(found.change, 2),
            p_cell(found),
            Cell(test_outcome(found)),
        )
        for change in changes
        if (found := change.accuracy) is not None
    )
    return Table(
        caption="Test accuracy: medians over runs",
        columns=("", "A", letter, f"{letter} − A (points)", "p", "verdict"),
        rows=rows,
        words=("", "verdict"),
    )


def _message_row(row: MessageChange) -> tuple[Cell, ...]:
    speed = row.bandwidth
    often = [number_text(row.a_per_step), number_text(row.b_per_step)]
    return (
        Cell(f"{row.operation.strip('_')} {row.dtype or ''}".strip()),
        bytes_cell(row.payload_bytes),
        Cell(often[0] if often[0] == often[1] else " → ".join(often)),
        number_cell(speed and speed.a.median / 1e6),
        number_cell(speed and speed.b.median / 1e6),
        interval_cell(speed and speed.change),
        Cell(speed and test_outcome(speed)),
    )


def time_scale(longest_s: float) -> tuple[str, float]:
    """The unit in which the longest of several times has at least one digit before the point."""
    return next((unit for unit in _UNITS if longest_s * unit[1] >= 1), _UNITS[-1])


def _decimals(largest: float) -> int:
    """Decimals that leave four digits of the largest of several figures."""
    return max(0, 3 - math.floor(math.log10(largest))) if largest > 0 else 0


def _sizes(change: Change) -> str:
    """How many values each side has: `5 and 5 runs`, `20 and 20 blocks`."""
    return f"{change.time_s.a.n} and {change.time_s.b.n} {'runs' if change.over == 'runs' else 'blocks'}"


def _block_notes(changes: Sequence[Change], letter: str) -> tuple[str, ...]:
    """Lengths of the blocks, which make neighbouring blocks nearly independent."""
    lengths = dict.fromkeys(change.block_steps for change in changes if len(change.block_steps) > 1)
    return tuple(
        f"A block is {counted(of_a, 'step')} of A, {counted(of_b, 'step')} of {letter}: neighbouring steps are alike."
        for of_a, of_b in lengths
    )


def _values(change: Change) -> str:
    return "runs" if change.over == "runs" else "blocks of steps"


def _interval_note(changes: Sequence[Change], letter: str, tests: int | None) -> str:
    """Meaning of brackets and p."""
    coverages = [change.time_s.change.coverage for change in changes]
    known = [coverage for coverage in coverages if coverage is not None]
    notes = []
    if known:
        notes.append(f"[ ] of {letter} ÷ A is an interval that holds with {percent_text(min(known))} confidence.")
    if len(known) < len(coverages):
        notes.append("With fewer than four values on a side it is the range of all pairs.")
    if (tests or len(known)) > 1 and known:
        notes.append(f"p is corrected for {tests or len(known)} tests.")
    return " ".join(notes)


def p_cell(found: Versus) -> Cell:
    """The corrected p with the digits that matter."""
    if found.p_adjusted < 1e-4:
        return Cell(1e-4, form=Form(decimals=4), bound="<")
    return number_cell(found.p_adjusted, 2)


def verdict(change: Change) -> str:
    """`slower` or `faster` if the test is significant, else its outcome."""
    if change.time_s.real:
        return "slower" if change.time_s.change.median > 1 else "faster"
    return test_outcome(change.time_s)


def test_outcome(found: Versus) -> str:
    """`real`, `undecided` or `not tested`."""
    if found.real:
        return "real"
    return "not tested" if found.change.coverage is None else "undecided"


def difference_cell(interval: Interval, decimals: int) -> Cell:
    """A difference of fractions in percentage points, and its interval beside it."""
    return _signed_cell(interval.median, interval, 100, decimals)


def _signed_cell(value: float, interval: Interval | None, factor: float, decimals: int) -> Cell:
    """A difference with its sign, and its interval beside it where there are several values."""
    form = Form(scale=factor, decimals=decimals, sign=True, bare_zero="rounded")
    ends = None if interval is None or interval.n == 1 else (interval.low, interval.high)
    return Cell(value, form=form, interval=ends)


def accuracy_cell(interval: Interval) -> Cell:
    """An accuracy in per cent, and its interval beside it where there are several values."""
    cell = fraction_cell(interval.median)
    return cell if interval.n == 1 else replace(cell, interval=(interval.low, interval.high))
