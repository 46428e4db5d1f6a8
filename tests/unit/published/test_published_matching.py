"""Which point stands for a published row, and what is said where none does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.published.beside import published_comparison
from paceline.published.matching.measures import time_percent
from paceline.published.matching.row_points import match
from paceline.published.records import MeasuredCell
from paceline.published.table_files import published_study
from paceline.records.results import StudyResults
from samples import published_samples


def cell(results: StudyResults, row: int, column: str, *, table: int = 0) -> MeasuredCell:
    found = published_samples.beside_of(results).tables[table]
    return next(one for one in found.rows[row].cells if one.column == column)


def test_nodes_and_processes_are_hosts_and_ranks() -> None:
    results = published_samples.usual("mnist-mpi")
    table = published_study("mnist-mpi").tables[0]
    for index, ranks in enumerate((1, 2, 4)):
        point = match(table, index, results, {}).point
        assert point is not None and (point.point.hosts, point.point.ranks) == (1, ranks)
    assert "8 ranks" in match(table, 3, results, {}).reason
    assert "2 hosts" in match(table, 4, results, {}).reason
    epoch = cell(results, 1, "epoch_s")
    assert epoch.value is not None and 3.9 < float(epoch.value) < 4.4 and epoch.coverage is not None and epoch.n == 5


def test_epochs_to_stable_keep_an_open_end() -> None:
    results = published_samples.usual("caltech256-gpus")
    first, *others = results.points
    assert first.learning is not None and first.learning.stable is not None
    closed = cell(results, 0, "epochs_to_stable_by_eye")
    assert closed.high is not None and closed.coverage is not None
    stable = replace(first.learning.stable, epoch=11, low=8, high=None)
    open_end = replace(first, learning=replace(first.learning, stable=stable))
    found = cell(replace(results, points=(open_end, *others)), 0, "epochs_to_stable_by_eye")
    assert (found.value, found.low, found.high, found.coverage) == (11, 8, None, closed.coverage)


def test_a_frozen_network_is_compared_as_it_was_published_before_fine_tuning() -> None:
    results = published_samples.results_of("cifar10-nodes-efficientnet")
    first = results.points[0].phases[0]
    assert cell(results, 1, "trainable_params").value == first.trainable == 12_810
    found, whole = cell(results, 1, "test_accuracy"), results.points[0].test_accuracy
    assert found.value == first.test_accuracy.mean and whole is not None and found.value < whole.mean - 0.005
    assert cell(results, 1, "test_accuracy_std").value == first.test_accuracy.std
    before = tuple(replace(point, phases=()) for point in results.points)
    old = replace(results, points=before)
    assert cell(old, 1, "test_accuracy").value == whole.mean
    assert cell(old, 1, "trainable_params").reason == "Not measured."


def test_a_resumed_run_is_in_no_time_in_per_cent() -> None:
    results = published_samples.results_of("flowers-cloud", cores=4)
    own, baseline = results.points[1], results.points[0]
    whole = time_percent(own, baseline)
    assert whole is not None and whole.n == 5
    first, *others = own.curves
    resumed = replace(first, epochs=(replace(first.epochs[0], resumed=True, epoch_s=900.0), *first.epochs[1:]))
    found = time_percent(replace(own, curves=(resumed, *others)), baseline)
    assert found is not None and found.n == 4 and found.high <= whole.high
    every = tuple(replace(curve, epochs=(replace(curve.epochs[0], resumed=True),)) for curve in own.curves)
    assert time_percent(replace(own, curves=every), baseline) is None


def test_a_study_with_a_recipe_of_its_own_has_the_cells_of_its_batches_and_says_so() -> None:
    results = published_samples.results_of("batch-sizes")
    rows = published_samples.beside_of(results).tables[0].rows
    for row, batch in enumerate((64, 128, 256, 512, 1024, 2048)):
        found = cell(results, row, "test_accuracy")
        if batch in (64, 512, 2048):
            assert found.value is not None and cell(results, row, "ranks").value == 2
            assert rows[row].notes == ("trained by the recipe scale, which is not the published training",)
        else:
            assert found.reason == f"This study has no point with batch global {batch}." and not rows[row].notes
    assert not any(
        row.notes for row in published_samples.beside_of(published_samples.usual("mnist-batch-size")).tables[0].rows
    )


@pytest.mark.parametrize("name", ["large-batch", "large-batch-causes"])
def test_a_batch_on_two_ranks_is_no_row_of_eight_processes(name: str) -> None:
    published = published_samples.beside_of(published_samples.results_of(name))
    assert published is not None and published.tables == ()
    assert [one.question.name for one in published.answers] == ["accuracy-falls-with-ranks"]


def test_a_failed_point_says_so() -> None:
    results = published_samples.results_of("mnist-batch-size", failed=lambda point: point.batch_global == 512)
    assert cell(results, 3, "test_accuracy").reason == "Failed: Rank 1 on node-a was killed by signal 9."
    assert cell(results, 2, "test_accuracy").value is not None


def test_one_factor_at_a_time_is_in_per_cent_of_the_baseline() -> None:
    results = published_samples.results_of("fashion-parameters", epoch_s=lambda point: 2.0 * point.threads)
    table = published_study("fashion-parameters").tables[0]
    two_cores = next(i for i, row in enumerate(table.rows) if row.names == ("cores", "2"))
    time = cell(results, two_cores, "time_pct")
    assert time.value is not None and 198 < float(time.value) < 202 and time.coverage is not None
    baseline = next(i for i, row in enumerate(table.rows) if row.names == ("neurons", "32"))
    assert cell(results, baseline, "time_pct").value == 100
    epochs = next(i for i, row in enumerate(table.rows) if row.names == ("epochs", "20"))
    assert 1980 < float(cell(results, epochs, "time_pct").value or 0) < 2020


def test_cpu_ranks_stand_in_for_gpus_once() -> None:
    """Four T4 and four V100 ask for the same: the first has our figures and says on what, the second a reason."""
    results = published_samples.usual("caltech256-gpus")
    rows = published_samples.beside_of(results).tables[0].rows
    assert rows[1].notes[0] == "CPU cores of this machine in place of T4"
    assert cell(results, 1, "job_s").value is not None
    assert "No V100 here" in cell(results, 2, "job_s").reason
    assert "8 ranks" in cell(results, 3, "job_s").reason


def test_gpus_of_the_published_kind_have_their_own_row() -> None:
    results = published_samples.usual("caltech256-gpus")
    assert results.machine is not None
    machine = replace(results.machine, gpus=("Tesla V100-SXM2-16GB",) * 4, devices=("cuda",) * 4)
    on_gpus = replace(results, machine=machine)
    assert cell(on_gpus, 2, "job_s").value is not None
    assert "No T4 here" in cell(on_gpus, 1, "job_s").reason
    assert cell(on_gpus, 0, "job_s").value is not None, "no row of two V100 has it"


def test_a_gpu_beside_cpus_has_no_stand_in() -> None:
    results = published_samples.usual("mnist-mpi")
    assert cell(results, 5, "epoch_s", table=1).reason == "No GPU here."


def test_epochs_and_the_test_of_a_sequential_study() -> None:
    results = published_samples.usual("fashion-sequential")
    first, test = cell(results, 0, "train_accuracy"), cell(results, 5, "eval_accuracy")
    assert first.n == 5 and first.std is not None and test.value is not None
    assert "after the last epoch" in cell(results, 0, "eval_accuracy").reason
    time = cell(results, 5, "time_s")
    assert time.n == 5 and time.low is not None and time.high is not None and 1.9 <= time.low <= time.high <= 2.1
    (only,) = results.points
    before = replace(only, phases=tuple(replace(phase, test_s=None) for phase in only.phases))
    old = replace(results, points=(before,))
    assert cell(old, 5, "time_s").reason == "Its runs are from before the test was timed."
    short = replace(
        results.points[0],
        curves=tuple(replace(curve, epochs=curve.epochs[:3]) for curve in results.points[0].curves),
    )
    cut = replace(results, points=(short,))
    assert cell(cut, 3, "train_accuracy").reason == "Not trained as far as epoch 4."


def test_rows_of_another_study_name_it() -> None:
    results = published_samples.usual("cifar10-nodes")
    assert cell(results, 2, "test_accuracy").reason == "In another study: paceline study cifar10-nodes-resnet50"
    assert cell(results, 0, "time_2_nodes_s").value is not None
    assert cell(results, 0, "test_accuracy").point_id == results.points[0].point_id


def test_a_diverged_training_has_no_accuracy() -> None:
    results = published_samples.results_of("mnist-mpi", accuracy=lambda point, run: float("nan"))
    assert "diverged" in cell(results, 0, "test_accuracy").reason
    assert published_comparison(published_study("mnist-mpi"), results).answers
