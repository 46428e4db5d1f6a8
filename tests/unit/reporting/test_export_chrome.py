"""Trace Event JSON: valid, whole, with spans that nest on every thread and arrows that begin and end in one."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checks.export_checks import check_chrome
from paceline.analyze.views.tracks import tracks
from paceline.records.trace_summary import RunTrace
from paceline.reporting.export.chrome import write_chrome
from samples.export_samples import STARTED_AT, US, any_rows, sample_run
from samples.trace_samples import Row, trace_of


def exported(run: RunTrace) -> dict[str, Any]:
    file = io.BytesIO()
    write_chrome(run, tracks(run), file)
    return json.loads(file.getvalue())


def test_ranks_are_processes_and_every_span_is_there() -> None:
    trace = exported(sample_run())
    check_chrome(trace)
    events = trace["traceEvents"]
    named = {(e["pid"], e["tid"], e["name"]): e["args"] for e in events if e["ph"] == "M"}
    assert named[1, 1, "process_name"] == {"name": "rank 0 on n1"}
    assert named[2, 1, "process_name"] == {"name": "rank 1 on n2"}
    assert [named[2, tid, "thread_name"]["name"] for tid in (1, 2, 3)] == ["main", "messages", "messages 2"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == 2 * (1 + 4 * 8)  # all but the two that only say who is in a group
    assert trace["otherData"]["groups"] == {"0": [0, 1]}
    imports = next(event for event in spans if event["name"] == "imports")
    assert (imports["ts"], imports["dur"], imports["cat"], imports["args"]) == (1.0, 8.0, "startup", {})
    forward = [event for event in spans if event["name"] == "forward" and event["pid"] == 2]
    assert [(event["ts"], event["dur"], event["args"]["step"]) for event in forward] == [
        (10.0 + 100 * n, 20.0, n) for n in range(4)
    ]


def test_a_message_says_what_it_carried_and_how_long_it_waited() -> None:
    events = exported(sample_run(steps=1))["traceEvents"]
    message = next(event for event in events if event["name"] == "allreduce_" and event["pid"] == 1)
    assert message["cat"] == "message"
    assert message["args"] == {
        "step": 0,
        "bytes": 4000,
        "sequence": 0,
        "message": message["args"]["message"],
        "group": "0",
        "dtype": "float32",
        "wait_us": 5.0,
        "transfer_us": 15.0,
    }
    other_end = next(event for event in events if event["name"] == "allreduce_" and event["pid"] == 2)
    assert other_end["args"]["message"] == message["args"]["message"]
    assert other_end["args"]["wait_us"] == 0.0
    sent = next(event for event in events if event["name"] == "send")
    assert sent["args"]["peer"] == 1


def test_times_are_exact_to_the_nanosecond_after_a_day() -> None:
    start = 86_400_000_000_001
    run = RunTrace(
        name="", ranks=1, started_at_ns=0, ended_at_ns=start + 9, traces=(trace_of([Row("forward", start, start + 7)]),)
    )
    (span,) = (event for event in exported(run)["traceEvents"] if event["ph"] == "X")
    assert (round(span["ts"] * 1000), round(span["dur"] * 1000)) == (start, 7)


def test_names_cannot_break_out_of_the_file() -> None:
    hostile = 'a"}],\n\\ \x00 é'
    rows = [Row("startup", 0, 9, operation=hostile), Row("collective", 1, 2, 0, hostile, 8, 0, hostile, dtype=hostile)]
    run = RunTrace(
        name=hostile,
        ranks=1,
        started_at_ns=0,
        ended_at_ns=9,
        traces=(trace_of(rows),),
        hosts=(hostile,),
        problems=(hostile,),
    )
    trace = exported(run)
    check_chrome(trace)
    message = next(event for event in trace["traceEvents"] if event.get("cat") == "message")
    assert (message["name"], message["args"]["group"], message["args"]["dtype"]) == (hostile,) * 3
    assert trace["otherData"]["problems"] == [hostile]


def test_a_message_that_was_never_seen_to_end_says_so() -> None:
    unfinished = Row("collective", STARTED_AT + 380 * US, -1, 3, "allreduce_", 8, 99, "0")
    events = exported(sample_run(extra=[unfinished]))["traceEvents"]
    (message,) = (event for event in events if event.get("args", {}).get("sequence") == 99)
    assert (message["dur"], message["args"]["end"]) == (0.0, "not seen")
    assert "wait_us" not in message["args"]


def test_a_run_without_spans_is_a_valid_file() -> None:
    check_chrome(exported(RunTrace(name="", ranks=1, started_at_ns=0, ended_at_ns=0, traces=(trace_of([]),))))


@settings(max_examples=25)
@given(st.lists(any_rows(), min_size=1, max_size=3))
def test_whatever_the_traces_hold_the_file_is_valid(ranks: list[list[Row]]) -> None:
    traces = tuple(trace_of(rows, rank) for rank, rows in enumerate(ranks))
    run = RunTrace(name="", ranks=len(ranks), started_at_ns=0, ended_at_ns=40, traces=traces)
    trace = exported(run)
    check_chrome(trace)
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == sum(map(len, ranks))
