"""The ledger of a run that is on: however it is cut into pieces, these sum to the whole."""

from __future__ import annotations

import itertools
import random
from dataclasses import fields, replace

import numpy as np
import pytest

from paceline.analyze.run.ledger import ledgers
from paceline.analyze.run.so_far import PartialLedger, empty_ledger, extended_ledger
from paceline.records.rank_trace import LEDGER_KINDS, RankTrace, Words
from paceline.storage.folder import RunFolder
from paceline.storage.run_trace import read_run
from samples.compared_studies import attached_run

STEPS = 40


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[RankTrace, ...]:
    """Two ranks of which the second comes later to every message, in the order of their ends."""
    folder = tmp_path_factory.mktemp("attached") / "run"
    attached_run(folder, steps=STEPS, scatter=0.2)
    first, second = read_run(RunFolder(folder)).traces
    late = 30_000
    second = replace(
        second, start_ns=second.start_ns + late, end_ns=np.where(second.end_ns < 0, -1, second.end_ns + late)
    )
    return by_end(first), by_end(second)


def by_end(trace: RankTrace) -> RankTrace:
    return rows_of(trace, np.argsort(trace.end_ns, kind="stable"))


def rows_of(trace: RankTrace, rows: np.ndarray) -> RankTrace:
    columns = {}
    for field in fields(RankTrace):
        value = getattr(trace, field.name)
        if isinstance(value, Words):
            columns[field.name] = Words(value.codes[rows], value.words)
        elif isinstance(value, np.ndarray):
            columns[field.name] = value[rows]
    return replace(trace, **columns)


def pieces(trace: RankTrace, cuts: list[int]) -> list[RankTrace]:
    edges = [0, *sorted(cuts), len(trace)]
    return [rows_of(trace, np.arange(first, last)) for first, last in itertools.pairwise(edges)]


def counted(ranks: int, looks: list[list[RankTrace]], start: int | None = 0) -> PartialLedger:
    found = empty_ledger(ranks, start)
    for look in looks:
        found = extended_ledger(found, [trace for trace in look if len(trace)])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_pieces_sum_to_the_ledger_of_the_whole(traces: tuple[RankTrace, ...], seed: int) -> None:
    chance = random.Random(seed)
    cut = [pieces(trace, chance.sample(range(1, len(trace)), chance.choice((1, 3, 9)))) for trace in traces]
    looks = []
    while any(cut):
        # One of the ranks may be flushed more often than the other.
        looks.append([own.pop(0) for own in cut if own and chance.random() < 0.7])
    found = counted(2, looks)
    assert found.step == STEPS - 2, "the last step but one that all have"
    whole = ledgers(traces, started_at_ns=0, ended_at_ns=found.until_ns, ranks=2)
    assert not found.undivided
    for rank, ledger in enumerate(whole):
        assert found.ledgers_s[rank] == pytest.approx(ledger, abs=1e-12)
        assert sum(value or 0.0 for value in found.ledgers_s[rank].values()) == pytest.approx(found.until_ns / 1e9)
    assert whole[0]["comm-wait"], "the first rank waits for the second"


def test_what_was_counted_is_let_go_of(traces: tuple[RankTrace, ...]) -> None:
    looks = [list(parts) for parts in zip(*(pieces(trace, [40, 80, 120]) for trace in traces), strict=True)]
    found = counted(2, looks)
    assert max(len(trace) for trace in found.pending) < 30 < min(len(trace) for trace in traces)


def test_nothing_is_counted_before_two_steps_of_every_rank(traces: tuple[RankTrace, ...]) -> None:
    first = counted(2, [[traces[0]]])
    assert first.step == -1 and first.ledgers_s == {}, "of the other rank nothing was flushed"
    assert counted(3, [list(traces)]).ledgers_s == {}, "a third is missing"
    assert extended_ledger(first, [traces[1]]).step == STEPS - 2


def test_without_a_launch_it_begins_with_the_first_span(traces: tuple[RankTrace, ...]) -> None:
    found = counted(2, [list(traces)], start=None)
    assert found.started_at_ns == min(int(trace.start_ns.min()) for trace in traces)
    assert (found.ledgers_s[0]["startup"] or 0.0) == 0.0


def test_a_message_that_only_one_rank_shows_leaves_communication_undivided(traces: tuple[RankTrace, ...]) -> None:
    deaf = rows_of(traces[1], np.flatnonzero(traces[1].sequence != STEPS // 2))
    found = counted(2, [[*parts] for parts in zip(pieces(traces[0], [60]), pieces(deaf, [60]), strict=True)])
    ledger = found.ledgers_s[0]
    assert ledger["comm-wait"] is None and ledger["comm-transfer"] is None
    assert sum(value or 0.0 for value in ledger.values()) == pytest.approx(found.until_ns / 1e9)
    assert list(ledger) == list(LEDGER_KINDS)


def test_the_pace_is_that_of_the_last_piece(traces: tuple[RankTrace, ...]) -> None:
    found = counted(2, [list(parts) for parts in zip(*(pieces(trace, [100]) for trace in traces), strict=True)])
    assert found.steps_per_s == pytest.approx(1000, rel=0.2)
