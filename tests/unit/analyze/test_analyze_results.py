from __future__ import annotations

import pytest

from paceline.analyze.study.study_results import epoch_s, samples_per_s, study_results, timed_epochs
from paceline.errors import StorageError
from paceline.records.results import Interval, StudyResults
from paceline.records.study import Study
from samples.trace_samples import traces_of

SECOND = 1_000_000_000


def results(points, runs, **changed) -> StudyResults:
    fields = {"traces": traces_of(()), "machine": None, "expected_runs": len(runs)}
    return study_results(Study(name="by-hand"), "folder", points, runs, **(fields | changed))


def test_the_first_epoch_is_left_out_when_there_are_others(point, run, epoch) -> None:
    three = run(point(), epochs=(epoch(1, 9.0), epoch(2, 4.0), epoch(3, 5.0)))
    assert epoch_s(three) == 4.5
    assert samples_per_s(three) == 12_000 / 4.5
    alone = run(point(), epochs=(epoch(1, 9.0),))
    assert (epoch_s(alone), samples_per_s(alone)) == (9.0, 12_000 / 9.0)


@pytest.mark.parametrize(
    ("flags", "timed"),
    [
        # (number, whole, resumed) of each epoch -> the numbers of those that are timed
        ([(1, True, False), (2, True, True), (3, True, False)], [3]),
        ([(1, True, False), (2, True, True)], [2]),
        ([(1, True, False), (2, True, False), (3, False, False)], [2]),
        ([(1, True, False), (2, False, False)], [1]),
        ([(1, False, False)], [1]),
        ([(1, True, True)], [1]),
        ([], []),
    ],
)
def test_which_epochs_are_timed(point, run, epoch, flags, timed) -> None:
    epochs = tuple(epoch(number, 4.0, whole=whole, resumed=resumed) for number, whole, resumed in flags)
    assert [chosen.epoch for chosen in timed_epochs(run(point(), epochs=epochs))] == timed


def test_a_run_of_steps_has_a_throughput_but_no_epoch_time(point, run, epoch) -> None:
    partial = run(point(), epochs=(epoch(1, 2.0, samples=5_000, whole=False),))
    assert (epoch_s(partial), samples_per_s(partial)) == (None, 2_500.0)
    row = results([point()], [partial]).points[0]
    assert row.epoch_s is None
    assert row.samples_per_s and row.samples_per_s.median == 2_500.0
    assert row.speedup and row.speedup.median == 1.0


def test_an_epoch_without_a_time_is_not_timed(point, run, epoch) -> None:
    untimed = run(point(), epochs=(epoch(1, 0.0), epoch(2, 0.0)))
    assert (epoch_s(untimed), samples_per_s(untimed)) == (None, None)
    found = results([point()], [untimed])
    assert (found.baseline, found.points[0].speedup, found.points[0].median_run) == (None, None, 1)  # it has a ledger


def test_a_row_gathers_the_runs_of_its_point(point, run) -> None:
    one, two = point(1), point(2)
    runs = [run(two, n, 2.5, total_s=8.0, test_accuracy=0.9 + n / 100) for n in (3, 1, 2)]
    runs += [run(one, n, 4.0) for n in (1, 2, 3)]
    found = results([two, one], runs, failures={two.point_id: "Rank 1 was killed."})
    assert [row.point.ranks for row in found.points] == [1, 2]
    assert found.baseline == one.point_id
    row = found.points[1]
    assert (row.runs, row.parameters, row.failure) == (3, 690_590, "Rank 1 was killed.")
    assert row.epoch_s == Interval(median=2.5, low=2.5, high=2.5, n=3, coverage=None)
    assert row.total_s == Interval(median=8.0, low=8.0, high=8.0, n=3, coverage=None)
    assert row.speedup and row.speedup.median == pytest.approx(1.6)
    assert row.efficiency and row.efficiency.median == pytest.approx(0.8)
    assert row.test_accuracy and row.test_accuracy.mean == pytest.approx(0.92)
    assert row.test_accuracy.std == pytest.approx(0.01)
    assert [curve.run for curve in row.curves] == [1, 2, 3]


def test_speed_ups_are_paired_by_number_of_the_run(point, run) -> None:
    one, two = point(1), point(2)
    runs = [run(one, n, seconds) for n, seconds in ((1, 4.0), (2, 40.0), (3, 4.0))]
    runs += [run(two, n, seconds) for n, seconds in ((3, 2.0), (2, 20.0))]
    speedup = results([one, two], runs).points[1].speedup
    assert speedup and (speedup.low, speedup.n) == (pytest.approx(12_000 * (1 / 2 + 1 / 20) / 2 / 3_000), 2)
    assert speedup.high == 2.0


