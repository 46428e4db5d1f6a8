"""What each part of the loop lost against the baseline: where the missing efficiency went.

    cost(kind)  =  rank-seconds per sample, in the timed epochs of the median run
    lost(kind)  =  (cost − baseline's cost) / the sum of all costs

With perfect scaling a sample costs as many rank-seconds on any number of ranks, so the parts sum
to 1 − the efficiency of the loop, in strong and in weak scaling alike. Start-up, evaluation and
the warm-up epoch are not in it: the efficiency that it explains leaves them out too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paceline.analyze.ledger import ledgers, mean_ledger
from paceline.records.run import Epoch
from paceline.records.trace import LEDGER_KINDS, SPAN_KINDS, RankTrace

Costs = Mapping[str, float | None]
_INPUT, _OPTIMIZER = SPAN_KINDS.index("input-wait"), SPAN_KINDS.index("optimizer")


def loop_costs_s(traces: Sequence[RankTrace], epochs: Sequence[tuple[int, Epoch]]) -> dict[str, float | None] | None:
    """Rank-seconds per sample by kind over `epochs`, each given with the step at which it began.

    None where the traces do not show them whole.
    """
    parts = []
    for first_step, epoch in epochs:
        window = _window(traces, first_step, epoch.step)
        if window is None:
            return None
        parts.append(mean_ledger(ledgers(traces, started_at_ns=window[0], ended_at_ns=window[1], ranks=len(traces))))
    samples = sum(epoch.samples for _, epoch in epochs)
    if not samples:
        return None
    costs: dict[str, float | None] = {}
    for kind in LEDGER_KINDS:
        spent_s = [s for part in parts if (s := part[kind]) is not None]
        costs[kind] = sum(spent_s) * len(traces) / samples if len(spent_s) == len(parts) else None
    return costs


def lost_shares(
    baseline: Mapping[str, float | None] | None, own: Mapping[str, float | None] | None
) -> dict[str, float]:
    """Fraction of a point's loop time that each kind lost, from the two costs; empty where one was not measured."""
    if baseline is None or own is None:
        return {}
    ideal = {kind: cost for kind in LEDGER_KINDS if (cost := baseline[kind]) is not None}
    spent = {kind: cost for kind in LEDGER_KINDS if (cost := own[kind]) is not None}
    whole = sum(spent.values())
    if len(ideal) < len(LEDGER_KINDS) or len(spent) < len(LEDGER_KINDS) or whole <= 0:
        return {}
    return {kind: (spent[kind] - ideal[kind]) / whole for kind in LEDGER_KINDS}


def _window(traces: Sequence[RankTrace], first_step: int, end_step: int) -> tuple[int, int] | None:
    """Instants from the first rank's first batch to the last rank's last update of an epoch."""
    starts, ends = [], []
    for trace in traces:
        begun = trace.start_ns[(trace.kind == _INPUT) & (trace.step == first_step)]
        done = trace.end_ns[(trace.kind == _OPTIMIZER) & (trace.step == end_step - 1)]
        if not len(begun) or not len(done) or np.any(done < 0):
            return None
        starts.append(int(begun.min()))
        ends.append(int(done.max()))
    return (min(starts), max(ends)) if starts and min(starts) < max(ends) else None
