"""read_run: a run folder as far as it is there; what is missing or damaged is said, and never raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from light_ranks.light_launch import manifest as light_manifest
from light_ranks.light_launch import point
from paceline.analyze.run.run_summary import trace_summary
from paceline.errors import FolderError
from paceline.records.allocation import Clock
from paceline.records.run import Machine, Manifest, RankReport, RankStart
from paceline.records.script_outcome import ScriptOutcome
from paceline.records.trace_summary import RunTrace
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder
from paceline.storage.run_trace import read_run
from paceline.storage.span_stream import SpanWriter
from samples.export_samples import STARTED_AT, US, rank_rows, span_row, write_rank, write_run
from samples.finished_study import report
from samples.trace_samples import Row


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Two ranks that left nothing but their spans."""
    return RunFolder(write_run(tmp_path / "run"))


def a_manifest(ranks: int = 2, **changes: Any) -> Manifest:
    manifest = replace(light_manifest(point(ranks)), launched_at_ns=STARTED_AT - 7 * US)
    return replace(manifest, **changes)


def a_machine(*clocks: Clock, at_end: tuple[Clock, ...] = ()) -> Machine:
    return Machine(
        hosts=("a",),
        cpu="",
        cores=2,
        logical_cores=2,
        memory_bytes=1,
        gpus=(),
        platform="",
        affinity=(),
        threads=(1, 1),
        devices=("cpu",),
        backend="gloo",
        versions={},
        clocks=clocks,
        clocks_at_end=at_end,
    )


def a_report(rank: int, host: str, **changes: Any) -> RankReport:
    return replace(report(rank, 2, a_manifest()), host=host, **changes)


def a_script(rank: int, host: str = "n1", **changes: Any) -> ScriptOutcome:
    said = ScriptOutcome(
        script="train.py",
        arguments=(),
        rank=rank,
        size=2,
        host=host,
        pid=1,
        exit_code=0,
        error=None,
        traceback=None,
        steps=4,
        samples=None,
        timed_steps=3,
        timed_samples=None,
        timed_from_ns=None,
        timed_to_ns=None,
        device="cpu",
        backend="gloo",
    )
    return replace(said, **changes)


def test_spans_alone_are_enough(folder: RunFolder) -> None:
    run = read_run(folder)
    assert (run.ranks, [trace.rank for trace in run.traces], run.hosts) == (2, [0, 1], ())
    assert run.started_at_ns == STARTED_AT + US
    assert run.ended_at_ns == STARTED_AT + 400 * US
    assert run.problems == ("The clocks of the ranks were not compared: they are taken to be one.",)
    assert trace_summary(run).steps == 4


def test_the_launch_begins_the_window_and_reports_name_the_hosts(folder: RunFolder) -> None:
    write_record(folder.manifest, a_manifest())
    for rank in range(2):
        write_record(folder.rank_report(rank), a_report(rank, "n1", clock_error_ns=30 + rank))
    run = read_run(folder)
    assert run.started_at_ns == STARTED_AT - 7 * US
    assert run.hosts == ("n1", "n1")
    assert run.clock_error_ns == 61
    assert run.problems == ()


def test_a_script_says_how_many_ranks_there_were_and_what_was_not_measured(folder: RunFolder) -> None:
    folder.rank_spans(1).unlink()
    write_record(folder.rank_script(0), a_script(0, notes=("No optimizer was found.",)))
    run = read_run(folder)
    assert (run.ranks, len(run.traces)) == (2, 1)
    assert run.problems == ("There are no spans of rank 1.", "No optimizer was found.")
    write_rank(folder.path, 1, rank_rows(1))
    write_record(folder.rank_script(1), a_script(1, "n2", device="cuda", notes=("No optimizer was found.",)))
    run = read_run(folder)
    assert run.hosts == ("n1", "n2")
    assert run.problems.count("No optimizer was found.") == 1
    assert any("not compared" in problem for problem in run.problems)


