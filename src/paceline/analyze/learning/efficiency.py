"""What a speed-up is worth: statistical efficiency, and the effective speed-up that it leaves.

    statistical efficiency   samples to the target at the baseline / samples to the target here
                             = (steps × batch at the baseline) / (steps × batch here): where the batch is the same,
                               the ratio of steps
    effective speed-up       speed-up × statistical efficiency
                             = time to the target at the baseline / time to the target here, at each one's throughput

Samples, not steps, are compared, because the speed-up counts samples, too: a batch twice as large that takes half the
steps has lost nothing. Intervals are those of the products within each repeat, as for the speed-up itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paceline.analyze.points.speedups import ratio
from paceline.records.results import Interval

ByRun = Mapping[int, float]
"""A figure by number of the run."""


def statistical_efficiency(own_samples: ByRun, base_samples: ByRun) -> Interval | None:
    """Samples that the baseline needs over samples that this point needs; None where one of them is not known."""
    return ratio(base_samples, own_samples)


def effective_speedup(
    speedup: Interval | None, statistical: Interval | None, own: tuple[ByRun, ByRun], base: tuple[ByRun, ByRun]
) -> Interval | None:
    """Speed-up × statistical efficiency; `own` and `base` are samples per second and samples to the target."""
    if speedup is None or statistical is None:
        return None
    pace = ratio(_targets_per_s(*own), _targets_per_s(*base))
    if pace is None:
        return None
    # The product of the two figures that stand beside it; widened, as the interval need not hold it.
    product = speedup.median * statistical.median
    return replace(pace, median=product, low=min(pace.low, product), high=max(pace.high, product))


def _targets_per_s(samples_per_s: ByRun, samples: ByRun) -> dict[int, float]:
    """How often in a second each run would come to the target."""
    return {run: samples_per_s[run] / samples[run] for run in samples_per_s.keys() & samples.keys()}
