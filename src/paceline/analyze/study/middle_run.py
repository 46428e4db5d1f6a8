"""Which run speaks for its point where only one can be looked at: the median one."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.analyze.study.timing import throughputs
from paceline.records.run import RunResult


def middle_run(runs: Sequence[RunResult]) -> RunResult | None:
    """The run with the lower median time per sample, or as a whole where nothing was timed; None where there is none.

    One that was seen from launch to end is taken before one that was resumed.
    """
    runs = [run for run in runs if run.total_s is not None] or list(runs)
    speeds = throughputs(runs)
    timed = [run for run in runs if run.run in speeds]
    by_speed = sorted(timed, key=lambda run: (-speeds[run.run], run.run)) or sorted(
        runs, key=lambda run: (run.wall_s, run.run)
    )
    return by_speed[(len(by_speed) - 1) // 2] if by_speed else None
