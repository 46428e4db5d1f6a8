"""What the timed steps of a run cost: over its epochs, step by step, and where spans are missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paceline.analyze.compare.spent import (
    QUEUED,
    UNDIVIDED,
    _alike_steps,
    _num_blocks,
    _step_costs_ns,
    costs_without_spans,
    median_index,
    run_costs,
)
from paceline.analyze.run.run_summary import run_analysis
from paceline.analyze.stats.two_samples import rank_test
from paceline.records.rank_trace import LEDGER_KINDS
from samples.trace_samples import Row, run_of, trace_of

US = 1000
FORWARD, WAIT, TRANSFER = 10, 20, 10


def rows(steps: int, forward: int, *, arrival: int = 30, between: int = 5) -> list[Row]:
    """Steps of 40 µs, `between` them nothing: forward, then an all-reduce that the last rank issues at `arrival`."""
    found = [Row("group", 0, 0, -1, "0 1", group="0")]
    for number in range(steps):
        at = number * (40 + between)
        found += [
            Row("step", at * US, (at + 40) * US, number),
            Row("forward", at * US, (at + forward) * US, number),
            Row("communicate", (at + forward) * US, (at + 40) * US, number),
            Row("collective", (at + forward) * US, (at + 40) * US, number, "allreduce_", 4000, number, "0"),
        ]
    return found


def two_ranks(steps: int = 12):
    traces = [trace_of(rows(steps, forward), rank) for rank, forward in enumerate((10, 30))]
    return run_of(traces, 2, (0, steps * 45 * US))


def epochs_of(epoch, steps: int, per_step_us: float = 45.0):
    """Two epochs of half the steps each, 32 samples a step."""
    half = steps // 2
    one = replace(epoch(1, half * per_step_us * 1e-6, samples=32 * half), step=half)
    return one, replace(one, epoch=2, step=steps)


def test_a_run_costs_what_its_timed_epochs_took(point, run, epoch) -> None:
    result = run(point(2), epochs=epochs_of(epoch, 12), test_accuracy=0.5)
    found = run_costs(two_ranks(), result)
    (cost,) = found.costs
    # From the start of the seventh step to the end of the twelfth: what lies between steps is in it.
    assert (cost.steps, cost.samples, cost.total_s) == (6, 192, pytest.approx((6 * 45 - 5) * 1e-6))
    expected = {"forward": 6 * 20e-6, "comm-wait": 6 * 10e-6, "comm-transfer": 6 * 10e-6, "other": 5 * 5e-6}
    assert {kind: value for kind, value in (cost.ledger_s or {}).items() if value} == pytest.approx(expected)
    assert sum((cost.ledger_s or {}).values()) == pytest.approx(cost.total_s)
    assert (found.accuracy, found.gap, found.steps, found.block_steps) == (0.5, None, 12, None)
    assert found.messages[0].payload_bytes == 4000
    assert found.efficiencies is not None


def test_without_a_result_the_timed_steps_are_those_after_the_first() -> None:
    (cost,) = run_costs(two_ranks(), None).costs
    assert (cost.steps, cost.samples) == (11, None)
    assert cost.total_s == pytest.approx((11 * 45 - 5) * 1e-6)


def test_steps_are_their_spans_and_what_lies_between_them_is_left_out(point, run, epoch) -> None:
    run_trace = two_ranks(32)
    costs_ns = _step_costs_ns(run_trace.traces, run_analysis(run_trace).lines)
    assert costs_ns.shape == (31, len(LEDGER_KINDS))
    for row in costs_ns:
        own = dict(zip(LEDGER_KINDS, row.tolist(), strict=True))
        assert {kind: ns for kind, ns in own.items() if ns} == {
            "forward": 40 * US,
            "comm-wait": 20 * US,
            "comm-transfer": 20 * US,
        }
    found = run_costs(run_trace, run(point(2), epochs=epochs_of(epoch, 32)), by_step=True)
    assert found.block_steps == 5 and len(found.costs) == 6
    for cost in found.costs:
        assert (cost.steps, cost.samples, cost.total_s) == (5, 160, pytest.approx(5 * 40e-6))
        assert sum((cost.ledger_s or {}).values()) == pytest.approx(cost.total_s)


def test_ranks_that_are_missing_leave_the_result_alone(point, run) -> None:
    alone = replace(two_ranks(), traces=two_ranks().traces[:1])
    result = run(point(2), epoch_s=4.0)
    found = run_costs(alone, result)
    assert found == replace(costs_without_spans(result, found.gap or ""))
    assert found.gap == "run has the spans of 1 of its 2 ranks."
    (cost,) = found.costs
    assert (cost.total_s, cost.samples, cost.ledger_s) == (pytest.approx(4.0), 12_000, None)
    assert run_costs(alone, None).costs == ()


def test_communication_that_cannot_be_divided_is_in_other() -> None:
    """Rank 1 never shows its side of the messages."""
    whole = two_ranks()
    silent = trace_of([row for row in rows(12, 30) if row.kind != "collective"], 1)
    found = run_costs(replace(whole, traces=(whole.traces[0], silent)), None)
    (cost,) = found.costs
    assert found.gap == UNDIVIDED
    assert cost.ledger_s is not None and "comm-wait" not in cost.ledger_s
    assert cost.ledger_s["other"] == pytest.approx((11 * 20 + 10 * 5) * 1e-6)
    assert sum(cost.ledger_s.values()) == pytest.approx(cost.total_s)


def test_on_a_gpu_only_the_synchronised_epochs_count(point, run, epoch) -> None:
    on_gpu = replace(two_ranks(), device="cuda")
    result = run(point(2), epochs=epochs_of(epoch, 12))
    found = run_costs(on_gpu, result)
    assert (found.gap, found.costs[0].ledger_s) == (QUEUED, None)
    assert found.costs[0].total_s == pytest.approx(6 * 45e-6)


def test_a_run_without_steps_has_no_cost() -> None:
    nothing = run_of([trace_of([Row("startup", 0, 100)])], 1, (0, 200))
    assert run_costs(nothing, None).costs == ()
    assert run_costs(nothing, None, by_step=True).costs == ()


def test_blocks_are_long_where_steps_are_alike() -> None:
    noise = np.random.default_rng(1).standard_normal(20_000)
    apart, alike = 1e6 + 1e4 * noise, 1e6 + 1e4 * np.convolve(noise, np.ones(20) / 20, mode="same")
    assert 1 <= _alike_steps(apart) < 1.2
    assert 15 < _alike_steps(alike) < 25  # a mean of 20 in a row
    assert (_num_blocks(apart), _num_blocks(alike)) == (20, 20)
    assert 5 <= _num_blocks(alike[:1000]) <= 17
    assert _num_blocks(np.arange(200.0)) == 1, "of steps that get slower and slower there are no independent ones"
    assert _num_blocks(np.full(100, 7.0)) == 20
    assert [_num_blocks(apart[:n]) for n in (1, 9, 19, 20)] == [1, 1, 1, 4]


def test_two_runs_of_the_same_kind_are_seldom_called_different() -> None:
    """200 steps whose noise lasts: by the steps themselves half of such pairs would be called different."""
    generator = np.random.default_rng(3)

    def blocks() -> list[float]:
        noise = generator.standard_normal(400)
        lasting = np.convolve(noise, 0.8 ** np.arange(100))[100:300]
        totals = 1e6 * np.exp(0.05 * lasting)
        number = _num_blocks(totals)
        length = len(totals) // number
        return totals[len(totals) - number * length :].reshape(number, length).mean(axis=1).tolist()

    called = sum(rank_test(blocks(), blocks()) <= 0.05 for _ in range(100))
    assert called <= 14  # 5 are expected; 15 or more would come up once in 7,000 times


def test_the_middle_run_is_the_lower_median(point, run) -> None:
    runs = [run(point(), number, epoch_s=seconds) for number, seconds in enumerate((3.0, 9.0, 5.0, 4.0), start=1)]
    assert runs[median_index(runs)].epochs[1].epoch_s == 5.0
    assert median_index(runs[:1]) == 0
