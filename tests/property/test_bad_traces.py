"""Traces as crashes, bad disks and bad clocks leave them: analysed as far as they go, and what is missing is said.

Nothing but FolderError and StorageError may be raised, whatever the bytes; every ledger sums to the window.
"""

from __future__ import annotations

import functools
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.analyze.run.run_summary import run_analysis, trace_summary
from paceline.analyze.run.slow_causes import slow_causes
from paceline.errors import FolderError, StorageError
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS, RankTrace
from paceline.records.trace_rows import without
from paceline.records.trace_summary import RunTrace, TraceSummary
from paceline.storage.folder import RunFolder
from paceline.storage.run_trace import read_run
from paceline.storage.span_stream import read_spans
from samples.trace_samples import run_of

REAL = RunFolder(Path(__file__).parents[1] / "data" / "two-ranks")
"""A real run of two ranks and four steps, with ddp."""
COLLECTIVE, STEP = SPAN_KINDS.index("collective"), SPAN_KINDS.index("step")
same_folder = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def analysed(run: RunTrace) -> TraceSummary:
    """All that is made of a run; its ledgers have to sum."""
    found = run_analysis(run)
    named = slow_causes(run, found)
    assert [each.lost_s for each in named] == sorted((each.lost_s for each in named), reverse=True)
    window_s = (run.ended_at_ns - run.started_at_ns) / 1e9
    for ledger in found.summary.ledgers_s:
        assert tuple(ledger) == LEDGER_KINDS
        known = [value for value in ledger.values() if value is not None]
        assert min(known) >= 0 and sum(known) == pytest.approx(window_s, rel=1e-9)
    return found.summary


