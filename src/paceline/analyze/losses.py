"""What each part of the loop lost against the baseline: where the missing efficiency went.

    lost(kind)  =  (own seconds − baseline's seconds × baseline's ranks / ranks × work) / own loop's seconds

over the kinds that make up an epoch, where work is the ratio of samples trained on: 1, unless
steps are counted and the batch grows with the ranks. The parts sum to 1 − the loop's efficiency.
"""

from __future__ import annotations

from paceline.records.results import PointResult

# Startup, load and evaluation lie outside the epoch: they cannot explain what an epoch lost.
LOOP_KINDS = ("input-wait", "forward", "backward", "comm-wait", "comm-transfer", "optimizer", "checkpoint")


def lost_shares(baseline: PointResult, point: PointResult) -> dict[str, float]:
    """Fraction of the point's loop time that each kind lost; empty where the loop was not measured whole.

    Assumes: the median runs stand for their points.
    """
    base_s, own_s = baseline.ledger_s, point.ledger_s
    if base_s is None or own_s is None or any(own_s.get(kind) is None for kind in LOOP_KINDS):
        return {}
    work = 1.0 if point.point.train.steps is None else point.point.batch_global / baseline.point.batch_global
    ideal = baseline.point.ranks / point.point.ranks * work
    loop_s = sum(own_s[kind] or 0.0 for kind in LOOP_KINDS)
    if loop_s <= 0:
        return {}
    return {kind: ((own_s[kind] or 0.0) - ideal * (base_s.get(kind) or 0.0)) / loop_s for kind in LOOP_KINDS}
