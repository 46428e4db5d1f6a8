"""The anatomy of a run as tables: ledger, efficiency tree, messages, matrix, stragglers, critical path.

A cell holds no more than was measured: what is not known is a dash, and a time between two ranks' clocks that is
shorter than their error is shown as a bound. Names are read from files; control characters are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.trace_summary import Arrivals, Efficiencies, Exchange, MessageKind, RunTrace, TraceSummary
from paceline.reporting.cells import NONE, Cell, Form, bytes_cell, count_cell, duration_cell, fraction_cell
from paceline.reporting.tables.point_tables import MOST_RANKS, Table
from paceline.reporting.wording.characters import printable
from paceline.units import bytes_text, count_text, duration_text, percent_text

ESTIMATED = "≈"
_BYTES_PER_S = Form(as_text=lambda value: f"{bytes_text(value)}/s")
MORE = "--top N shows more"
"""How to see all rows."""
WIDEST_MATRIX = 8
"""Ranks of which the matrix is shown as a square: more do not fit on a screen."""
_TREE = (
    ("global_", "global", "mean useful time of a rank ÷ wall time"),
    ("computation_scaling", "├ computation scaling", "useful time per sample: the baseline's ÷ this run's"),
    ("load_balance", "├ load balance", "mean ÷ largest useful time of a rank"),
    ("serialisation", "├ serialisation", "largest useful time ÷ wall if messages were instant"),
    ("transfer", "└ transfer", "wall if messages were instant ÷ wall time"),
)


def ledger_table(run: RunTrace, found: TraceSummary) -> Table:
    """Seconds of each rank by kind; kinds without any time may be omitted."""
    ranks = [trace.rank for trace in run.traces if trace.rank < run.ranks]
    several = len(set(run.hosts)) > 1
    # Five digits of the wall time: the shortest runs are of milliseconds, the longest of days.
    decimals = 3 if found.wall_s <= 0 else min(max(4 - math.floor(math.log10(found.wall_s)), 0), 9)
    rows = []
    for rank, ledger in list(zip(ranks, found.ledgers_s, strict=True))[:MOST_RANKS]:
        figures = [Cell(ledger.get(kind), form=Form(decimals=decimals)) for kind in LEDGER_KINDS]
        rows.append((Cell(rank), *([Cell(printable(run.hosts[rank]))] if several else []), *figures))
    footnotes = []
    if len(ranks) > MOST_RANKS:
        footnotes.append(f"The first {MOST_RANKS} of {len(ranks)} ranks; --json has all.")
    if any(ledger.get("comm-wait") is None for ledger in found.ledgers_s):
        footnotes.append(
            f"{NONE}: not every rank shows the same messages, so exposed communication is not divided; it is in other."
        )
    return Table(
        caption="Seconds of each rank from the launch to the last rank's end: a row sums to the wall time",
        columns=("rank", *(("host",) if several else ()), *LEDGER_KINDS),
        rows=tuple(rows),
        footnotes=tuple(footnotes),
        blank=tuple(kind for kind in LEDGER_KINDS if all(ledger.get(kind) == 0 for ledger in found.ledgers_s)),
        keys=2 if several else 1,
        words=("host",),
    )


def tree_table(tree: Efficiencies, lost_to: Mapping[str, float]) -> Table:
    """The efficiency tree; beside each factor the share of the loss that it explains, and what it is."""
    rows = []
    for name, shown, meaning in _TREE:
        value = getattr(tree, name)
        if name == "computation_scaling" and value is None:
            meaning = "of a study, against its baseline: see its report"
        share = Cell("") if name == "global_" else fraction_cell(lost_to.get(name), 0)
        rows.append((Cell(shown), fraction_cell(value), share, Cell(meaning)))
    return Table(
        caption="Efficiency of the timed steps, and how much of what is lost each factor explains",
        columns=("factor", "efficiency", "of the loss", "what it is"),
        rows=tuple(rows),
        words=("factor", "what it is"),
    )


def message_rows(found: TraceSummary, top: int, more: str = MORE) -> Table:
    """One row for each operation, group, type and size of message: the largest totals first."""
    groups = len({kind.group for kind in found.messages}) > 1
    rows = [_message_row(kind, groups, found.clock_error_s) for kind in found.messages[:top]]
    footnotes = ["Bandwidths: nccl-tests' algorithm and bus bandwidth over the median transfer.", _lateness_note(found)]
    if len(found.messages) > top:
        footnotes.insert(0, f"The first {top} of {len(found.messages)} kinds; {more}.")
    columns = ("operation", *(("group",) if groups else ()), "type", "size", "count", "median", "p99", "wait")
    return Table(
        caption="Messages by operation and size: from issue to completion on one rank, of which wait and transfer",
        columns=(*columns, "transfer", "hidden", "algbw", "busbw"),
        rows=tuple(rows),
        footnotes=tuple(footnotes),
        keys=4 if groups else 3,
        words=("operation", "group", "type"),
    )


def _message_row(kind: MessageKind, groups: bool, error_s: float) -> tuple[Cell, ...]:
    unsure = kind.transfer_s is not None and kind.transfer_s < error_s
    speeds = (kind.algorithm_bytes_per_s, kind.bus_bytes_per_s)
    return (
        Cell(printable(kind.operation)),
        *([Cell(printable(kind.group))] if groups else []),
        Cell(printable(kind.dtype) if kind.dtype else None),
        bytes_cell(kind.payload_bytes),
        count_cell(kind.count),
        duration_cell(kind.total_s),
        duration_cell(kind.total_p99_s),
        _across(kind.wait_s, error_s),
        _across(kind.transfer_s, error_s),
        fraction_cell(kind.hidden_share, 0),
        *(Cell(None if unsure else speed, form=_BYTES_PER_S) for speed in speeds),
    )


def _across(value_s: float | None, error_s: float) -> Cell:
    """A time from one rank's instant to another's: below the clocks' error nothing more is known of it."""
    if value_s is not None and value_s < error_s:
        return replace(duration_cell(error_s), bound="< ")
    return duration_cell(value_s)


