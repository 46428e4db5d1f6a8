"""What `paceline trace` prints: every figure of an anatomy, and a sentence for each that is not there."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from paceline.analyze.run.efficiencies import explained
from paceline.analyze.run.run_summary import trace_summary
from paceline.records.counters import CpuTime, CpuTimes
from paceline.records.slow_cause import SlowCause
from paceline.records.trace_summary import Arrivals, Exchange, RunTrace, TraceSummary
from paceline.reporting.text.trace_text import render
from samples.export_samples import sample_run
from samples.trace_samples import Row, trace_of


def text_of(run: RunTrace, found: TraceSummary | None = None, **options) -> str:
    found = found or trace_summary(run)
    lost_to = explained(found.efficiencies) if found.efficiencies else {}
    return render(run, found, lost_to, **options)


def line_with(text: str, *words: str) -> list[str]:
    """The first line that has these words, as words."""
    return next(line.split() for line in text.splitlines() if all(word in line for word in words))


@pytest.fixture
def run() -> RunTrace:
    return sample_run()


def test_the_heading_says_which_run_it_is(run: RunTrace) -> None:
    first, second, third = text_of(run).splitlines()[:3]
    assert first == "Run by hand"
    assert second == "2 ranks on n1 and n2, 410 µs from launch to end, 4 steps on every rank"
    assert third == "Clocks: all ranks read one, as far as is known."
    off = text_of(replace(run, clock_error_ns=2000))
    assert "Clocks: two ranks' instants are off by 2.00 µs at most; what is shorter is not claimed." in off


def test_every_rank_has_its_ledger(run: RunTrace) -> None:
    found = trace_summary(run)
    text = text_of(run, found)
    assert line_with(text, "rank", "host", "startup", "forward")[:3] == ["rank", "host", "startup"]
    for rank, ledger in enumerate(found.ledgers_s):
        cells = line_with(text, f"   {rank}  n{rank + 1} ")
        shown = [f"{value:.8f}" for value in ledger.values() if value]
        assert cells[:2] == [str(rank), f"n{rank + 1}"]
        assert [cell for cell in cells[2:] if float(cell)] == shown
    assert "load " not in text.split("Efficiency")[0]  # nobody spent any time on it


def test_the_tree_has_definitions_and_shares_that_add_up(run: RunTrace) -> None:
    found = trace_summary(run)
    text = text_of(run, found)
    tree = found.efficiencies
    assert tree is not None
    assert line_with(text, "global", "wall time")[1:3] == [f"{tree.global_ * 100:.1f}", "%"]
    shares = explained(tree)
    for name, shown in (("load_balance", "load balance"), ("serialisation", "serialisation"), ("transfer", "transfer")):
        cells = line_with(text, f" {shown} ", "÷")
        value, share = f"{getattr(tree, name) * 100:.1f}", f"{shares[name] * 100:.0f}"
        at = cells.index(value)
        assert cells[at : at + 4] == [value, "%", share, "%"]
    assert "see its report" in text  # computation scaling needs a baseline


def test_messages_matrix_stragglers_and_path_are_shown(run: RunTrace) -> None:
    text = text_of(run)
    cells = line_with(text, "allreduce_", "4.0 kB")
    assert cells[:5] == ["allreduce_", "float32", "4.0", "kB", "4"]
    assert "A completion is seen late: by" in text
    assert "≈ estimated: collectives are divided as a ring would" in text
    assert line_with(text, "rank 0", "≈")[:3] == ["rank", "0", "–"]
    assert "from host (row) to host (column)" in text and line_with(text, "n1", "≈")
    assert "Rank 1 was last to 6 of 6 collectives (100 %), by 5.00 µs in the median; the others waited 30.0 µs" in text
    assert "critical path of the timed steps" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_no_more_rows_than_asked_for(run: RunTrace) -> None:
    text = text_of(run, top=1)
    assert "The first 1 of 4 kinds; --top N shows more." in text
    assert "send" not in text


def test_what_is_within_the_error_of_the_clocks_is_not_claimed(run: RunTrace) -> None:
    text = text_of(replace(run, clock_error_ns=6000), width=160)
    cells = line_with(text, "send", "64")
    assert "<" in cells and "6.00" in cells
    assert cells[-2:] == ["–", "–"]
    assert "No rank was later than the others by more than the clocks' error." in text


def test_many_ranks_have_a_summary_and_a_square_where_it_is_asked_for(run: RunTrace) -> None:
    cells = tuple(
        Exchange(source=r, target=(r + 1) % 12, payload_bytes=1000 + r, seconds=0.5, messages=3, estimated=True)
        for r in range(12)
    )
    found = replace(trace_summary(run), matrix=cells, ranks=11)
    text = text_of(run, found, top=3)
    assert "The first 3 of 12 pairs" in text and "rank 11" not in text
    assert line_with(text, "500 ms")[:2] == ["11", "0"]
    square = text_of(run, found, whole_matrix=True)
    assert "rank 10" in square and "server 11" in square


def test_one_rank_has_nobody_to_talk_to() -> None:
    rows = [Row("step", 0, 50, 0), Row("forward", 0, 40, 0), Row("step", 50, 99, 1), Row("forward", 60, 90, 1)]
    run = RunTrace(name="alone", ranks=1, started_at_ns=0, ended_at_ns=100, traces=(trace_of(rows),))
    text = text_of(run)
    assert "There are no messages: one rank has nobody to talk to, and nobody to wait for." in text
    assert "Clocks" not in text and "late" not in text


def test_what_is_missing_is_one_sentence_each(run: RunTrace) -> None:
    nothing = RunTrace(name="", ranks=2, started_at_ns=0, ended_at_ns=9, traces=(trace_of([]), trace_of([], 1)))
    text = " ".join(text_of(nothing).split())
    assert "The traces show no messages" in text and "no steps on every rank" in text
    assert "they are of the steps after the first, and the traces show 0 steps." in text
    missing = replace(run, traces=run.traces[:1], problems=("There are no spans of rank 1.",))
    lines = text_of(missing)
    assert "What is missing or damaged:\n  There are no spans of rank 1." in lines
    text = " ".join(lines.split())
    assert "they need the spans of all 2 ranks, and those of 1 are there." in text
    assert "Nobody can be called late" in text
    assert "not every rank shows the same messages" in text  # under the ledger
    assert text_of(replace(run, traces=())).count("No rank has a ledger") == 1


def test_names_from_files_cannot_move_the_cursor(run: RunTrace) -> None:
    hostile = "evil\x1b[2J\x07"
    rows = [Row("collective", 5, 9, 0, hostile, 8, 0, hostile, dtype=hostile)]
    bad = replace(run, name=hostile, hosts=(hostile, "b"), problems=(hostile,), traces=(*run.traces, trace_of(rows, 1)))
    found = replace(
        trace_summary(run), messages=trace_summary(replace(bad, traces=(trace_of(rows),), ranks=1)).messages
    )
    text = text_of(replace(bad, traces=run.traces), replace(found, problems=(hostile,)))
    assert "evil" in text and not {"\x1b", "\x07"} & set(text)


def test_late_ranks_are_told_with_what_they_did(run: RunTrace) -> None:
    arrivals = (
        Arrivals(rank=0, last=1, of=9, late_s=0.001, caused_wait_s=0.001, doing={}),
        Arrivals(rank=1, last=8, of=9, late_s=0.02, caused_wait_s=0.16, doing={"input-wait": 0.75, "forward": 0.25}),
    )
    text = text_of(run, replace(trace_summary(run), arrivals=arrivals))
    assert line_with(text, "8 of 9", "20.0 ms")[0] == "1"
    assert "while it was longer in input-wait 75 %, forward 25 %." in " ".join(text.split())


def test_causes_and_cpu_time_are_told(run: RunTrace) -> None:
    assert "CPU time and memory are not known: the run has no counters." in text_of(run)
    used = CpuTime(**{field.name: None for field in fields(CpuTime)} | {"process": 0, "real_s": 10.0, "user_s": 8.0})
    cpu = CpuTimes(whole=used, processes=(used,), energy=(), sentence="Real is 10 s.", problems=("It broke off.",))
    causes = [
        SlowCause(rank=1, kind="forward", lost_s=0.5, why="Rank 1 took longer."),
        SlowCause(rank=None, kind="comm-transfer", lost_s=0.2, why="The network is slow."),
    ]
    text = text_of(run, cpu=cpu, suspects=causes)
    assert (
        "  500 ms, rank 1, forward: Rank 1 took longer.\n  200 ms, all ranks, comm-transfer: The network is slow."
        in text
    )
    assert "8.00 s" in text and "\nReal is 10 s.\n" in text
    assert "What is missing or damaged:\n  It broke off." in text
    assert "The network" not in text_of(run, suspects=causes, top=1)


def test_a_wide_terminal_and_a_narrow_one_hold_the_same(run: RunTrace) -> None:
    narrow, wide = text_of(run, width=60), text_of(run, width=160)
    assert all(len(line) <= 60 for line in narrow.splitlines())
    assert {"allreduce_", "busbw"} <= set(narrow.split()) and {"allreduce_", "busbw"} <= set(wide.split())