def test_wrappers_name_the_hosts_of_ranks_that_never_came_to_an_end(folder: RunFolder) -> None:
    for rank in range(2):
        write_record(folder.rank_start(rank), RankStart(rank=rank, host=f"n{rank}", pid=1))
    assert read_run(folder).hosts == ("n0", "n1")


def test_clocks_that_differ_are_put_on_one_line(folder: RunFolder) -> None:
    clocks = [Clock(rank=rank, offset_ns=1_000_000 * rank, error_ns=5, method="exchange") for rank in range(2)]
    write_record(folder.machine, a_machine(*clocks))
    before = [trace.start_ns for trace in read_run(RunFolder(write_run(folder.path.parent / "same"))).traces]
    run = read_run(folder)
    assert np.array_equal(run.traces[0].start_ns, before[0])
    assert np.array_equal(run.traces[1].start_ns, before[1] - 1_000_000)
    assert run.traces[1].end_ns[0] == STARTED_AT + 9 * US - 1_000_000
    assert set(run.traces[1].begun_ns) == {-1}  # what was not seen stays so
    assert run.problems == ()


def test_a_clock_that_drifts_is_followed(folder: RunFolder) -> None:
    begin = Clock(rank=1, offset_ns=0, error_ns=5, method="exchange", at_ns=STARTED_AT)
    end = replace(begin, offset_ns=400, at_ns=STARTED_AT + 400 * US)
    write_record(folder.machine, a_machine(replace(begin, rank=0), begin, at_end=(end,)))
    moved, (_, there) = STARTED_AT + 310 * US, read_run(folder).traces
    (forward,) = there.start_ns[(there.kind == 3) & (there.step == 3)]
    assert forward == moved - 310


def test_clocks_without_a_bound_are_said_to_be_so(folder: RunFolder) -> None:
    clocks = [Clock(rank=rank, offset_ns=9, error_ns=None, method="wall") for rank in range(2)]
    write_record(folder.machine, a_machine(*clocks))
    (problem,) = read_run(folder).problems
    assert problem.startswith("Nothing bounds how far the ranks' clocks are off")


def test_ranks_that_are_missing_are_named(folder: RunFolder) -> None:
    write_record(folder.manifest, a_manifest(ranks=12))
    assert "There are no spans of rank 2, 3, 4, 5, 6, 7, 8, 9 and 2 more." in read_run(folder).problems


def test_a_file_that_breaks_off_is_read_up_to_there(folder: RunFolder) -> None:
    writer = SpanWriter(folder.rank_spans(1))
    rows = [span_row(row) for row in rank_rows(1)]
    writer.write(rows[:10])
    whole = folder.rank_spans(1).stat().st_size
    writer.write(rows[10:])
    writer.close()
    data = folder.rank_spans(1).read_bytes()
    folder.rank_spans(1).write_bytes(data[: whole + 40])
    run = read_run(folder)
    assert (len(run.traces[1]), run.traces[1].truncated) == (10, True)
    assert any(problem.startswith("The spans of rank 1 break off") for problem in run.problems)


def test_no_spans_at_all_is_an_error_in_three_parts(tmp_path: Path) -> None:
    (tmp_path / "spans").mkdir()
    with pytest.raises(FolderError) as raised:
        read_run(RunFolder(tmp_path))
    assert raised.value.what and raised.value.right and raised.value.next


def damage_bytes(folder: RunFolder) -> None:
    folder.rank_spans(1).write_bytes(b"not Arrow at all")


def empty_file(folder: RunFolder) -> None:
    folder.rank_spans(1).write_bytes(b"")


def early_instant(folder: RunFolder) -> None:
    write_rank(folder.path, 1, [Row("forward", -5, 9)])


def late_instant(folder: RunFolder) -> None:
    write_rank(folder.path, 1, [Row("forward", 5, (1 << 63) - 1)])


def group_of_nobody(folder: RunFolder) -> None:
    write_rank(folder.path, 1, [Row("group", 5, 5, -1, "zero one", group="0")])


def large_message(folder: RunFolder) -> None:
    write_rank(folder.path, 1, [Row("collective", 5, 9, 0, "allreduce_", (1 << 63) - 1, 0, "0")])


