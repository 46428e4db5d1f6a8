"""Changes from A to B at one pair of points: significance, and the ledger kinds that cause them.

    time      median over runs, or over blocks of steps of a single run; B / A, with a rank test (two_samples.py)
    real      significant after Holm's correction over all compared pairs, and the interval of the ratio excludes 1
    parts     ledger of the median run (or block) of B − that of A

The ledger of the median run sums to the median time, so the parts sum to the difference of the two medians. Each part
has its own interval over all runs. For an even number of runs, the two in the middle are averaged, as in the median.

Accuracies, efficiencies and bandwidths are tested in the same way, each family with its own correction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.analyze.compare.caveats import size_caveat
from paceline.analyze.compare.spent import Cost, RunCosts, undivided
from paceline.analyze.run.run_timeline import COMM_KINDS
from paceline.analyze.stats.two_samples import LEVEL, corrected, difference, known_versus, smallest_seen, versus
from paceline.records.changes import Change, MessageChange, Part, Versus
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.trace_summary import MessageKind

RUNS, STEPS = "runs", "steps"
_Row = tuple[str, str, str | None, int]
"""Key of a row of the message table: operation, group, type and size."""
_Table = tuple[int, Mapping[_Row, MessageKind]]
"""Steps of a run, and its rows."""
_SMALLEST_MAIN = 0.01
"""Bytes per step of a main row, as a fraction of the largest row."""
FACTORS = {
    "global": "global_",
    "load_balance": "load_balance",
    "serialisation": "serialisation",
    "transfer": "transfer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two points or runs to compare."""

    label: str
    a: str
    b: str
    over: str
    """What the sample consists of: runs or steps."""
    a_runs: tuple[RunCosts, ...]
    b_runs: tuple[RunCosts, ...]
    notes: tuple[str, ...] = ()
    """Known limitations, one sentence each."""
    letter: str = "B"
    """Letter of the second side: B, C, ..."""


def changes_of_sides(sides: Sequence[Sequence[Pair]]) -> list[tuple[tuple[Change, ...], tuple[str, ...]]]:
    """For each side, the changes of its timed pairs and a sentence for each untimed pair; corrected over all sides."""
    found = iter(_tested([pair for pairs in sides for pair in pairs if _is_timed(pair)]))
    return [
        (
            tuple(next(found) for pair in pairs if _is_timed(pair)),
            tuple(_untimed(pair) for pair in pairs if not _is_timed(pair)),
        )
        for pairs in sides
    ]


def _tested(timed: Sequence[Pair]) -> list[Change]:
    found = [_change(pair) for pair in timed]
    times = corrected([change.time_s for change in found], ratio=True)
    accuracies = corrected([change.accuracy for change in found if change.accuracy], ratio=False)
    tested = sum(time_s.p_least <= LEVEL for time_s in times)
    results = []
    for pair, change, time_s in zip(timed, found, times, strict=True):
        a_s, b_s = _per_unit(pair, change.unit)
        results.append(
            replace(
                change,
                time_s=time_s,
                accuracy=accuracies.pop(0) if change.accuracy else None,
                smallest_seen=smallest_seen(a_s, b_s, tested),
            )
        )
    return results


def slower_than(found: Iterable[Change], fraction: float) -> tuple[Change, ...]:
    """The significant changes whose interval lies above 1 + `fraction`: B is slower."""
    return tuple(each for each in found if each.time_s.real and each.time_s.change.low - 1 > fraction)


def _change(pair: Pair) -> Change:
    """The change of one pair, without correction for multiple tests."""
    unit, note = _unit(pair)
    a_s, b_s = _per_unit(pair, unit)
    parts, gap = _parts(pair, unit)
    return Change(
        label=pair.label,
        a=pair.a,
        b=pair.b,
        over=pair.over,
        unit=unit,
        time_s=versus(a_s, b_s, ratio=True),
        smallest_seen=None,
        block_steps=tuple(run.block_steps for run in (*pair.a_runs, *pair.b_runs) if run.block_steps is not None),
        parts=parts,
        gap=gap,
        accuracy=known_versus(
            (run.accuracy for run in pair.a_runs), (run.accuracy for run in pair.b_runs), ratio=False
        ),
        efficiencies=_efficiencies(pair),
        messages=message_changes(pair.a_runs, pair.b_runs),
        notes=tuple(filter(None, (*pair.notes, *_problems(pair), note, _too_few(pair)))),
    )


