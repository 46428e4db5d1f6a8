"""Verdicts of one thing changed at a time: threads, workers, servers, checkpoints, the exchange."""

from __future__ import annotations

from collections.abc import Callable

from paceline.published.records import Answer
from paceline.records.study import Point
from samples import published_samples
from samples.published_samples import answer


def test_how_much_sooner() -> None:
    def seconds(point: Point) -> float:
        return 8.0 / point.ranks * (1.2 if point.servers else 1.0)

    results = published_samples.results_of("flowers-cloud", cores=4, epoch_s=seconds, overrides=["run.ranks=1,2"])
    found = answer(results, "how-much-sooner")
    assert found.answered and found.verdict.startswith("It is over sooner: 2 workers and 1 server take 60.")
    assert "without servers take 49.8 %" in found.verdict and "says little" not in found.opening
    slow = published_samples.results_of("flowers-cloud", epoch_s=lambda point: 8.0 + 4 * point.servers)
    assert answer(slow, "how-much-sooner").opening.startswith("It takes longer")
    assert answer(slow, "how-much-sooner").opening.endswith("says little about scaling.")


def threads(seconds: Callable[[int], float], counts: str = "1,2,3,4", *, cores: int = 2, repeats: int = 5) -> Answer:
    """fashion-parameters by the time that so many threads take for an epoch."""
    results = published_samples.results_of(
        "fashion-parameters",
        cores=cores,
        epoch_s=lambda point: seconds(point.threads),
        overrides=[f"run.threads={counts}"],
        repeats=repeats,
    )
    return answer(results, "more-cores-slower")


def test_two_threads_against_one() -> None:
    slower = threads(lambda count: 2.0 + 0.2 * count)
    assert slower.verdict.startswith("Two threads are slower than one: 109 %") and not slower.answered
    assert "beyond four it takes a machine with more than the 2 cores of this one" in slower.verdict
    assert "not shown" in threads(lambda count: 2.0).verdict
    few = threads(lambda count: 2.0 / count, repeats=3)
    assert not few.answered and "five are needed" in few.verdict


def test_threads_beyond_the_cores_decide_nothing() -> None:
    crowded = threads(lambda count: 2.0 if count < 3 else 9.0)
    assert crowded.verdict.startswith("Two threads are not shown to be slower or faster than one: ")
    assert "3 threads" not in crowded.figure and "left out: 2 of 3 points" in crowded.verdict
    alone = threads(lambda count: 2.0, cores=1)
    assert not alone.answered and alone.verdict.startswith("No point with more threads than one has a core for each.")


def test_more_than_four_threads() -> None:
    both = threads(lambda count: 2.2 if count == 2 else 2.0 / count, "1,2,8", cores=8)
    assert both.answered and both.verdict.startswith("Two threads are slower than one: 110 %")
    assert "8 threads are faster than one: 12" in both.verdict
    not_run = threads(lambda count: 2.0, cores=8)
    assert not not_run.answered and "--set run.threads=1,2,4,8" in not_run.verdict


def test_what_made_the_cloud_faster_and_what_checkpoints_cost() -> None:
    def seconds(point: Point) -> float:
        return 8.0 / point.ranks * (1.3 if point.train.checkpoint_every else 1.0)

    results = published_samples.results_of("flowers-cloud-controlled", cores=4, epoch_s=seconds)
    cloud = answer(results, "what-made-the-cloud-faster").verdict
    assert "Changed alone, workers made it faster, steps between checkpoints made it slower" in cloud
    cost = answer(results, "checkpoint-cost")
    assert cost.verdict.startswith("Checkpoints cost time") and "131 % [129, 131]" in cost.figure
    free = published_samples.results_of("flowers-cloud-controlled", cores=4, epoch_s=lambda point: 8.0)
    assert answer(free, "checkpoint-cost").verdict.startswith("No difference can be shown")


def test_the_exchange() -> None:
    def seconds(point: Point) -> float:
        return 3.0 if point.strategy == "mpi-allreduce" else 4.0

    results = published_samples.results_of("mnist-mpi-exchange", epoch_s=seconds)
    assert answer(results, "allreduce-instead").verdict.startswith("It pays")
    assert answer(results, "partial-reads").verdict.startswith("They cannot be told apart")