def other_types(folder: RunFolder) -> None:
    schema = pa.schema([("kind", pa.string()), ("start_ns", pa.string())], metadata={"schema": "paceline.spans/2"})
    with pa.OSFile(str(folder.rank_spans(1)), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        stream.write_table(pa.table({"kind": ["forward"], "start_ns": ["soon"]}, schema=schema))


def not_text(folder: RunFolder) -> None:
    write_rank(folder.path, 1, [Row("collective", 5, 9, 0, "allreduce_", 1, 0, "0")])
    spans = pa.ipc.open_stream(folder.rank_spans(1).read_bytes()).read_all()
    words = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int16()), words)
    spans = spans.set_column(spans.column_names.index("operation"), spans.field("operation"), column)
    with pa.OSFile(str(folder.rank_spans(1)), "wb") as file, pa.ipc.new_stream(file, spans.schema) as stream:
        stream.write_table(spans)


@pytest.mark.parametrize(
    "damage",
    [damage_bytes, empty_file, early_instant, late_instant, group_of_nobody, large_message, other_types, not_text],
)
def test_one_damaged_file_leaves_the_others(damage: Callable[[RunFolder], None], folder: RunFolder) -> None:
    write_record(folder.manifest, a_manifest())
    damage(folder)
    run = read_run(folder)
    assert [trace.rank for trace in run.traces] == [0]
    assert any("rank-0001.arrows" in problem for problem in run.problems)
    assert "There are no spans of rank 1." in run.problems
    assert sum(s or 0.0 for s in trace_summary(run).ledgers_s[0].values()) == pytest.approx(trace_summary(run).wall_s)


@pytest.mark.parametrize(
    "name", ["rank-.arrows", "rank-x.arrows", "rank-1.arrows", "rank-99999999.arrows", "rank-²².arrows"]
)
def test_a_file_that_is_nobodys_is_left_out(name: str, folder: RunFolder) -> None:
    folder.rank_spans(1).rename(folder.spans / name)
    run = read_run(folder)
    assert ([trace.rank for trace in run.traces], run.ranks) == ([0], 1)
    assert f"{name} does not say whose it is." in run.problems


def changed(path: Path, **fields: Any) -> None:
    """Change some fields of a record as only somebody's hand would."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("manifest", {"launched_at_ns": -(10**30)}),
        ("manifest", {"launched_at_ns": 10**30}),
        ("manifest", {"point": 7}),
        ("manifest", {"schema": "another/9"}),
        ("machine", {"clocks": [{"rank": 1, "offset_ns": 10**30, "error_ns": 1, "method": "same", "at_ns": 0}]}),
        ("machine", {"clocks": [{"rank": 1, "offset_ns": 1, "error_ns": 10**30, "method": "same", "at_ns": 0}]}),
        ("machine", {"clocks": {"rank": 1}}),
    ],
)
def test_records_that_cannot_be_true_are_not_believed(file: str, fields: dict[str, Any], folder: RunFolder) -> None:
    write_record(folder.manifest, a_manifest())
    write_record(folder.machine, a_machine())
    changed(getattr(folder, file), **fields)
    run = read_run(folder)
    assert len(run.traces) == 2
    assert trace_summary(run).wall_s < 1


@pytest.mark.parametrize("ranks", [0, -3, 10**12])
def test_a_number_of_ranks_that_cannot_be_is_not_believed(ranks: int, folder: RunFolder) -> None:
    write_record(folder.manifest, a_manifest())
    asked = json.loads(folder.manifest.read_text())["point"]
    changed(folder.manifest, point={**asked, "ranks": ranks})
    run = read_run(folder)
    assert run.ranks == 2
    assert f"The run is said to have {ranks} ranks, which cannot be." in run.problems


def test_a_record_that_is_nested_without_end_is_said_to_be_unreadable(folder: RunFolder) -> None:
    folder.manifest.write_text("[" * 200_000)
    run = read_run(folder)
    assert isinstance(run, RunTrace)
    assert any(str(folder.manifest) in problem for problem in run.problems)