def _is_timed(pair: Pair) -> bool:
    return bool(_costs(pair.a_runs) and _costs(pair.b_runs))


def _costs(runs: Iterable[RunCosts]) -> list[Cost]:
    return [cost for run in runs for cost in run.costs]


def _unit(pair: Pair) -> tuple[str, str | None]:
    """The unit of a time, and a note: a step if it has equally many samples on both sides, else a sample."""
    costs = _costs((*pair.a_runs, *pair.b_runs))
    per_step = [cost.samples / cost.steps for cost in costs if cost.samples and cost.steps]
    if len(per_step) < len(costs):
        return "step", "The samples of a step are not known: they are assumed to be equal on both sides."
    same = all(math.isclose(each, per_step[0], rel_tol=1e-9) for each in per_step)
    return ("step", None) if same else ("sample", None)


def _per_unit(pair: Pair, unit: str) -> tuple[list[float], list[float]]:
    """Seconds per unit of each run or block, of A and of B."""
    first, second = (
        [cost.total_s / _units(cost, unit) for cost in _costs(runs)] for runs in (pair.a_runs, pair.b_runs)
    )
    return first, second


def _units(cost: Cost, unit: str) -> float:
    count = cost.steps if unit == "step" else cost.samples
    assert count, f"a cost without a number of {unit}s"
    return count


def _parts(pair: Pair, unit: str) -> tuple[tuple[Part, ...], str | None]:
    """The change of each ledger kind, and what is missing, in a sentence."""
    gaps = [run.gap for run in (*pair.a_runs, *pair.b_runs) if run.gap is not None]
    gap = gaps[0] if gaps else None
    sides = [[_ledger(cost, unit) for cost in _costs(runs)] for runs in (pair.a_runs, pair.b_runs)]
    if any(ledger is None for side in sides for ledger in side):
        return (), gap
    a, b = ([ledger for ledger in side if ledger is not None] for side in sides)
    if any(kind not in ledger for ledger in (*a, *b) for kind in COMM_KINDS):
        a, b = [undivided(ledger) for ledger in a], [undivided(ledger) for ledger in b]
    first, second = _middle(a), _middle(b)
    whole_s = sum(first.values())
    parts = []
    for kind in LEDGER_KINDS:
        if kind not in first:
            parts.append(Part(kind=kind, a_s=None, b_s=None, change_s=None, share=None))
            continue
        change_s = difference([each[kind] for each in a], [each[kind] for each in b], second[kind] - first[kind])
        share = change_s.median / whole_s if whole_s > 0 else None
        parts.append(Part(kind=kind, a_s=first[kind], b_s=second[kind], change_s=change_s, share=share))
    return tuple(parts), gap


def _ledger(cost: Cost, unit: str) -> dict[str, float] | None:
    """Seconds per unit by kind."""
    if cost.ledger_s is None:
        return None
    return {kind: value / _units(cost, unit) for kind, value in cost.ledger_s.items()}


def _middle(ledgers: Sequence[dict[str, float]]) -> dict[str, float]:
    """The ledger with the median sum; of an even number, the mean of the two in the middle."""
    ordered = sorted(ledgers, key=lambda ledger: sum(ledger.values()))
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return {kind: statistics.fmean(ledger[kind] for ledger in middle) for kind in middle[0]}


def _efficiencies(pair: Pair) -> dict[str, Versus]:
    """The change of each factor of the efficiency tree."""
    found = {
        name: known_versus(_factors(pair.a_runs, field), _factors(pair.b_runs, field), ratio=False)
        for name, field in FACTORS.items()
    }
    known = {name: each for name, each in found.items() if each is not None}
    return dict(zip(known, corrected(list(known.values()), ratio=False), strict=True))


