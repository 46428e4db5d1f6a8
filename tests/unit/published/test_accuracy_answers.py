"""Verdicts about accuracy: what ranks, batches and averaging cost, and what is to blame."""

from __future__ import annotations

import pytest

from paceline.published.records import Answer
from paceline.records.results import StudyResults
from paceline.records.study import Point
from samples import published_samples
from samples.published_samples import answer


@pytest.mark.parametrize(
    ("change", "word"), [(-0.03, "It falls here: "), (0.0, "It does not fall here: "), (0.03, "It rises here: ")]
)
def test_accuracy_and_ranks(change: float, word: str) -> None:
    """Whether it falls is said; whether the batch is to blame is left to the study that separates the two."""

    def accuracy(point: Point, run: int) -> float:
        return 0.95 + 0.0005 * run + (change + 0.0001 * (run % 3) if point.ranks > 1 else 0.0)

    found = answer(published_samples.results_of("mnist-mpi", accuracy=accuracy), "accuracy-falls-with-ranks")
    assert found.verdict.startswith(word) and not found.answered, found.verdict
    assert "paceline study large-batch-causes" in found.verdict and found.opening.startswith("Test accuracy ")
    divided = published_samples.results_of("cifar10-nodes", accuracy=accuracy)
    cost = answer(divided, "accuracy-falls-with-ranks")
    assert cost.verdict.startswith(word) and cost.answered and "all three at once" in cost.verdict


@pytest.mark.parametrize(("change", "word"), [(-0.03, "It falls here: "), (0.0, "A larger batch need not cost")])
def test_accuracy_and_batch_at_one_rate(change: float, word: str) -> None:
    """That it falls at one rate does not say that it has to; that it does not, says that it need not."""
    found = answer(larger_batch("mnist-batch-size", change), "accuracy-falls-with-batch")
    assert found.verdict.startswith(word) and found.answered == (change == 0.0), found.verdict


@pytest.mark.parametrize(
    ("change", "word"), [(-0.03, "A larger batch costs accuracy with a recipe that"), (0.0, "A larger batch need not")]
)
@pytest.mark.parametrize(
    ("name", "question"),
    [("batch-sizes", "accuracy-falls-with-batch"), ("large-batch", "accuracy-falls-with-ranks")],
)
def test_accuracy_and_batch_with_a_recipe(name: str, question: str, change: float, word: str) -> None:
    found = answer(larger_batch(name, change), question)
    assert found.answered and found.verdict.startswith(word) and found.opening.startswith(word), found.verdict
    assert found.verdict.endswith("(train.recipe = scale).")
    few = answer(larger_batch(name, change, repeats=3), question)
    assert not few.answered and "five are needed (--repeats 5)" in few.verdict


def larger_batch(name: str, change: float, repeats: int = 5) -> StudyResults:
    """A study of batches whose accuracy changes beyond 1,000 samples."""

    def accuracy(point: Point, run: int) -> float:
        return 0.95 + 0.0005 * run + (change + 0.0001 * (run % 3) if point.batch_global > 1000 else 0.0)

    return published_samples.results_of(name, accuracy=accuracy, repeats=repeats)


def causes(repeats: int = 6, lower_rate: float = 0.02, dead_run: int = 0) -> Answer:
    """large-batch-causes where a lower rate and a warm-up help, a schedule does nothing, and a run may be dead."""

    def accuracy(point: Point, run: int) -> float:
        noise = 0.0002 * ((7 * run + round(10 * point.train.warmup_epochs)) % 5)
        helped = point.train.lr < 0.001 or point.train.warmup_epochs > 0
        return 0.96 + noise + (lower_rate if helped else 0.0)

    def dead(point: Point, run: int) -> bool:
        return run == dead_run and point.train.lr == 0.001 and not point.train.warmup_epochs

    return answer(
        published_samples.results_of("large-batch-causes", accuracy=accuracy, repeats=repeats, dead=dead),
        "accuracy-falls-with-ranks",
    )


