"""Printed cells that do not agree with one another: found by arithmetic, with room for rounding.

    epochs-exceed-total     epochs × time of one > time of all
    curves-exceed-total     the epochs of a learning curve added up > time of all, in the row of the same settings,
                            where its own time of an epoch does not say so already
    updates-below-epoch     updates × steps of an epoch < time of an epoch, in every row
    beyond-ideal            the time of an epoch, or of all, falls by more than the processes grow, at equal nodes
    batch-beyond-data       a batch, if it were one rank's, × ranks > samples of an epoch
    batch-below-ranks       a batch, if it were that of all ranks, < ranks

A published 20.52 stands for 20.515 to 20.525; a contradiction must hold for every value in that range.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from paceline.published.records import Contradiction, PublishedRow, PublishedStudy, PublishedTable
from paceline.units import counted

_EPOCHS_EXCEED = "epochs-exceed-total"
_TIMED = {"epoch_s": "an epoch", "total_s": "the whole"}


def contradictions(study: PublishedStudy) -> tuple[Contradiction, ...]:
    """All that the tables of a study say against themselves."""
    found: list[Contradiction] = []
    for table in study.tables:
        for rule in (_epochs_exceed_total, _updates_below_epoch, _beyond_ideal, _batch_readings):
            found += rule(table)
    exceeded = {(each.table, each.rows) for each in found if each.name == _EPOCHS_EXCEED}
    for curves, table in itertools.permutations(study.tables, 2):
        found += [each for each in _curves_exceed_total(curves, table) if (each.table, each.rows) not in exceeded]
    return tuple(found)


def _epochs_exceed_total(table: PublishedTable) -> Iterator[Contradiction]:
    for index, row in enumerate(table.rows):
        epoch, total, epochs = _bounds(table, row, "epoch_s"), _bounds(table, row, "total_s"), _constant(table, row)
        if epoch and total and epochs and epochs * epoch[0] > total[1]:
            sum_s = epochs * _middle(epoch)
            text = f"{counted(int(epochs), 'epoch')} of {_shown(table, row, 'epoch_s')} s make {sum_s:,.0f} s"
            yield _said(_EPOCHS_EXCEED, table, (index,), f"{text}, in a total of {_shown(table, row, 'total_s')} s")


def _updates_below_epoch(table: PublishedTable) -> Iterator[Contradiction]:
    """The largest share that updates have in an epoch, where even that leaves a tenth of it open."""
    shares: list[float] = []
    for row in table.rows:
        update, epoch = _bounds(table, row, "update_s"), _bounds(table, row, "epoch_s")
        samples, batch = table.constants.get("train_samples"), table.constants.get("batch_per_rank")
        ranks = row.settings.get("run.ranks")
        if not (update and epoch and samples and batch and ranks):
            return
        steps = math.ceil(samples / (batch * float(ranks[0])))
        shares.append(steps * _middle(update) / _middle(epoch))
    if shares and max(shares) < 0.9:
        low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f} %"
        text = f"Updates × steps come to {low} to {high} of an epoch: what the rest of it went to is not in the table"
        yield Contradiction(
            name="updates-below-epoch", table=table.name, rows=tuple(range(len(table.rows))), text=f"{text}."
        )


def _beyond_ideal(table: PublishedTable) -> Iterator[Contradiction]:
    for (i, few), (j, many) in itertools.permutations(enumerate(table.rows), 2):
        ranks, more = few.settings.get("run.ranks"), many.settings.get("run.ranks")
        if not (ranks and more) or few.epoch is not None:
            continue
        alike = few.settings.get("run.hosts") == many.settings.get("run.hosts") and few.hardware == many.hardware
        ideal = float(more[0]) / float(ranks[0])
        # Neighbours alone: a contradiction over two steps shows in one of them.
        neighbours = ideal > 1 and not any(_between(other, few, many) for other in table.rows)
        faster = [text for name, what in _TIMED.items() if (text := _faster(table, few, many, name, what, ideal))]
        if alike and neighbours and faster:
            kind = f" {many.hardware}" if many.hardware else " processes"
            hosts = few.settings.get("run.hosts")
            kind += f" on {counted(int(hosts[0]), 'node')}" if hosts else ""
            text = f"From {ranks[0]} to {more[0]}{kind} {' and '.join(faster)} as fast, more than {ideal:g}"
            yield _said("beyond-ideal", table, (i, j), text)


def _faster(table: PublishedTable, few: PublishedRow, many: PublishedRow, measure: str, what: str, ideal: float) -> str:
    """How much a time falls from one row to the other, where it is by more than the ideal; else empty."""
    slow, fast = _bounds(table, few, measure), _bounds(table, many, measure)
    if not slow or not fast or slow[0] / fast[1] <= ideal:
        return ""
    return f"{what} becomes {_middle(slow) / _middle(fast):.2f} times"


def _between(other: PublishedRow, few: PublishedRow, many: PublishedRow) -> bool:
    if other.settings.get("run.hosts") != few.settings.get("run.hosts") or other.hardware != few.hardware:
        return False
    low, middle, high = (float(row.settings["run.ranks"][0]) for row in (few, other, many))
    return low < middle < high


def _batch_readings(table: PublishedTable) -> Iterator[Contradiction]:
    """What speaks against a batch being one rank's, and what against its being that of all ranks."""
    samples, column = table.constants.get("train_samples"), table.column("setting:run.ranks")
    rows = [
        (index, int(row.settings["batch_global"][0]), ranks)
        for index, row in enumerate(table.rows)
        if column and "batch_global" in row.settings and isinstance(ranks := row.value(column.name), int)
    ]
    beyond = [(index, batch) for index, batch, ranks in rows if samples and batch * ranks > samples]
    below = [(index, batch) for index, batch, ranks in rows if batch < ranks]
    if beyond:
        text = f"Taken as one rank's, {_batches(beyond)} on {rows[0][2]} ranks are more than the {samples:,} samples"
        yield _said("batch-beyond-data", table, tuple(index for index, _ in beyond), text)
    if below:
        text = f"Taken as that of all ranks, {_batches(below)} cannot be shared by {rows[0][2]} ranks"
        yield _said("batch-below-ranks", table, tuple(index for index, _ in below), text)