def _lateness_note(found: TraceSummary) -> str:
    late = found.lateness
    if late is None:
        return "How late completions were seen is not known: no message that ends for all at once has two ends."
    return (
        f"A completion is seen late: by {duration_text(late.median_s)} in the median, {duration_text(late.p99_s)} at "
        f"the 99th percentile (against the earliest rank, {count_text(late.messages)} completions). "
        "A transfer ends when the earliest rank saw it."
    )


def matrix_table(found: TraceSummary, *, servers_from: int) -> Table:
    """The square of ranks: from the row to the column, bytes with the time in which they were under way."""
    who = sorted({rank for cell in found.matrix for rank in (cell.source, cell.target)})
    names = {rank: f"rank {rank}" if rank < servers_from else f"server {rank}" for rank in who}
    return _square(
        found.matrix, names, "Payload from rank (row) to rank (column), and the time in which it was under way"
    )


def host_table(found: TraceSummary) -> Table:
    """Payload and time between hosts, summed over their ranks."""
    shown = {place: printable(name) for place, name in enumerate(found.host_names)}
    return _square(
        found.host_matrix, shown, "The same from host (row) to host (column), the times of all pairs of ranks added up"
    )


def _square(cells: Sequence[Exchange], names: Mapping[int, str], caption: str) -> Table:
    found = {(cell.source, cell.target): cell for cell in cells}
    rows = []
    for source in names:
        pairs = (found.get((source, target)) for target in names)
        rows.append((Cell(names[source]), *(Cell(None) if cell is None else _exchange(cell) for cell in pairs)))
    return Table(
        caption=caption,
        columns=("from \\ to", *names.values()),
        rows=tuple(rows),
        footnotes=_estimated_note(cells),
        words=("from \\ to",),
    )


def pairs_table(found: TraceSummary, top: int) -> Table:
    """The pairs of ranks between which most went."""
    cells = sorted(found.matrix, key=lambda cell: (-cell.payload_bytes, cell.source, cell.target))
    shown = f"The first {min(top, len(cells))} of {len(cells)} pairs"
    note = f"{shown}; --matrix shows the square of all ranks, --json every pair."
    return Table(
        caption="Pairs of ranks between which most went, and the time in which it was under way",
        columns=("from", "to", "payload", "time", "messages"),
        rows=tuple(
            (
                Cell(cell.source),
                Cell(cell.target),
                _payload(cell),
                duration_cell(cell.seconds),
                count_cell(cell.messages),
            )
            for cell in cells[:top]
        ),
        footnotes=(note, *_estimated_note(cells)),
        keys=2,
    )


def _exchange(cell: Exchange) -> Cell:
    return replace(_payload(cell), note=f"({duration_text(cell.seconds)})")


def _payload(cell: Exchange) -> Cell:
    return replace(bytes_cell(cell.payload_bytes), bound=ESTIMATED if cell.estimated else "")


def _estimated_note(cells: Sequence[Exchange]) -> tuple[str, ...]:
    if not any(cell.estimated for cell in cells):
        return ()
    return (f"{ESTIMATED} estimated: collectives are divided as a ring would; what the backend does is not seen.",)


def arrivals_table(found: TraceSummary, top: int, more: str = MORE) -> Table:
    """Stragglers of the collectives in the timed steps, those that caused the longest waits first."""
    ordered = sorted(found.arrivals, key=lambda each: (-each.caused_wait_s, each.rank))
    rest = f"The first {top} of {len(ordered)} ranks; {more}." if len(ordered) > top else ""
    return Table(
        caption="Stragglers: ranks that arrived last at collectives of the timed steps, and made the others wait",
        columns=("rank", "last", "late by", "others waited", "what it did longer than the others"),
        rows=tuple(
            (
                Cell(each.rank),
                Cell(f"{count_text(each.last)} of {count_text(each.of)}"),
                duration_cell(each.late_s),
                duration_cell(each.caused_wait_s),
                Cell(lateness_causes_text(each) or None),
            )
            for each in ordered[:top]
        ),
        footnotes=(rest,) if rest else (),
        words=("what it did longer than the others",),
    )


def lateness_causes_text(each: Arrivals) -> str:
    """`forward 80 %, input-wait 20 %`: the kinds that make up most of a rank's lateness."""
    kinds = sorted(each.doing.items(), key=lambda item: -item[1])
    return ", ".join(f"{kind} {percent_text(share, 0)}" for kind, share in kinds[:3] if share >= 0.005)


def path_table(found: TraceSummary, top: int, more: str = MORE) -> Table:
    """What the critical path is made of."""
    rest = f"The first {top} of {len(found.path)} parts; {more}." if len(found.path) > top else ""
    return Table(
        caption="The critical path of the timed steps: a second less of it is a second less for all ranks",
        columns=("rank", "kind", "of the path"),
        rows=tuple((Cell(part.rank), Cell(part.kind), fraction_cell(part.share)) for part in found.path[:top]),
        footnotes=(rest,) if rest else (),
        keys=2,
        words=("kind",),
    )
