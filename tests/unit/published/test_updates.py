"""What an update takes: from the spans of every run, not of the median one alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.analyze.run.ledger import mean_ledger
from paceline.analyze.run.run_summary import trace_summary
from paceline.errors import StorageError
from paceline.published.beside import published_comparison
from paceline.published.matching.updates import asks_for_updates, run_update_s, update_intervals
from paceline.published.table_files import published_names, published_study
from paceline.records.run import RunResult
from paceline.records.trace_summary import RunTrace
from samples.published_samples import beside_of, usual
from samples.trace_samples import Row, allreduce, run_of, trace_of

STEPS = 2


def rows(transfer_ns: int, rank: int) -> list[Row]:
    """Two steps: rank 1 comes 10 ns later to an exchange that takes this long; then 5 ns of optimizer."""
    made: list[Row] = []
    for step in range(STEPS):
        begin = 150 * step
        issued, over = begin + 50 + 10 * rank, begin + 60 + transfer_ns
        made += [
            Row("step", begin, over + 5, step),
            Row("backward", begin, issued, step),
            Row("communicate", issued, over, step),
            allreduce(issued, step, over, step=step),
            Row("optimizer", over, over + 5, step),
        ]
    return made


def two_ranks(transfer_ns: int) -> RunTrace:
    return run_of([trace_of(rows(transfer_ns, rank), rank) for rank in (0, 1)], 2, (0, 400))


def test_exchange_and_optimizer_of_a_step() -> None:
    """Mean over ranks: wait 5, transfer 20, optimizer 5."""
    assert run_update_s(two_ranks(20)) == pytest.approx(30e-9)


def test_it_is_what_the_ledger_of_a_run_has_that_does_nothing_but_steps() -> None:
    run = two_ranks(40)
    ledger = mean_ledger(trace_summary(run).ledgers_s)
    parts = [ledger[kind] or 0.0 for kind in ("comm-wait", "comm-transfer", "optimizer")]
    assert run_update_s(run) == pytest.approx(sum(parts) / STEPS)


def test_what_ranks_say_to_each_other_between_steps_is_no_update() -> None:
    run = two_ranks(20)
    sums = [(Row("communicate", 350 + rank, 390), allreduce(350 + rank, STEPS, 390)) for rank in (0, 1)]
    tested = run_of([trace_of((*rows(20, rank), *sums[rank]), rank) for rank in (0, 1)], 2, (0, 400))
    ledgers = [mean_ledger(trace_summary(each).ledgers_s)["comm-transfer"] or 0.0 for each in (run, tested)]
    assert ledgers[1] > ledgers[0], "the ledger of the whole run has it"
    assert run_update_s(tested) == run_update_s(run)


def test_steps_that_were_seen_count_where_spans_break_off() -> None:
    first = run_of([trace_of(rows(20, rank)[:5], rank, truncated=True) for rank in (0, 1)], 2, (0, 400))
    assert run_update_s(first) == pytest.approx(30e-9)


def test_none_where_ranks_are_missing_or_no_step_was_taken() -> None:
    run = two_ranks(20)
    assert run_update_s(replace(run, traces=run.traces[:1])) is None
    assert run_update_s(run_of([trace_of([], rank) for rank in (0, 1)], 2, (0, 400))) is None


@pytest.fixture
def runs(point, run) -> list[RunResult]:
    return [run(point(2), number, steps=STEPS) for number in range(1, 6)]


def test_a_point_has_the_median_of_all_its_runs_and_their_interval(runs: list[RunResult]) -> None:
    found = update_intervals(runs, lambda run: two_ranks(10 * run.run))
    (interval,) = found.values()
    assert (interval.low, interval.median, interval.high) == pytest.approx((20e-9, 40e-9, 60e-9))
    assert interval.n == 5 and interval.coverage is not None


def test_runs_that_do_not_show_it_are_left_out(runs: list[RunResult]) -> None:
    def broken(run: RunResult) -> RunTrace:
        if run.run == 1:
            raise StorageError("The spans cannot be read.", right="", next="")
        return two_ranks(10)

    runs[1] = replace(runs[1], device="cuda")
    (interval,) = update_intervals(runs, broken).values()
    assert interval.n == 3
    assert update_intervals(runs[:2], broken) == {}


def test_one_published_study_asks_for_it() -> None:
    assert {name for name in published_names() if asks_for_updates(published_study(name), name)} == {"mnist-mpi"}


@pytest.mark.parametrize(("name", "asked"), [("mnist-mpi-exchange", True), ("large-batch", False)])
def test_studies_without_its_table_do_not(name: str, asked: bool) -> None:
    assert asks_for_updates(published_study("mnist-mpi"), name) is asked


def test_its_cell_has_the_interval_or_the_reason() -> None:
    results = usual("mnist-mpi")
    cells = [row.cells[1] for row in beside_of(results).tables[0].rows if row.cells[1].value is not None]
    assert cells and all(cell.column == "update_s" and cell.low and cell.high and cell.n == 5 for cell in cells)
    without = published_comparison(published_study("mnist-mpi"), results)
    assert "The spans of its runs do not show the exchange." in {row.cells[1].reason for row in without.tables[0].rows}
