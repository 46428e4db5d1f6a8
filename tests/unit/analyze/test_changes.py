"""Changes between two sides: parts that sum to the whole, what is called real, what is said where nothing can be."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.compare.caveats import standing_caveats
from paceline.analyze.compare.side_changes import RUNS, STEPS, Pair, changes_of_sides, slower_than
from paceline.analyze.compare.spent import Cost, RunCosts
from paceline.records.changes import Compared, Difference
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.trace_summary import Efficiencies, MessageKind


def changes(pairs):
    (found,) = changes_of_sides([pairs])
    return found


def ledger(**kinds_s: float) -> dict[str, float]:
    return dict.fromkeys(LEDGER_KINDS, 0.0) | {kind.replace("_", "-"): value for kind, value in kinds_s.items()}


def cost(kinds_s: dict[str, float], *, steps: int = 10, samples: float | None = 640) -> Cost:
    return Cost(
        total_s=sum(kinds_s.values()) * steps,
        steps=steps,
        samples=samples,
        ledger_s={kind: value * steps for kind, value in kinds_s.items()},
    )


def runs(*ledgers_s: dict[str, float], **changed: object) -> tuple[RunCosts, ...]:
    """Runs whose every step took these seconds by kind."""
    return tuple(
        RunCosts(name=f"run {number}", costs=(cost(each),), steps=20, accuracy=0.9 + number / 1000, **changed)  # pyright: ignore[reportArgumentType]
        for number, each in enumerate(ledgers_s, start=1)
    )


def scattered(n: int, seed: int, **kinds_s: float) -> tuple[RunCosts, ...]:
    """Runs that differ by a per cent or so in every kind."""
    noise = random.Random(seed)
    return runs(*(ledger(**{k: v * noise.uniform(0.99, 1.01) for k, v in kinds_s.items()}) for _ in range(n)))


def pair(a: tuple[RunCosts, ...], b: tuple[RunCosts, ...], label: str = "2 ranks", over: str = RUNS) -> Pair:
    return Pair(label=label, a="a", b="b", over=over, a_runs=a, b_runs=b)


A = scattered(5, 1, forward=2.0, backward=4.0, comm_wait=1.0)
SLOWER = scattered(5, 2, forward=2.0, backward=4.0, comm_wait=2.0)


def test_a_change_is_real_and_named_by_its_kind() -> None:
    ((change,), notes) = changes([pair(A, SLOWER)])
    assert notes == ()
    assert change.time_s.real and change.time_s.p == pytest.approx(2 / 252)
    assert change.time_s.change.median == pytest.approx(8 / 7, rel=0.01)
    parts = {part.kind: part for part in change.parts}
    assert list(parts) == list(LEDGER_KINDS)
    assert parts["comm-wait"].share == pytest.approx(1 / 7, rel=0.05)
    waiting = parts["comm-wait"].change_s
    assert waiting is not None and waiting.low > 0.9 and waiting.coverage == pytest.approx(1 - 8 / 252)
    for kind in ("forward", "backward", "optimizer"):
        interval = parts[kind].change_s
        assert interval is not None and interval.low <= 0 <= interval.high
    assert slower_than([change], 0.10) == (change,)
    assert slower_than([change], 0.15) == ()
    ((back,), _) = changes([pair(SLOWER, A)])
    assert back.time_s.real and back.time_s.change.median < 1
    assert slower_than([back], 0.0) == ()


seconds_by_kind = st.lists(st.floats(0, 10), min_size=len(LEDGER_KINDS), max_size=len(LEDGER_KINDS)).filter(
    lambda values: sum(values) > 1e-3
)
side = st.lists(
    seconds_by_kind.map(lambda values: dict(zip(LEDGER_KINDS, values, strict=True))), min_size=1, max_size=7
)


@given(side, side, st.randoms(use_true_random=False))
def test_parts_sum_to_the_difference_of_the_medians_in_any_order_of_runs(a, b, shuffle) -> None:
    first, second = runs(*a), runs(*b)
    ((change,), _) = changes([pair(first, second)])
    times = change.time_s
    parts = [part for part in change.parts if part.change_s is not None]
    assert sum(part.change_s.median for part in parts if part.change_s) == pytest.approx(
        times.b.median - times.a.median, abs=1e-9
    )
    assert sum(part.a_s or 0.0 for part in parts) == pytest.approx(times.a.median)
    assert sum(part.b_s or 0.0 for part in parts) == pytest.approx(times.b.median)
    assert sum(part.share or 0.0 for part in parts) == pytest.approx(times.b.median / times.a.median - 1, abs=1e-9)
    for part in parts:
        assert part.change_s and part.change_s.low <= part.change_s.median <= part.change_s.high
    mixed = [shuffle.sample(own, len(own)) for own in (first, second)]
    ((again,), _) = changes([pair(tuple(mixed[0]), tuple(mixed[1]))])
    assert again.time_s == times and again.smallest_seen == change.smallest_seen


@given(side, st.integers(1, 4), st.randoms(use_true_random=False))
def test_nothing_differs_from_itself(own, points: int, shuffle) -> None:
    first = runs(*own)
    second = tuple(shuffle.sample(first, len(first)))
    found, _ = changes([pair(first, second, f"{n} ranks") for n in range(points)])
    for change in found:
        assert not change.time_s.real and change.time_s.p_adjusted == 1
        assert change.accuracy is not None and not change.accuracy.real
        assert not any(each.real for each in change.efficiencies.values())
        # Equal times may have different ledgers: which of those is the median is then a matter of order.
        totals = [sum(each.values()) for each in own]
        if len(set(totals)) == len(totals):
            assert all(part.change_s and part.change_s.median == pytest.approx(0, abs=1e-12) for part in change.parts)
    assert slower_than(found, 0.0) == ()


def test_of_many_points_more_is_asked() -> None:
    """Four runs a side give p = 0.029 at best: enough for one point, not for two."""
    few = pair(A[:4], SLOWER[:4])
    ((alone,), _) = changes([few])
    assert alone.time_s.real and alone.smallest_seen is not None
    (first, second), _ = changes([few, few])
    assert not first.time_s.real and not second.time_s.real
    assert first.time_s.p_adjusted == pytest.approx(2 * alone.time_s.p) and first.smallest_seen is None


def test_too_few_runs_are_said_to_be_too_few() -> None:
    ((change,), _) = changes([pair(A[:3], SLOWER[:3])])
    assert not change.time_s.real and change.smallest_seen is None
    assert change.notes == (
        "With 3 and 3 runs the test gives no p below 0.1: no difference can be called real, however large. "
        "Four of each are the fewest that can show one.",
    )


def test_the_unit_is_a_sample_where_steps_take_different_numbers_of_them() -> None:
    doubled = tuple(replace(run, costs=(replace(run.costs[0], samples=1280),)) for run in A)
    ((change,), _) = changes([pair(A, doubled)])
    assert change.unit == "sample" and change.notes == ()
    assert change.time_s.change.median == pytest.approx(0.5)
    assert change.time_s.a.median == pytest.approx(7 / 64, rel=0.01)
    assert sum(part.share or 0.0 for part in change.parts) == pytest.approx(-0.5)
    unknown = tuple(replace(run, costs=(replace(run.costs[0], samples=None),)) for run in A)
    ((guessed,), _) = changes([pair(A, unknown)])
    assert guessed.unit == "step" and "not known" in guessed.notes[0]


def test_what_one_side_cannot_divide_is_other_on_both() -> None:
    def merged(run: RunCosts) -> RunCosts:
        own = {kind: value for kind, value in (run.costs[0].ledger_s or {}).items() if not kind.startswith("comm-")}
        own["other"] += (run.costs[0].ledger_s or {})["comm-wait"]
        return replace(run, costs=(replace(run.costs[0], ledger_s=own),), gap="Not divided.")

    ((change,), _) = changes([pair(A, tuple(map(merged, SLOWER)))])
    parts = {part.kind: part for part in change.parts}
    assert parts["comm-wait"].a_s is None and parts["comm-transfer"].change_s is None
    assert parts["other"].share == pytest.approx(1 / 7, rel=0.05)
    assert sum(part.share or 0.0 for part in change.parts) == pytest.approx(change.time_s.change.median - 1)
    assert change.gap == "Not divided."


def test_without_spans_there_are_times_and_no_parts() -> None:
    bare = tuple(replace(run, costs=(replace(run.costs[0], ledger_s=None),), gap="No spans.") for run in A)
    ((change,), _) = changes([pair(bare, SLOWER)])
    assert change.time_s.real and change.parts == () and change.gap == "No spans."


def test_what_is_damaged_is_said_once_for_all_runs() -> None:
    broken = tuple(replace(run, problems=("Spans break off.",)) for run in A)
    ((change,), _) = changes([pair(broken, (*SLOWER[:4], replace(SLOWER[4], problems=("No spans of rank 1.",))))])
    assert change.notes == ("A: Spans break off. (In 5 runs.)", "B: No spans of rank 1.")


def test_a_side_without_times_is_named() -> None:
    nothing = (RunCosts(name="x", costs=(), gap="It shows no steps."),)
    found, notes = changes([pair(A, nothing), pair((), A, "4 ranks"), pair(A, A, "8 ranks")])
    assert [change.label for change in found] == ["8 ranks"]
    assert notes == (
        "2 ranks: B has no timed steps (It shows no steps).",
        "4 ranks: A has no timed steps (no finished run).",
    )


def message(size: int, per_second: float | None, count: int = 20) -> MessageKind:
    return MessageKind(
        operation="allreduce_",
        group="0",
        dtype="float32",
        payload_bytes=size,
        count=count,
        total_s=None,
        total_p99_s=None,
        wait_s=None,
        transfer_s=None,
        hidden_share=None,
        algorithm_bytes_per_s=per_second,
        bus_bytes_per_s=per_second,
    )


def test_messages_and_efficiencies_are_compared_row_by_row() -> None:
    def tree(transfer: float) -> Efficiencies:
        return Efficiencies(
            global_=transfer, computation_scaling=None, load_balance=1.0, serialisation=1.0, transfer=transfer
        )

    slow = tuple(
        replace(run, efficiencies=tree(0.8 + n / 1e3), messages=(message(4000, 5e7 + n), message(8, 1e3, 40)))
        for n, run in enumerate(A)
    )
    fast = tuple(
        replace(run, efficiencies=tree(0.9 + n / 1e3), messages=(message(4000, 1e8 + n), message(16, None)))
        for n, run in enumerate(A)
    )
    ((change,), _) = changes([pair(slow, fast)])
    large, middle, small = change.messages
    assert (large.payload_bytes, large.a_per_step, large.b_per_step) == (4000, 1.0, 1.0)
    assert large.bandwidth is not None and large.bandwidth.real
    assert large.bandwidth.change.median == pytest.approx(2.0)
    assert {row.payload_bytes: (row.a_per_step, row.b_per_step, row.bandwidth) for row in (middle, small)} == {
        16: (None, 1.0, None),
        8: (2.0, None, None),
    }
    assert [row.main for row in change.messages] == [True, False, False]
    crowd = tuple(message(8 + size, 1e3 + size) for size in range(9))
    ((beside,), _) = changes(
        [pair(*(tuple(replace(run, messages=(*run.messages, *crowd)) for run in runs) for runs in (slow, fast)))]
    )
    assert beside.messages[0].bandwidth == large.bandwidth, "small messages are not tested beside the large one"
    assert change.efficiencies["transfer"].real and change.efficiencies["global"].real
    assert change.efficiencies["transfer"].change.median == pytest.approx(0.1)
    assert not change.efficiencies["load_balance"].real


def test_caveats_that_hold_for_all() -> None:
    def compared(first: str | None, last: str | None, name: str = "a") -> Compared:
        return Compared(name=name, what="study", runs=5, first_at=first, last_at=last)

    (over_runs, over_steps), _ = changes([pair(A, SLOWER), pair(A, SLOWER, over=STEPS)])
    early = compared("2030-01-01T10:00:00+00:00", "2030-01-01T11:00:00+00:00")
    late = compared("2030-01-01T13:30:00+02:00", "2030-01-01T14:00:00+02:00", "b")
    meanwhile = compared("2030-01-01T12:30:00+02:00", "2030-01-01T14:00:00+02:00", "b")
    (turns,) = standing_caveats(early, late, [over_runs], [])
    assert turns.startswith("A and B did not take turns")
    assert standing_caveats(early, meanwhile, [over_runs], []) == ()
    assert standing_caveats(early, compared(None, None, "b"), [over_runs], []) == (turns,)
    assert "single run" in standing_caveats(early, meanwhile, [over_steps], [])[0]
    other = [Difference(section=section, name="x", a="1", b="2") for section in ("setting", "version", "commit")]
    (differ,) = standing_caveats(early, meanwhile, [over_runs], other)
    assert differ.startswith("A and B ran with different versions and commits of Paceline")
    assert standing_caveats(early, early, [over_runs], []) == ("A and B are the same folder.",)