def _batches(rows: list[tuple[int, int]]) -> str:
    sizes = ", ".join(f"{batch:,}" for _, batch in rows)
    return f"batches of {sizes}" if len(rows) > 1 else f"a batch of {sizes}"


def _curves_exceed_total(curves: PublishedTable, table: PublishedTable) -> Iterator[Contradiction]:
    """Epochs of a curve against the total of the row with its settings in another table."""
    timed = curves.column("one_epoch_s")
    for row_index, row in enumerate(table.rows):
        total = _bounds(table, row, "total_s")
        own = [line for line in curves.rows if line.settings == row.settings and line.hardware == row.hardware]
        parts = [found for line in own if timed and (found := _bounds(curves, line, "one_epoch_s"))]
        if total and parts and sum(low for low, _ in parts) > total[1]:
            sum_s = sum(_middle(part) for part in parts)
            text = f"The {len(parts)} epochs of {own[0].names[0]} add up to {sum_s:.2f} s"
            text += f", in a total of {_shown(table, row, 'total_s')} s"
            yield _said("curves-exceed-total", table, (row_index,), text)


def _said(name: str, table: PublishedTable, rows: tuple[int, ...], text: str) -> Contradiction:
    where = "; ".join(_row_name(table, index) for index in rows[:1])
    ending = f" ({where})." if len(rows) == 1 else "."
    return Contradiction(name=name, table=table.name, rows=rows, text=text + ending)


def _row_name(table: PublishedTable, index: int) -> str:
    pairs = zip(table.keys, table.rows[index].names, strict=True)
    return ", ".join(f"{key} {name}" for key, name in pairs)


def _constant(table: PublishedTable, row: PublishedRow) -> float | None:
    """Epochs of a row: in a column of its own, or the same for all."""
    column = table.column("setting:train.epochs")
    value = row.value(column.name) if column else table.constants.get("epochs")
    return float(value) if isinstance(value, int | float) else None


def _bounds(table: PublishedTable, row: PublishedRow, measure: str) -> tuple[float, float] | None:
    """Lowest and highest value that round to the published figure; None for an empty cell."""
    column = table.column(measure)
    cell = next((cell for cell in row.cells if column and cell.column == column.name), None)
    if cell is None or not isinstance(cell.value, int | float):
        return None
    half = 0.5 * 10.0 ** -len(cell.text.partition(".")[2])
    return cell.value - half, cell.value + half


def _middle(bounds: tuple[float, float]) -> float:
    return sum(bounds) / 2


def _shown(table: PublishedTable, row: PublishedRow, measure: str) -> str:
    column = table.column(measure)
    return next((cell.text for cell in row.cells if column and cell.column == column.name), "")
