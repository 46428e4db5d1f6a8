"""The run that speaks for its point: the median by speed, of those that were seen whole."""

from __future__ import annotations

from dataclasses import replace

from paceline.analyze.points.median_run import median_result, median_run
from paceline.errors import StorageError
from paceline.records.run import Epoch, RunResult
from paceline.records.trace_summary import RunTrace


def result(number: int, epoch_s: float | None = 1.0, *, wall_s: float = 9.0, total_s: float | None = 9.0) -> RunResult:
    epochs = [
        Epoch(
            epoch=epoch,
            step=epoch,
            samples=100,
            train_loss=1.0,
            train_accuracy=0.5,
            validation_loss=None,
            validation_accuracy=None,
            epoch_s=epoch_s or 0.0,
            evaluate_s=0.0,
            whole=True,
        )
        for epoch in (1, 2)
    ]
    return RunResult(
        point_id="p",
        run=number,
        seed=number,
        ranks=1,
        attempt=1,
        launched_at="",
        launched_at_ns=0,
        total_s=total_s,
        wall_s=wall_s,
        epochs=tuple(epochs) if epoch_s else (),
        test_loss=0.0,
        test_accuracy=0.0,
        parameters=1,
        load_s=0.0,
        steps=2,
        weights_sha256="",
        oversubscribed=False,
    )


def number(*runs: RunResult) -> int | None:
    found = median_result(runs)
    return found and found.run


def test_it_is_the_median_by_speed_and_the_faster_of_two() -> None:
    assert number(result(1, 3.0), result(2, 1.0), result(3, 2.0)) == 3
    assert number(result(1, 3.0), result(2, 1.0)) == 2
    assert number(result(7)) == 7
    assert number() is None


def test_a_resumed_run_is_taken_only_where_there_is_no_other() -> None:
    resumed = replace(result(1, 2.0), total_s=None)
    assert number(resumed, result(2, 9.0), result(3, 1.0)) == 3
    assert number(resumed) == 1


def test_runs_without_timed_epochs_are_compared_as_a_whole() -> None:
    assert number(result(1, None, wall_s=5.0), result(2, None, wall_s=9.0), result(3, None, wall_s=1.0)) == 1


def test_the_report_takes_the_run_that_is_chosen_and_shows_no_resumed_one() -> None:
    def no_spans(run: RunResult) -> RunTrace:
        raise StorageError(f"no spans of run {run.run}")

    assert median_run([result(1, 3.0), result(2, 1.0), result(3, 2.0)], no_spans).run == 3
    assert median_run([replace(result(1), total_s=None)], no_spans).run is None