def test_what_costs_accuracy_at_one_batch() -> None:
    found = causes()
    assert found.answered and found.verdict.startswith("Not the batch alone: at the same batch of 1,024 train.lr 0.00")
    assert "train.lr 0.000125 in place of 0.001 is +2.00 points [" in found.figure
    assert "train.warmup_epochs 0.5 in place of 0.0 is +" in found.figure and "schedule" not in found.figure
    assert found.verdict.endswith("nothing is shown for train.schedule cosine.") and found.opening == found.verdict
    none = causes(lower_rate=0.0)
    assert not none.answered and none.verdict.startswith("Nothing that was changed alone at the same batch of 1,024")
    worse = causes(lower_rate=-0.02)
    assert not worse.answered, "what makes it worse is no cause of the fall"


def test_a_dead_run_is_left_out_of_the_causes_and_named() -> None:
    found = causes(dead_run=2)
    assert found.answered and "+2.00 points" in found.figure
    left = "1 of 6 runs at the baseline, 1 of 6 runs with train.schedule cosine"
    assert found.verdict.endswith(f"Learned nothing and left out: {left}.")
    few = causes(repeats=5, dead_run=2)
    assert not few.answered and few.verdict.endswith("repeat it once more (--repeats 6).")


def test_figures_beside_a_test_say_which_runs_it_is_without() -> None:
    def dead(point: Point, run: int) -> bool:
        return point.batch_global == 2048 and run == 2

    def batches(repeats: int, *, change: float = 0.0) -> Answer:
        results = published_samples.results_of(
            "mnist-batch-size",
            accuracy=lambda point, run: 0.95 + 0.0001 * run + (change if point.batch_global == 2048 else 0.0),
            repeats=repeats,
            dead=dead,
        )
        return answer(results, "accuracy-falls-with-batch")

    alike = batches(6)
    without = "without those that learned nothing (1 of 6 runs with a batch of 2,048)"
    assert not alike.answered and without in alike.verdict and "need not" not in alike.verdict
    assert alike.verdict.endswith(
        "Nothing is called equal where a run learned nothing; more repeats may show a difference."
    )
    apart = batches(6, change=-0.03)
    assert apart.verdict.startswith("It falls here: ") and without in apart.verdict and "-3.00 points" in apart.figure
    assert batches(5).verdict.endswith(
        "With 4 repeats that learned there is no test: repeat it once more (--repeats 6)."
    )


def test_averaging_is_not_called_harmless_where_a_run_died_of_it() -> None:
    results = published_samples.results_of(
        "averaging",
        accuracy=lambda point, run: 0.95 + 0.0001 * run,
        repeats=6,
        dead=lambda point, run: (point.ranks, run) == (4, 3),
    )
    found = answer(results, "averaging-loses-precision")
    assert not found.answered and "(1 of 6 runs on 4)" in found.verdict and "called equal" in found.verdict


def test_too_few_repeats_answer_nothing() -> None:
    found = answer(published_samples.results_of("mnist-batch-size", repeats=3), "accuracy-falls-with-batch")
    assert not found.answered and "five are needed" in found.verdict and found.figure


def test_noise_is_neither() -> None:
    def accuracy(point: Point, run: int) -> float:
        return 0.9 + 0.05 * ((run * point.batch_global) % 7) / 7

    found = answer(published_samples.results_of("mnist-batch-size", accuracy=accuracy), "accuracy-falls-with-batch")
    assert not found.answered and "neither different nor equal" in found.verdict


@pytest.mark.parametrize(
    ("change", "noise", "word", "answered"),
    [(0.0, 0.0002, "No, equal", True), (-0.03, 0.0002, "Yes, it fell", True), (0.0, 0.02, "95.15", False)],
)
def test_averaging(change: float, noise: float, word: str, answered: bool) -> None:
    def accuracy(point: Point, run: int) -> float:
        return 0.95 + 0.0005 * run + (change + noise * (run % 3 - 1) if point.ranks == 4 else 0.0)

    found = answer(published_samples.results_of("averaging", accuracy=accuracy), "averaging-loses-precision")
    assert found.verdict.startswith(word) and found.answered == answered and "points" in found.figure, found.verdict
    few = published_samples.results_of("averaging", accuracy=accuracy, repeats=3)
    assert not answer(few, "averaging-loses-precision").answered
    alone = published_samples.results_of("averaging", overrides=["run.ranks=1"])
    assert "--ranks 1,2,4" in answer(alone, "averaging-loses-precision").verdict
