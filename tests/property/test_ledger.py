"""The ledger against an oracle that looks at every instant of a small integer time line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.analyze.run.ledger import COMM_KINDS, ledger_ns, ledgers, mean_ledger, time_lines
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS, RankTrace
from samples.trace_samples import Row, trace_of

LAST = 40
CROWDED = 10
"""Last instant of lines of garbage: short, so that spans meet in every way, the same instant included."""
MAIN_KINDS = tuple(kind for kind in SPAN_KINDS if kind != "collective")
thorough = settings(max_examples=200, deadline=None)


@dataclass(frozen=True)
class S:
    """A span of the time line; of a collective, `sequence` and `group` too."""

    kind: str
    start: int
    end: int = -1
    sequence: int = -1
    group: str | None = None


def rank_trace(spans: list[S], rank: int = 0) -> RankTrace:
    def row(span: S) -> Row:
        sent = span.kind == "collective"
        operation = "allreduce_" if sent else None
        return Row(span.kind, span.start, span.end, 0, operation, -1, span.sequence, span.group)

    return trace_of(map(row, spans), rank)


def charged(run: list[list[S]], window: tuple[int, int], ranks: int | None = None) -> tuple[dict[str, int | None], ...]:
    traces = [rank_trace(spans, rank) for rank, spans in enumerate(run)]
    return tuple(ledger_ns(line) for line in time_lines(traces, window, ranks=ranks))


def oracle(run: list[list[S]], window: tuple[int, int], ranks: int) -> list[dict[str, int | None]]:
    """The rules of the ledger, instant by instant."""
    return [_rank_oracle(spans, run, window, ranks) for spans in run]


def _rank_oracle(spans: list[S], run: list[list[S]], window: tuple[int, int], ranks: int) -> dict[str, int | None]:
    main = [span for span in spans if span.kind != "collective"]
    main = [replace(span, end=_seen_end(span, main, window[1])) for span in main]
    sent = [span for span in spans if span.kind == "collective"]
    ledger: dict[str, int | None] = dict.fromkeys(LEDGER_KINDS, 0)
    unknown = ranks > 1 and not sent
    exposed_total = 0
    for t in range(*window):
        covering = [span for span in main if span.start <= t < span.end]
        owner = max(covering, key=_innermost) if covering else None
        exposed, waits = _communication(owner, t, sent, run, ranks) if ranks > 1 else (False, False)
        if exposed:
            exposed_total += 1
            unknown |= waits is None
            kind = "comm-wait" if waits else "comm-transfer"
        elif owner is None:
            kind = "startup" if main and t < min(span.start for span in main) else "other"
        else:
            kind = owner.kind if owner.kind in LEDGER_KINDS else "other"
        ledger[kind] = (ledger[kind] or 0) + 1
    if unknown:
        ledger |= dict.fromkeys(COMM_KINDS) | {"other": (ledger["other"] or 0) + exposed_total}
    return ledger


def _innermost(span: S) -> tuple[int, int, int]:
    return (span.start, -span.end, SPAN_KINDS.index(span.kind))


def _seen_end(span: S, main: list[S], window_end: int) -> int:
    if span.end != -1:
        return max(span.start, span.end)
    around = [other for other in main if other.end != -1 and other.start <= span.start < other.end]
    return max(span.start, max(around, key=_innermost).end if around else window_end)


def _communication(owner: S | None, t: int, sent: list[S], run: list[list[S]], ranks: int) -> tuple[bool, bool | None]:
    """Whether instant `t` is exposed communication, and whether another rank is waited for (None: unknown)."""
    if owner is None or owner.kind not in ("communicate", "backward"):
        return False, False
    if owner.kind == "backward":
        inside = [span.start for span in sent if owner.start <= span.start < owner.end]
        if not inside or t < max(inside):
            return False, False
        told = [LAST if span.end == -1 else span.end for span in sent if span.start < owner.end]
        if t >= max(*told, max(inside)):
            return False, False
    before = [span for span in sent if span.start <= t]
    if not before:
        return True, False
    latest = max(span.start for span in before)
    gathered = [_gathered(span, run, ranks) for span in before if span.start == latest]
    if any(at is None for at in gathered):
        return True, None
    return True, t < max(at for at in gathered if at is not None)


def _gathered(message: S, run: list[list[S]], ranks: int) -> int | None:
    if message.sequence < 0:
        return None
    same = [[s for s in spans if _key(s) == _key(message)] for spans in run]
    if sum(bool(found) for found in same) < ranks:
        return None
    return max(span.start for found in same for span in found)


def _key(span: S) -> tuple[str, int, str | None]:
    return (span.kind, span.sequence, span.group)


instants = st.integers(0, CROWDED)
garbage_spans = st.builds(
    S, kind=st.sampled_from(MAIN_KINDS), start=instants, end=st.one_of(instants, instants, st.just(-1))
)
garbage_messages = st.builds(
    S,
    kind=st.just("collective"),
    start=instants,
    end=st.one_of(st.just(-1), instants),
    sequence=st.integers(-1, 1),
    group=st.sampled_from(["world", "world", None]),
)
garbage_ranks = st.lists(st.one_of(garbage_spans, garbage_spans, garbage_messages), max_size=12)
windows = st.tuples(instants, instants).map(lambda pair: (min(pair), max(pair)))


@st.composite
def nested_spans(draw: st.DrawFn, low: int = 0, high: int = LAST, depth: int = 3) -> list[S]:
    """Spans as context managers leave them: one inside the other or one after the other."""
    spans: list[S] = []
    at = low
    while depth and at < high and draw(st.booleans()):
        start = draw(st.integers(at, high - 1))
        end = draw(st.integers(start + 1, high))
        spans += [S(draw(st.sampled_from(MAIN_KINDS)), start, end)]
        # An inner span begins after its outer one: two calls of a clock in one thread.
        spans += draw(nested_spans(start + 1, end, depth - 1))
        at = end
    return spans


@st.composite
def training_runs(draw: st.DrawFn) -> list[list[S]]:
    """Ranks that take the same steps at their own pace: backward sends buckets, `communicate` one more."""
    ranks, steps, buckets = draw(st.integers(2, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    run: list[list[S]] = []
    for _ in range(ranks):
        spans, at, sequence = [], draw(st.integers(1, 4)), 0
        for _ in range(steps):
            begin = at
            for _ in range(buckets):
                at += draw(st.integers(1, 3))
                spans.append(S("collective", at, sequence=sequence, group="world"))
                sequence += 1
            at += draw(st.integers(1, 4))
            spans.append(S("backward", begin, at))
            begin, issue = at, at + draw(st.integers(0, 2))
            at = issue + draw(st.integers(1, 3))
            spans += [S("communicate", begin, at), S("collective", issue, sequence=sequence, group="world")]
            sequence += 1
        run.append(spans)
    return run


@settings(max_examples=500, deadline=None)
@given(st.lists(garbage_ranks, min_size=1, max_size=3), windows, st.integers(0, 1))
def test_any_spans_are_charged_as_the_oracle_charges_them(
    run: list[list[S]], window: tuple[int, int], missing: int
) -> None:
    ranks = len(run) + missing
    found = charged(run, window, ranks)
    assert list(found) == oracle(run, window, ranks)
    for ledger in found:
        assert tuple(ledger) == LEDGER_KINDS
        values = [ns for ns in ledger.values() if ns is not None]
        assert sum(values) == window[1] - window[0]
        assert all(ns >= 0 for ns in values)


@thorough
@given(nested_spans(), st.tuples(st.integers(0, 15), st.integers(15, LAST)))
def test_nested_spans_are_charged_to_the_shortest_around_each_instant(spans: list[S], window: tuple[int, int]) -> None:
    expected: dict[str, int] = dict.fromkeys(LEDGER_KINDS, 0)
    for t in range(*window):
        covering = [span for span in spans if span.start <= t < span.end]
        if covering:
            kind = min(covering, key=lambda span: span.end - span.start).kind
            expected[kind if kind in LEDGER_KINDS else "other"] += 1
        else:
            before_all = bool(spans) and t < min(span.start for span in spans)
            expected["startup" if before_all else "other"] += 1
    assert charged([spans], window) == (expected,)


@thorough
@given(st.lists(garbage_ranks, min_size=1, max_size=3), windows, st.randoms(use_true_random=False))
def test_the_order_of_spans_does_not_matter(run: list[list[S]], window: tuple[int, int], random) -> None:
    shuffled = [random.sample(spans, len(spans)) for spans in run]
    assert charged(shuffled, window) == charged(run, window)


@thorough
@given(st.lists(garbage_ranks, min_size=1, max_size=3), windows)
def test_the_zero_of_the_clock_does_not_matter(run: list[list[S]], window: tuple[int, int]) -> None:
    by = 10**15
    later = [
        [replace(span, start=span.start + by, end=span.end if span.end == -1 else span.end + by) for span in spans]
        for spans in run
    ]
    assert charged(later, (window[0] + by, window[1] + by)) == charged(run, window)


@thorough
@given(training_runs())
def test_communication_behind_computation_is_not_charged(run: list[list[S]]) -> None:
    backward = [[span for span in spans if span.kind == "backward"] for spans in run]

    def governs(message: S, rank: int) -> bool:
        """Outside backward, or the last that was issued in it."""
        around = [span for span in backward[rank] if span.start <= message.start < span.end]
        sent = [span.start for span in run[rank] if span.kind == "collective"]
        return not around or message.start == max(at for at in sent if at < around[0].end)

    without = [
        [span for span in spans if span.kind != "collective" or governs(span, rank)] for rank, spans in enumerate(run)
    ]
    window = (0, 2 * LAST)
    assert charged(without, window) == charged(run, window)


@thorough
@given(training_runs())
def test_exposed_time_is_what_spans_show_and_whoever_comes_last_waits_for_nobody(run: list[list[S]]) -> None:
    found = charged(run, (0, 2 * LAST))
    for rank, (spans, ledger) in enumerate(zip(run, found, strict=True)):
        exposed = sum(span.end - span.start for span in spans if span.kind == "communicate")
        for span in (span for span in spans if span.kind == "backward"):
            exposed += span.end - max(
                s.start for s in spans if s.kind == "collective" and span.start <= s.start < span.end
            )
        wait, transfer = ledger["comm-wait"], ledger["comm-transfer"]
        assert wait is not None and transfer is not None
        assert wait + transfer == exposed
        issues = [{s.sequence: s.start for s in other if s.kind == "collective"} for other in run]
        if all(at == max(other[number] for other in issues) for number, at in issues[rank].items()):
            assert wait == 0


@thorough
@given(st.lists(garbage_ranks, min_size=1, max_size=3), windows, st.integers(0, 1))
def test_the_mean_over_ranks_sums_to_the_window(run: list[list[S]], window: tuple[int, int], missing: int) -> None:
    traces = [rank_trace(spans, rank) for rank, spans in enumerate(run)]
    by_rank = ledgers(traces, started_at_ns=window[0], ended_at_ns=window[1], ranks=len(run) + missing)
    mean = mean_ledger(by_rank)
    total_s = (window[1] - window[0]) / 1e9
    for ledger in (mean, *by_rank):
        assert sum(value for value in ledger.values() if value is not None) == pytest.approx(total_s, rel=1e-12)
    for kind in LEDGER_KINDS:
        assert (mean[kind] is None) == any(ledger[kind] is None for ledger in by_rank)
