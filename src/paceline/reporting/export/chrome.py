"""A run as Trace Event JSON, which Perfetto, chrome://tracing and Speedscope open.

    process   a rank, named `rank 3 on n2`
    thread    `main`, then `messages`, `messages 2`, ...: as many as were under way at once
    X         a span, from ts for dur: microseconds since the start of the run, to the nanosecond
    s t f     arrows between the ranks' sides of a message, in the order of their arrival

A thread's spans nest, as the format demands. Lines are put together column by column, some ten thousand rows at a time:
a million spans take seconds, and little more memory than the spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute

from paceline.records.rank_trace import SPAN_KINDS, Words
from paceline.records.trace_summary import RunTrace
from paceline.records.track import FLOW_FIRST, FLOW_LAST, Track
from paceline.reporting.export.table_export import ROWS, text, track_table

pc: Any = pyarrow.compute  # its functions are made when it is imported: no checker sees them
_GROUP = SPAN_KINDS.index("group")
# What says more of a span, in the order in which it is shown.
_NUMBERS = ("step", "bytes", "sequence", "peer", "message")
_TEXTS = ("group", "dtype")


def write_chrome(run: RunTrace, tracks: Sequence[Track], file: BinaryIO) -> None:
    """Write the tracks of a run as one JSON object."""
    about = {
        "made_by": "Paceline",
        "run": run.name,
        "ranks": run.ranks,
        "device": run.device,
        "clock_error_us": run.clock_error_ns / 1000,
        "problems": list(run.problems),
        "groups": {name: list(ranks) for track in tracks for name, ranks in track.trace.groups.items()},
    }
    file.write(b'{"displayTimeUnit":"ms","otherData":' + _json(about).encode() + b',"traceEvents":[\n')
    names = [line for track in tracks for line in _names(track)]
    file.write(",\n".join(names).encode())
    for track in tracks:
        for part in _lines(track):
            file.write(b",\n")
            file.write(part)
    file.write(b"\n]}\n")


def _json(value: Any) -> str:
    """Text that is nothing but ASCII: half a character in a name becomes an escape, not an error."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _names(track: Track) -> list[str]:
    """The metadata events of a rank: what its process and threads are called, and their order."""
    rank = track.trace.rank
    # Numbers begin with 1: Perfetto takes process and thread 0 for the kernel's idle ones.
    process = {"ph": "M", "pid": rank + 1, "tid": 1}
    name = f"rank {rank}" + (f" on {track.host}" if track.host else "")
    events: list[dict[str, Any]] = [
        {**process, "name": "process_name", "args": {"name": name}},
        {**process, "name": "process_sort_index", "args": {"sort_index": rank}},
    ]
    lanes = int(track.lane.max()) if len(track.lane) else 0
    for lane in range(lanes + 1):
        thread = {**process, "tid": lane + 1}
        title = "main" if lane == 0 else f"messages {lane}" if lane > 1 else "messages"
        events.append({**thread, "name": "thread_name", "args": {"name": title}})
        events.append({**thread, "name": "thread_sort_index", "args": {"sort_index": lane}})
    return [_json(event) for event in events]


def _lines(track: Track) -> Iterator[bytes]:
    """The events of a rank as bytes, some rows at a time."""
    shown = track.trace.kind != _GROUP  # these take no time: who is in which group stands in otherData
    table = track_table(track)
    kinds = ("message" if kind == "collective" else kind for kind in SPAN_KINDS)
    for name, column in {
        "title": _quoted(track.trace.operation),
        "kind_json": _quoted(Words(track.trace.kind, tuple(kinds))),
        "group_json": _quoted(track.trace.group),
        "dtype_json": _quoted(track.trace.dtype),
        "lane": pa.array(track.lane + 1),
        "drawn_end_ns": pa.array(track.drawn_end_ns),
        "flow": pa.array(track.flow),
        "flow_at_ns": pa.array(track.flow_at_ns),
    }.items():
        table = table.append_column(name, column)
    table = table.filter(pa.array(shown))
    for start in range(0, len(table), ROWS):
        part = table.slice(start, ROWS).combine_chunks()
        yield _joined(_spans(part, track.trace.rank + 1))
        arrows = part.filter(pc.greater(part["flow"], 0))
        if len(arrows):
            yield _joined(_arrows(arrows, track.trace.rank + 1))


def _spans(part: pa.Table, process: int) -> pa.ChunkedArray:
    lasting = pc.subtract(part["drawn_end_ns"], part["start_ns"])
    # What is waited for and what moves, of a message that all its ranks show.
    wait = pc.subtract(part["gathered_ns"], part["start_ns"])
    transfer = pc.subtract(part["completed_ns"], part["gathered_ns"])
    unseen = pc.if_else(pc.is_null(part["end_ns"]), ',"end":"not seen"', "")
    about = [_field(f',"{name}":', part[name]) for name in _NUMBERS]
    about += [_field(f',"{name}":', part[f"{name}_json"]) for name in _TEXTS]
    about += [_field(',"wait_us":', _us(wait)), _field(',"transfer_us":', _us(transfer)), unseen]
    args = pc.utf8_slice_codeunits(_text(*about), 1)
    return _text(
        f'{{"ph":"X","pid":{process},"tid":',
        part["lane"],
        ',"ts":',
        _us(part["start_ns"]),
        ',"dur":',
        _us(lasting),
        ',"name":',
        pc.coalesce(part["title"], part["kind_json"], pa.scalar('"unknown"')),
        ',"cat":',
        pc.coalesce(part["kind_json"], pa.scalar('"unknown"')),
        ',"args":{',
        args,
        "}}",
    )


def _arrows(part: pa.Table, process: int) -> pa.ChunkedArray:
    phase = pc.if_else(
        pc.equal(part["flow"], FLOW_LAST),
        '"f","bp":"e"',  # it binds to the span around it, not to the next one
        pc.if_else(pc.equal(part["flow"], FLOW_FIRST), '"s"', '"t"'),
    )
    return _text(
        '{"ph":',
        phase,
        f',"pid":{process},"tid":',
        part["lane"],
        ',"ts":',
        _us(part["flow_at_ns"]),
        ',"id":',
        part["message"],
        ',"name":"message","cat":"message"}',
    )


def _quoted(words: Words) -> pa.Array:
    """A column of text as JSON has it; null where it has none."""
    return text(Words(words.codes, tuple(map(_json, words.words)))).cast(pa.string())


def _us(nanoseconds: Any) -> Any:
    """Microseconds, exact to the nanosecond for a run of up to three months."""
    return pc.divide(pc.cast(nanoseconds, pa.float64()), 1000.0)


def _field(name: str, values: Any) -> Any:
    """A field of an object where there is a value, and nothing where there is none."""
    return pc.coalesce(_text(name, values), pa.scalar(""))


def _text(*columns: Any) -> Any:
    """Columns and constants, one behind the other."""
    texts = [column if isinstance(column, str) else pc.cast(column, pa.string()) for column in columns]
    return pc.binary_join_element_wise(*texts, "")


def _joined(lines: Any) -> bytes:
    return ",\n".join(lines.to_pylist()).encode()
