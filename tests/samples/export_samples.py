"""Two ranks by hand that do all that an export has to carry, and a way to put a run into a folder.

µs       0    10        30   40    50      60      70       90
rank 0   startup  forward    backward ●a ●b ~~~~ │ send ~  │ optimizer
rank 1   startup  forward        backward ●a ●b ~│ recv ~~ │ optimizer
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hypothesis import strategies as st

from paceline.records.rank_trace import SPAN_KINDS
from paceline.records.trace_summary import RunTrace
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import SpanRow, SpanWriter
from samples.trace_samples import Row, trace_of

US = 1000
STARTED_AT = 5_000_000
PERIOD = 100


def step_rows(rank: int, number: int) -> list[Row]:
    """One step: two overlapping all-reduces hidden behind backward in part, then a message from rank 0 to rank 1."""
    at = STARTED_AT + (10 + PERIOD * number) * US

    def span(kind: str, start: int, end: int, operation: str | None = None) -> Row:
        return Row(kind, at + start * US, at + end * US, number, operation)

    def sum_(start: int, end: int, size: int, sequence: int) -> Row:
        return Row(
            "collective", at + start * US, at + end * US, number, "allreduce_", size, sequence, "0", dtype="float32"
        )

    late = 5 * rank
    between = Row(
        "collective",
        at + (62 + late) * US,
        at + 70 * US,
        number,
        "send" if rank == 0 else "recv_",
        64,
        -1,
        "0",
        peer=1 - rank,
        dtype="int64",
    )
    return [
        span("step", 0, 90),
        span("forward", 0, 20),
        span("backward", 20, 60),
        sum_(35 + late, 55, 4000, 2 * number),
        sum_(40 + late, 60, 800, 2 * number + 1),
        span("communicate", 62, 70),
        between,
        span("optimizer", 70, 90),
    ]


def rank_rows(rank: int, steps: int = 4) -> list[Row]:
    """All rows of a rank."""
    rows = [
        Row("startup", STARTED_AT + US, STARTED_AT + 9 * US, -1, "imports"),
        Row("group", STARTED_AT + US, STARTED_AT + US, -1, "0 1", group="0"),
    ]
    return rows + [row for number in range(steps) for row in step_rows(rank, number)]


def sample_run(steps: int = 4, hosts: tuple[str, ...] = ("n1", "n2"), extra: Iterable[Row] = ()) -> RunTrace:
    """The run of both ranks; `extra` rows are rank 1's."""
    traces = [trace_of([*rank_rows(rank, steps), *(extra if rank else ())], rank) for rank in range(2)]
    ended_at = STARTED_AT + (10 + PERIOD * steps) * US
    return RunTrace(
        name="by hand", ranks=2, started_at_ns=STARTED_AT, ended_at_ns=ended_at, traces=tuple(traces), hosts=hosts
    )


def span_row(row: Row) -> SpanRow:
    """A row as the recorder keeps it."""
    kind = SPAN_KINDS.index(row.kind)
    message = (row.operation, row.bytes, row.sequence, row.group, row.peer, row.begun, row.dtype)
    return (kind, row.start, row.end, row.step, *message)


def write_rank(folder: Path, rank: int, rows: Iterable[Row]) -> Path:
    """The spans of one rank in a run folder; comes back with their file."""
    path = RunFolder(folder).rank_spans(rank)
    writer = SpanWriter(path)
    writer.write([span_row(row) for row in rows])
    writer.close()
    return path


def write_run(folder: Path, ranks: int = 2, steps: int = 4) -> Path:
    """A run folder that holds nothing but spans."""
    for rank in range(ranks):
        write_rank(folder, rank, rank_rows(rank, steps))
    return folder


def any_rows() -> st.SearchStrategy[list[Row]]:
    """Rows as a damaged file could have them: overlapping, without end, ending before they start, numbered twice."""
    row = st.builds(
        Row,
        kind=st.sampled_from([kind for kind in SPAN_KINDS if kind != "group"]),
        start=st.integers(0, 40),
        end=st.integers(-1, 40),
        operation=st.sampled_from(["allreduce_", "send", "recv_", "never_heard_of", None]),
        bytes=st.integers(-1, 9),
        sequence=st.integers(-1, 3),
        group=st.sampled_from(["0", "1", None]),
        peer=st.integers(-1, 3),
    )
    return st.lists(row, max_size=25)
