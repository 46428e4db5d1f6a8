"""What a factor changes, and what a point needs to reach the target accuracy."""

from __future__ import annotations

from typing import Any

from paceline.metrics.metric import INTERVAL, Place, PointMetric


def _factor(effect: Any) -> str | None:
    return None if effect.is_baseline else effect.factor


LEARNING = (
    PointMetric(
        name="factor",
        key="factor",
        source=_factor,
        record="effect",
        type=str,
        definition="The one setting that is changed; all others are as at the baseline.",
        page="glossary.md",
    ),
    PointMetric(
        name="test loss in % of the baseline",
        short="test loss",
        key="loss_pct",
        unit="%",
        source="loss_pct.interval",
        record="effect",
        parts=INTERVAL,
        digits=4,
        definition="Median loss on the test set after the last epoch, in % of the baseline's: below 100 is better.",
        page="measuring.md#one-factor-at-a-time",
    ),
    PointMetric(
        name="test accuracy in % of the baseline",
        short="test accuracy",
        key="accuracy_pct",
        unit="%",
        source="accuracy_pct.interval",
        record="effect",
        parts=INTERVAL,
        digits=4,
        definition="Median accuracy on the test set after the last epoch, in % of the baseline's, not in points.",
        page="measuring.md#one-factor-at-a-time",
    ),
    PointMetric(
        name="training time in % of the baseline",
        short="training time",
        key="time_pct",
        unit="%",
        source="time_pct.interval",
        record="effect",
        parts=INTERVAL,
        digits=4,
        definition="Median training time in % of the baseline's: below 100 is faster.",
        page="measuring.md#one-factor-at-a-time",
    ),
    PointMetric(
        name="epochs to stable",
        key="stable",
        unit="epochs",
        source="learning.stable",
        parts=("epoch", "low", "high"),
        type=int,
        definition="The first epoch from which validation accuracy stays within twice its own noise of its plateau.",
        page="metrics/epochs-to-stable.md",
    ),
    PointMetric(
        name="target",
        key="target_accuracy",
        unit="fraction",
        source="learning.target.accuracy",
        definition="The validation accuracy that times are asked for: configured, or the highest that every run "
        "reached.",
        page="metrics/time-to-accuracy.md",
    ),
    PointMetric(
        name="steps to the target",
        short="steps",
        key="steps_to_target",
        unit="steps",
        source="learning.target.steps",
        parts=INTERVAL,
        digits=4,
        definition="Updates of the parameters until validation accuracy reaches the target.",
        page="metrics/time-to-accuracy.md",
    ),
    PointMetric(
        name="time to the target",
        short="time",
        key="time_to_target_s",
        unit="s",
        source="learning.target.time_s",
        parts=INTERVAL,
        definition="Time of the epochs until validation accuracy reaches the target; training alone.",
        formula="Σ epoch times up to the target, interpolated linearly within the last epoch",
        page="metrics/time-to-accuracy.md",
    ),
    PointMetric(
        name="rank-hours",
        key="rank_hours_to_target",
        unit="rank-hours",
        source="learning.target.rank_hours",
        parts=INTERVAL,
        definition="What the training up to the target costs in hours of one rank.",
        formula="(ranks + servers) × time to the target in hours",
        page="metrics/rank-hours.md",
    ),
    PointMetric(
        name="statistical efficiency",
        key="statistical_efficiency",
        unit="fraction",
        source="learning.statistical_efficiency",
        parts=INTERVAL,
        definition="Samples that the baseline takes to the target over samples taken here.",
        formula="samples to the target, baseline ÷ here",
        page="metrics/statistical-efficiency.md",
    ),
    PointMetric(
        name="effective speed-up",
        key="effective_speedup",
        place=Place("results", "compared", before="efficiency"),
        source="learning.effective_speedup",
        parts=INTERVAL,
        definition="How many times sooner than at the baseline the target is reached.",
        formula="speed-up × statistical efficiency",
        page="metrics/statistical-efficiency.md",
    ),
)