@functools.cache
def real() -> RunTrace:
    return read_run(REAL)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A copy of the real run, to be damaged."""
    shutil.copytree(REAL.path, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def as_far_as_it_goes(folder: RunFolder) -> TraceSummary | None:
    """What is made of a folder; None where there is nothing to read in it, and that is said."""
    try:
        run = read_run(folder)
    except (FolderError, StorageError) as error:
        assert str(error)
        return None
    return analysed(run)


def test_the_real_run_is_whole() -> None:
    found = analysed(real())
    assert (found.ranks, found.steps, found.problems) == (2, 4, ())
    assert found.messages and found.arrivals and found.path and found.efficiencies and found.lateness


def test_cut_at_every_byte_what_was_flushed_before_is_analysed(folder: RunFolder) -> None:
    path = folder.rank_spans(1)
    size = path.stat().st_size
    whole = len(read_spans(path, 1))
    seen: set[tuple[int, bool]] = set()
    for length in reversed(range(size)):
        os.truncate(path, length)
        try:
            cut = read_spans(path, 1)
            rows, said = len(cut), cut.truncated
        except StorageError:
            rows, said = -1, True
        assert said, f"cut after {length} bytes of {size}"
        if (rows, said) not in seen:  # the same rows again need no second look
            seen.add((rows, said))
            run = read_run(folder)
            assert any("rank 1" in problem or "rank-0001" in problem for problem in run.problems)
            analysed(run)
    assert {rows for rows, _ in seen} >= {-1, 0, whole} and len(seen) >= 4, "nothing was read of a part"


@same_folder
@given(st.integers(0, 1), st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 7)), min_size=1, max_size=6))
def test_flipped_bits_are_refused_or_analysed(folder: RunFolder, rank: int, flips: list[tuple[int, int]]) -> None:
    original = REAL.rank_spans(rank).read_bytes()
    data = bytearray(original)
    for place, bit in flips:
        data[place % len(data)] ^= 1 << bit
    path = folder.rank_spans(rank)
    path.write_bytes(bytes(data))
    try:
        as_far_as_it_goes(folder)
    finally:
        path.write_bytes(original)


@same_folder
@given(st.integers(0, 1), st.binary(max_size=400), st.integers(0, 10**9))
def test_foreign_bytes_anywhere_are_refused_or_analysed(folder: RunFolder, rank: int, junk: bytes, place: int) -> None:
    original = REAL.rank_spans(rank).read_bytes()
    at = place % (len(original) + 1)
    path = folder.rank_spans(rank)
    path.write_bytes(original[:at] + junk + original[at + len(junk) :])
    try:
        as_far_as_it_goes(folder)
    finally:
        path.write_bytes(original)


def test_without_any_spans_the_folder_is_refused(folder: RunFolder) -> None:
    shutil.rmtree(folder.spans)
    with pytest.raises(FolderError):
        read_run(folder)


@pytest.mark.parametrize("name", ["rank-.arrows", "rank-x.arrows", "rank-0001-old.arrows"])
def test_a_file_that_does_not_say_whose_it_is_is_named(folder: RunFolder, name: str) -> None:
    shutil.copy(folder.rank_spans(1), folder.spans / name)
    run = read_run(folder)
    assert len(run.traces) == 2 and any(name in problem for problem in run.problems)
    analysed(run)


def test_a_missing_rank_is_said_and_the_other_analysed(folder: RunFolder) -> None:
    folder.rank_spans(0).unlink()
    run = read_run(folder)
    assert run.ranks == 2 and any("rank 0" in problem for problem in run.problems)
    found = analysed(run)
    assert len(found.ledgers_s) == 1 and found.ledgers_s[0]["comm-wait"] is None
    assert found.efficiencies is None and found.path == ()


def test_a_record_that_is_damaged_is_passed_over(folder: RunFolder) -> None:
    for path in (folder.manifest, folder.machine, folder.result):
        path.write_text('{"schema": "pac')
    assert as_far_as_it_goes(folder) is not None


@st.composite
def damaged(draw: st.DrawFn) -> list[RankTrace]:
    """The real traces with some of their rows lost, repeated, without end, ended before they began, or moved."""
    traces = []
    for trace in real().traces:
        rows = len(trace)

        def some(rows: int = rows) -> np.ndarray:
            chosen = draw(st.lists(st.integers(0, rows - 1), max_size=8))
            return np.isin(np.arange(rows), chosen)

        ends = np.where(some(), -1, trace.end_ns)
        backwards = some() & (ends >= 0)
        ends = np.where(backwards, trace.start_ns - draw(st.integers(1, 10**9)), ends)
        jump = draw(st.integers(-(10**10), 10**10))
        after = np.arange(rows) >= draw(st.integers(0, rows))
        starts = trace.start_ns + jump * after
        ends = np.where(ends >= 0, ends + jump * after, ends)
        steps = np.where(some(), draw(st.integers(-1, 10)), trace.step)
        sequences = np.where(some() & (trace.sequence >= 0), draw(st.integers(0, 3)), trace.sequence)
        changed = replace(trace, start_ns=starts, end_ns=ends, step=steps, sequence=sequences)
        traces.append(without(changed, some()))
    return traces


@settings(max_examples=200)
@given(damaged(), st.integers(2, 4))
def test_lost_repeated_unfinished_and_backward_spans_are_analysed(traces: list[RankTrace], ranks: int) -> None:
    starts = np.concatenate([trace.start_ns for trace in traces])
    ends = np.concatenate([np.maximum(trace.end_ns, trace.start_ns) for trace in traces])
    if len(starts):
        analysed(run_of(traces, ranks, (int(starts.min()), int(ends.max()))))


def test_messages_told_twice_are_counted_once_where_they_are_the_same(folder: RunFolder) -> None:
    """A collective whose number one rank shows twice is still a collective of both."""
    run = read_run(folder)
    trace = run.traces[0]
    twice = np.flatnonzero(trace.kind == COLLECTIVE)[:3]
    sequence = trace.sequence.copy()
    sequence[twice] = sequence[twice[0]]
    found = analysed(replace(run, traces=(replace(trace, sequence=sequence), run.traces[1])))
    assert found.messages


def test_a_window_of_no_length_has_empty_ledgers() -> None:
    run = real()
    found = trace_summary(replace(run, ended_at_ns=run.started_at_ns))
    assert all(sum(value or 0 for value in ledger.values()) == 0 for ledger in found.ledgers_s)
