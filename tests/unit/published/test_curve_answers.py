"""Verdicts about learning curves: overfitting, epochs to stable, which size is first."""

from __future__ import annotations

import re
from dataclasses import replace

from paceline.published.beside import published_comparison
from paceline.published.records import Answer
from paceline.published.table_files import published_study
from paceline.records.learning import Turn
from paceline.records.results import PointResult, StudyResults
from paceline.records.study import Point
from samples import published_samples
from samples.published_samples import answer


def test_stable() -> None:
    results = published_samples.results_of("caltech256-gpus", cores=4)
    assert "epoch" in answer(results, "epochs-to-stable-vs-ranks").figure


def test_which_size_is_first_is_shown_where_no_interval_overlaps() -> None:
    results = published_samples.results_of("caltech256-gpus", cores=4)
    found = answer(results, "which-size-first")
    assert found.answered and re.match(r"8 ranks after [\d.]+ s \[[\d.]+, [\d.]+\]$", found.figure), found.figure
    assert "the ends of both intervals are multiplied" in found.verdict
    first, *others = results.points
    for span in ((1, 30), (1, None)):
        wide = replace(results, points=(first, *(_stable_within(point, *span) for point in others)))
        shown = answer(wide, "which-size-first")
        assert not shown.answered and shown.verdict.startswith("Which is first is not shown")
    assert ", –] on " in shown.verdict or shown.figure.endswith(", –]")
    few = answer(published_samples.results_of("caltech256-gpus", cores=4, repeats=3), "which-size-first")
    assert not few.answered and "five are needed" in few.verdict


def overfits(epochs: int, *, test: float = 0.8, turned: bool = False) -> Answer:
    """fashion-sequential with two sizes of the network, the wider of which is a point better in the test."""

    def accuracy(point: Point, run: int) -> float:
        return test + 0.0001 * run + (0.01 if point.model.options["neurons"] == 64 else 0.0)

    overrides = [f"train.epochs={epochs}", "model.neurons=32,64"]
    results = published_samples.results_of("fashion-sequential", accuracy=accuracy, overrides=overrides)
    narrow, wide = results.points
    assert wide.learning is not None
    if turned:
        wide = replace(wide, learning=replace(wide.learning, turn=Turn(epoch=7, rise=0.1, fall=0.2)))
    return answer(replace(results, points=(narrow, wide)), "overfitting")


def test_overfitting() -> None:
    whole = overfits(12)
    assert whole.answered and whole.verdict.startswith("Not within 12 epochs with 1 rank, 32 neurons: ")
    turned = overfits(12, turned=True)
    assert turned.answered and turned.verdict.startswith("Yes, from epoch 7 on with 1 rank, 64 neurons: ")
    assert turned.verdict.endswith("and 81.0 %."), "the test of the point that turned"
    assert whole.verdict.endswith("and 80.0 %.")


def test_overfitting_takes_epochs_enough_and_a_training_that_fits() -> None:
    short = overfits(5)
    assert (
        not short.answered
        and "cannot be seen in 5 epochs: it takes 6 at least (--set train.epochs=12)" in short.verdict
    )
    early = overfits(12, test=0.97)
    assert not early.answered and "the samples are not fitted yet" in early.verdict
    assert early.verdict.endswith("More epochs would show it (--set train.epochs=24).")


def test_an_open_interval_of_epochs_to_stable_is_never_before_another() -> None:
    results = published_samples.results_of("caltech256-gpus", cores=4)
    spans = iter([(4, 5), (8, 9), (12, None)])
    closed = replace(results, points=tuple(_stable_within(point, *next(spans)) for point in results.points))
    found = _stable_answer(closed)
    assert found.verdict.startswith("More ranks need more epochs") and "[12, –]" in found.figure
    spans = iter([(4, None), (8, 9), (12, None)])
    open_end = replace(results, points=tuple(_stable_within(point, *next(spans)) for point in results.points))
    assert "Not that it could be shown" in _stable_answer(open_end).verdict


def _stable_answer(results: StudyResults) -> Answer:
    found = published_comparison(published_study("caltech256-gpus"), results, {})
    return next(one for one in found.answers if one.question.name == "epochs-to-stable-vs-ranks")


def _stable_within(point: PointResult, low: int, high: int | None) -> PointResult:
    assert point.learning is not None and point.learning.stable is not None
    stable = replace(point.learning.stable, epoch=low, low=low, high=high)
    return replace(point, learning=replace(point.learning, stable=stable))