def _factors(runs: Iterable[RunCosts], field: str) -> list[float | None]:
    return [None if run.efficiencies is None else getattr(run.efficiencies, field) for run in runs]


def _untimed(pair: Pair) -> str:
    """A sentence: why a pair is not compared."""
    side = "A" if not _costs(pair.a_runs) else pair.letter
    runs = pair.a_runs if side == "A" else pair.b_runs
    why = next((run.gap for run in runs if run.gap), None) if runs else "no finished run"
    return f"{pair.label}: {side} has no timed steps ({(why or 'too few steps').rstrip('.')})."


def _problems(pair: Pair) -> list[str]:
    """Missing or damaged files, each problem once."""
    found: dict[str, list[str]] = {}
    for side, runs in (("A", pair.a_runs), (pair.letter, pair.b_runs)):
        for run in runs:
            for problem in run.problems:
                found.setdefault(f"{side}: {problem}", []).append(run.name)
    return [text + (f" (In {len(names)} runs.)" if len(names) > 1 else "") for text, names in found.items()]


def _too_few(pair: Pair) -> str | None:
    values = "runs" if pair.over == RUNS else "blocks of steps"
    return size_caveat(len(_costs(pair.a_runs)), len(_costs(pair.b_runs)), values)


def message_changes(a: Sequence[RunCosts], b: Sequence[RunCosts]) -> tuple[MessageChange, ...]:
    """Every row of a message table of A or B, most bytes first.

    Bandwidths are corrected among the main rows: with a dozen small start-up messages in the same family, no change of
    a main row would be significant.
    """
    first, second = _tables(a), _tables(b)
    rows = {key: kind for _, table in (*first, *second) for key, kind in table.items()}
    found = [
        MessageChange(
            operation=kind.operation,
            group=kind.group,
            dtype=kind.dtype,
            payload_bytes=kind.payload_bytes,
            a_per_step=_per_step(first, key),
            b_per_step=_per_step(second, key),
            bandwidth=known_versus(_bandwidths(first, key), _bandwidths(second, key), ratio=True),
            main=False,
        )
        for key, kind in rows.items()
    ]
    largest = [max((each[side] for each in map(_bytes_per_step, found)), default=0.0) for side in (0, 1)]
    found = [replace(each, main=_is_main(each, largest)) for each in found]
    main, others = ([each for each in found if each.main is main] for main in (True, False))
    found = [*_with_tested_bandwidths(main), *_with_tested_bandwidths(others)]
    return tuple(sorted(found, key=lambda each: max(_bytes_per_step(each)), reverse=True))


def _with_tested_bandwidths(rows: Sequence[MessageChange]) -> list[MessageChange]:
    """The rows, with their bandwidths corrected for multiple tests."""
    tested = iter(corrected([each.bandwidth for each in rows if each.bandwidth], ratio=True))
    return [replace(each, bandwidth=next(tested)) if each.bandwidth else each for each in rows]


def _is_main(change: MessageChange, largest: Sequence[float]) -> bool:
    return any(own >= _SMALLEST_MAIN * most > 0 for own, most in zip(_bytes_per_step(change), largest, strict=True))


def _tables(runs: Sequence[RunCosts]) -> list[_Table]:
    return [
        (run.steps, {(kind.operation, kind.group, kind.dtype, kind.payload_bytes): kind for kind in run.messages})
        for run in runs
    ]


def _per_step(tables: Sequence[_Table], key: _Row) -> float | None:
    """Messages per step, median over runs; None if no run has the row."""
    counts = [table[key].count / steps for steps, table in tables if steps and key in table]
    return statistics.median(counts) if counts else None


def _bandwidths(tables: Sequence[_Table], key: _Row) -> list[float | None]:
    return [table[key].bus_bytes_per_s if key in table else None for _, table in tables]


def _bytes_per_step(change: MessageChange) -> tuple[float, float]:
    """Bytes per step of A and of B."""
    return change.payload_bytes * (change.a_per_step or 0.0), change.payload_bytes * (change.b_per_step or 0.0)