def test_a_point_without_runs_has_a_row_without_figures(point, run) -> None:
    one, two = point(1), point(2)
    found = results([one, two], [run(two)], failures={one.point_id: "Rank 0 was killed."}, expected_runs=2)
    empty, row = found.points
    assert (empty.runs, empty.epoch_s, empty.speedup, empty.test_accuracy) == (0, None, None, None)
    assert (empty.ledger_s, empty.median_run, empty.failure) == (None, None, "Rank 0 was killed.")
    assert found.baseline == two.point_id
    assert row.efficiency and row.efficiency.median == 1.0


def test_a_study_without_runs_has_rows_all_the_same(point) -> None:
    found = results([point(1), point(2)], [], expected_runs=10)
    assert (found.baseline, len(found.points)) == (None, 2)
    assert [finding.code for finding in found.findings] == ["missing-runs"]


def test_runs_of_other_settings_are_not_mixed_in(point, run) -> None:
    found = results([point(1)], [run(point(1)), run(point(1, "flat"), 2, 40.0)])
    assert found.points[0].runs == 1


def test_resumed_runs_count_for_epochs_but_not_for_totals(point, run) -> None:
    runs = [run(point(), 1, 4.0, total_s=None, resumed_from_step=50), run(point(), 2, 6.0, total_s=11.0)]
    row = results([point()], runs).points[0]
    assert row.epoch_s and (row.epoch_s.n, row.epoch_s.median) == (2, 5.0)
    assert row.total_s and (row.total_s.n, row.total_s.median) == (1, 11.0)
    assert row.median_run == 2


def test_the_ledger_is_that_of_the_lower_median_run(point, run, trace) -> None:
    runs = [run(point(), n, seconds) for n, seconds in ((1, 9.0), (2, 3.0), (3, 5.0), (4, 4.0))]
    asked = []

    def traces(chosen):
        asked.append(chosen.run)
        at = chosen.launched_at_ns
        spans = [("startup", at + SECOND, at + 2 * SECOND), ("forward", at + 2 * SECOND, at + 9 * SECOND)]
        return traces_of([trace(spans)])(chosen)

    row = results([point()], runs, traces=traces).points[0]
    assert (row.median_run, asked) == (4, [4])
    assert row.ledger_s and {kind: s for kind, s in row.ledger_s.items() if s} == {
        "startup": 2.0,
        "forward": 7.0,
        "other": 1.0,
    }
    assert row.rank_ledgers_s == (row.ledger_s,)


def test_spans_that_cannot_be_read_cost_the_ledger_and_are_told(point, run) -> None:
    def traces(_):
        raise StorageError("rank-0000.arrows is not an Arrow stream.", next="Run it again.")

    found = results([point()], [run(point(), n) for n in range(1, 6)], traces=traces)
    assert (found.points[0].ledger_s, found.points[0].rank_ledgers_s) == (None, ())
    told = next(finding for finding in found.findings if finding.code == "incomplete-ledger")
    assert [gap.values["error"] for gap in told.values["gaps"]] == ["rank-0000.arrows is not an Arrow stream."]
    assert told.points == (point().point_id,)


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("rank", "spans-of-some-ranks"),
        ("tail", "spans-truncated"),
        ("collective", "collectives-differ"),
        (None, None),
    ],
)
def test_what_a_ledger_lacks_is_told(point, run, trace, lost, told) -> None:
    at = 100 * SECOND
    spans = [("communicate", at, at + 5 * SECOND), ("collective", at, 0)]
    whole = trace(spans)
    second = {
        "rank": [],
        "tail": [trace(spans, 1, truncated=True)],
        "collective": [trace(spans[:1], 1)],
        None: [trace(spans, 1)],
    }[lost]
    found = results([point(2)], [run(point(2), n) for n in range(1, 6)], traces=traces_of([whole, *second]))
    ledger = found.points[0].ledger_s
    assert ledger and sum(value for value in ledger.values() if value is not None) == pytest.approx(10.0)
    assert (ledger["comm-wait"] is None) == (lost in ("rank", "collective"))
    gaps = [gap for finding in found.findings for gap in finding.values.get("gaps", ())]
    assert [gap.code for gap in gaps] == ([told] if told else [])
