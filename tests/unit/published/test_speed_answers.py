"""Verdicts about speed: nodes, hosts, GPUs, reads, and more than the ideal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.published.records import Answer
from paceline.records.results import Interval, StudyResults
from paceline.records.study import Point
from samples import published_samples
from samples.published_samples import answer


@pytest.mark.parametrize(
    ("shared", "word"), [(1.4, "Two are faster"), (2.8, "Two are slower"), (2.0, "The two cannot be told apart")]
)
def test_two_nodes(shared: float, word: str) -> None:
    """Total times: two ranks train half the epochs, so an epoch that takes twice as long makes them equal."""

    def seconds(point: Point) -> float:
        return 4.0 * (shared if point.ranks == 2 else 1.0)

    found = answer(published_samples.results_of("cifar10-nodes", epoch_s=seconds), "two-nodes-slower")
    assert found.answered and found.verdict.startswith(word), found.verdict
    assert "times the samples/s" in found.verdict


def test_the_same_time_on_any_nodes() -> None:
    same = published_samples.results_of("cifar10-nodes-efficientnet", cores=4, epoch_s=lambda point: 4.0)
    assert "cannot be told apart" in answer(same, "same-time-any-nodes").verdict
    shared = published_samples.results_of("cifar10-nodes-efficientnet", cores=4)
    assert answer(shared, "same-time-any-nodes").verdict.startswith("No, sharing pays")


def test_superlinear() -> None:
    def beyond(repeats: int) -> Answer:
        def seconds(point: Point) -> float:
            return 8.0 / point.ranks**1.3

        results = published_samples.results_of("fruits-gpus", cores=4, epoch_s=seconds, repeats=repeats)
        return answer(results, "superlinear")

    assert beyond(6).answered and beyond(6).verdict.startswith("It can")
    picked = beyond(5)
    assert not picked.answered and "of 2 sizes one may be so by chance with 5 repeats" in picked.verdict
    assert picked.verdict.endswith("(--repeats 6).")
    below = published_samples.results_of("fruits-gpus", cores=4, epoch_s=lambda point: 8.0 / point.ranks**0.9)
    assert answer(below, "superlinear").verdict.startswith("Not here")
    shared = published_samples.results_of("fruits-gpus", cores=1, epoch_s=lambda point: 8.0)
    assert not answer(shared, "superlinear").answered


@pytest.mark.parametrize(("gpu_s", "worth"), [(4.0, "2 CPU ranks"), (0.5, "more than 8 CPU ranks")])
def test_what_a_gpu_is_worth(gpu_s: float, worth: str) -> None:
    def seconds(point: Point) -> float:
        return gpu_s if point.device == "cuda" else 8.0 / point.ranks

    results = published_samples.results_of(
        "mnist-mpi", cores=4, epoch_s=seconds, overrides=["run.device=cpu,cuda", "run.hosts=1"]
    )
    assert results.machine is not None
    results = replace(results, machine=replace(results.machine, gpus=("Tesla V100",)))
    found = answer(results, "gpu")
    assert found.answered and found.figure == worth and "] in all on " in found.verdict, found.verdict


def test_hosts_and_gpus_that_are_not_here() -> None:
    results = published_samples.usual("mnist-mpi")
    assert not answer(results, "nodes-or-processes").answered
    assert "GPU" in answer(results, "gpu").verdict and not answer(results, "gpu").answered
    assert not answer(published_samples.usual("caltech256-gpus"), "v100-equals-t4").answered


def on_hosts(of_two: float) -> StudyResults:
    """mnist-mpi on one host and on two, which take so many times as long."""
    return published_samples.results_of(
        "mnist-mpi",
        epoch_s=lambda point: 10.0 / point.ranks * (of_two if point.hosts == 2 else 1.0),
        overrides=["run.hosts=1,2", "run.ranks_per_host=1,2", 'launch.machines=["a", "b"]', "launch.interface=eth0"],
    )


def test_equal_ranks_on_more_hosts() -> None:
    slower, faster, alike = (answer(on_hosts(times), "nodes-or-processes").verdict for times in (1.25, 0.8, 1.0))
    assert slower.startswith("It matters: 0.") and "throughput on 2 hosts against 1 host, 2 ranks" in slower
    assert faster.startswith("It matters: 0.") and "throughput on 1 host against 2 hosts, 2 ranks" in faster
    assert alike.startswith("They cannot be told apart: ")


def test_the_furthest_of_several_hosts_has_to_stand_a_correction() -> None:
    """Of three numbers of hosts there are three pairs: five repeats cannot call the furthest of them."""
    results = on_hosts(1.25)
    (compared,) = (one for one in results.comparisons if one.ranks == 2)
    two = next(point for point in results.points if (point.point.ranks, point.point.hosts) == (2, 2))
    four = replace(two, point_id="four", point=replace(two.point, hosts=4))
    ratios = {**compared.ratios, "four": Interval(median=0.7, low=0.69, high=0.71, n=5, coverage=0.9375)}

    def said(coverage: float) -> Answer:
        changed = {**ratios, "four": replace(ratios["four"], coverage=coverage)}
        more = replace(compared, points=(*compared.points, "four"), ratios=changed)
        with_four = replace(results, points=(*results.points, four), comparisons=(more,))
        return answer(with_four, "nodes-or-processes")

    picked = said(0.9375)
    assert not picked.answered and "of 3 pairs one may be so by chance with 5 repeats" in picked.verdict
    assert said(0.984).answered and said(0.984).verdict.startswith("It matters: 0.700")


def test_hosts_of_one_machine_may_be_faster_than_what_they_are_compared_with() -> None:
    results = on_hosts(0.8)
    (compared,) = (one for one in results.comparisons if one.ranks == 2)
    fastest, first = compared.points
    ratios = {first: compared.ratios[fastest], fastest: Interval(median=1.25, low=1.2, high=1.3, n=5, coverage=0.9375)}
    turned = replace(results, comparisons=(replace(compared, points=(first, fastest), ratios=ratios),))
    found = answer(turned, "nodes-or-processes")
    assert found.figure.startswith("1.25 [1.20, 1.30] of the throughput on 2 hosts")
