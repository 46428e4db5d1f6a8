"""Findings about gradient noise: batches beyond what it makes worth while, schedules that AdaScale did not finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paceline.records.finding import Finding
from paceline.records.learning import NoiseScale

if TYPE_CHECKING:
    from paceline.analyze.study.measured import Measured
    from paceline.records.results import PointResult
    from paceline.records.run import RunResult

WORTH = 0.5
"""Of every sample, against one of a very small batch: below, more than half of them were for nothing."""
FINISHED = 0.9
"""Of a schedule: what is left after it changes little."""


def batch_beyond_noise(measured: Measured) -> Finding | None:
    """Points whose global batch is beyond the noise scale, with its whole interval."""
    beyond = [(row, noise) for row in measured.rows if (noise := _beyond(row)) is not None]
    if not beyond:
        return None
    worst, noise = min(beyond, key=lambda pair: pair[1].efficiency or 0.0)
    return Finding(
        code="batch-beyond-noise",
        severity="info",
        values={
            "found": len(beyond),
            "points": len(measured.rows),
            "worst": worst.label,
            "batch": worst.point.batch_global,
            "noise": noise,
        },
        points=tuple(row.point_id for row, _ in beyond),
    )


def schedule_unfinished(measured: Measured) -> Finding | None:
    """Runs with AdaScale whose steps were worth so little that the schedule was not nearly over at their end."""
    short = {row.point_id: (row, min(found)) for row in measured.rows if (found := _progress(measured, row))}
    short = {point_id: pair for point_id, pair in short.items() if pair[1] < FINISHED}
    if not short:
        return None
    worst, progress = min(short.values(), key=lambda pair: pair[1])
    return Finding(
        code="schedule-unfinished",
        severity="warning",
        values={"found": len(short), "points": len(measured.rows), "worst": worst.label, "progress": progress},
        points=tuple(short),
    )


def _beyond(row: PointResult) -> NoiseScale | None:
    noise = row.learning.noise if row.learning else None
    return noise if noise and noise.efficiency_high is not None and noise.efficiency_high < WORTH else None


def _progress(measured: Measured, row: PointResult) -> list[float]:
    """How far AdaScale came in each run of a point, as a fraction of the steps that were taken."""
    found = [_progress_of(run) for run in measured.runs[row.point_id]]
    return [progress for progress in found if progress is not None]


def _progress_of(run: RunResult) -> float | None:
    """At the end of the first phase; None under any other rule, or where nothing was measured in its last epoch."""
    last = next((epoch for epoch in reversed(run.epochs) if epoch.phase == "train"), None)
    noise = next((noise for noise in run.noise if last is not None and noise.epoch == last.epoch), None)
    return noise.progress / last.step if last and noise and noise.progress is not None else None
