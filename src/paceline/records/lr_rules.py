"""The factor of a learning-rate rule, which is known before the run."""

from __future__ import annotations

import math

from paceline.records.settings import TrainSettings


def rule_factor(settings: TrainSettings, *, batch_global: int, ranks: int) -> float:
    """The factor of `lr` at this batch; 1 for `adascale`, whose gain is measured."""
    meant_for = settings.lr_batch or (batch_global if settings.batch_per_rank is None else batch_global / ranks)
    if settings.lr_rule == "linear":
        return batch_global / meant_for
    return math.sqrt(batch_global / meant_for) if settings.lr_rule == "sqrt" else 1.0
