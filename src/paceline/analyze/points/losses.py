"""Lost shares: the efficiency that each ledger kind of the training loop lost against the baseline.

    cost(kind)  =  rank-seconds per sample, in the timed epochs of the median run
    lost(kind)  =  (cost − baseline's cost) / the sum of all costs

With perfect scaling a sample costs equally many rank-seconds on any number of ranks, so the shares sum to 1 − the
efficiency of the loop, in strong and in weak scaling. Servers count as ranks in the efficiency: their time is a share
of its own, `servers`. Start-up, evaluation and the warm-up epoch are excluded, as in the efficiency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paceline.analyze.run.ledger import ledger_ns
from paceline.analyze.run.run_timeline import COMM_KINDS, TimeLine
from paceline.records.rank_trace import LEDGER_KINDS, SPAN_KINDS, RankTrace
from paceline.records.run import Epoch
from paceline.units import seconds

SERVERS = "servers"
"""Share of the processes that hold parameters and do not train."""
# In traces without `step` spans an epoch begins with its first batch and ends with its last update.
_FIRST = tuple(map(SPAN_KINDS.index, ("step", "input-wait")))
_LAST = tuple(map(SPAN_KINDS.index, ("step", "optimizer")))


def loop_windows(traces: Sequence[RankTrace], epochs: Sequence[tuple[int, Epoch]]) -> list[tuple[int, int]] | None:
    """Start and end of each epoch in ns; `epochs` have their first step. None if the traces are incomplete."""
    windows = [_window(traces, first_step, epoch.step) for first_step, epoch in epochs]
    return [window for window in windows if window is not None] if windows and None not in windows else None


def loop_costs_s(
    lines: Sequence[TimeLine], windows: Sequence[tuple[int, int]], samples: int, *, servers: int = 0
) -> dict[str, float | None]:
    """Rank-seconds per sample by kind, over windows with `samples` samples; segments begin at the windows' ends."""
    parts = [ledger_ns(line, line.during(*window)) for line in lines for window in windows]
    costs: dict[str, float | None] = {}
    for kind in LEDGER_KINDS:
        spent_ns = [ns for part in parts if (ns := part[kind]) is not None]
        costs[kind] = seconds(sum(spent_ns)) / samples if len(spent_ns) == len(parts) else None
    if servers:
        costs[SERVERS] = servers * seconds(sum(end - start for start, end in windows)) / samples
    return costs


def exposed_share(costs_s: Mapping[str, float | None]) -> float | None:
    """Fraction of the loop in which ranks communicated and did not compute; None if unknown."""
    exposed = [costs_s[kind] for kind in COMM_KINDS]
    whole = sum(costs_s[kind] or 0.0 for kind in LEDGER_KINDS)
    return None if None in exposed or whole <= 0 else sum(cost or 0.0 for cost in exposed) / whole


def lost_shares(
    baseline: Mapping[str, float | None] | None, own: Mapping[str, float | None] | None
) -> dict[str, float]:
    """Fraction of a point's loop time that each kind lost; empty if one of the costs is unknown."""
    if baseline is None or own is None:
        return {}
    ideal = {kind: cost for kind in LEDGER_KINDS if (cost := baseline[kind]) is not None}
    spent = {kind: cost for kind in LEDGER_KINDS if (cost := own[kind]) is not None}
    whole = sum(spent.values())
    if len(ideal) < len(LEDGER_KINDS) or len(spent) < len(LEDGER_KINDS) or whole <= 0:
        return {}
    served, before = own.get(SERVERS) or 0.0, baseline.get(SERVERS) or 0.0
    whole += served
    lost = {kind: (spent[kind] - ideal[kind]) / whole for kind in LEDGER_KINDS}
    return lost | ({SERVERS: (served - before) / whole} if served or before else {})


def _window(traces: Sequence[RankTrace], first_step: int, end_step: int) -> tuple[int, int] | None:
    """Start of the first rank's first step and end of the last rank's last step in an epoch; None if missing."""
    starts, ends = [], []
    for trace in traces:
        begun = trace.start_ns[np.isin(trace.kind, _FIRST) & (trace.step == first_step)]
        done = trace.end_ns[np.isin(trace.kind, _LAST) & (trace.step == end_step - 1)]
        if not len(begun) or not len(done) or np.any(done < 0):
            return None
        starts.append(int(begun.min()))
        ends.append(int(done.max()))
    return (min(starts), max(ends)) if starts and min(starts) < max(ends) else None
