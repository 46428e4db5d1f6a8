"""Verdicts about what was given and used: allocation check, messages, memory, real, user and sys."""

from __future__ import annotations

from dataclasses import replace

from paceline.published.beside import published_comparison
from paceline.published.records import Answer
from paceline.published.table_files import published_study
from paceline.records.allocation import Complaint
from samples import published_samples
from samples.published_samples import answer, cpu_times


def test_got_what_was_asked() -> None:
    """Only where a GPU was asked for and missing do runs, which then have to be forced, show whether one is told."""

    def found(device: str, given: str, complaint: str = "") -> Answer:
        results = published_samples.results_of("cifar10-nodes", overrides=[f"run.device={device}"])
        assert results.machine is not None
        said = Complaint(name=complaint, severity="fatal", what="Rank 1 has none.", right="", next="")
        machine = replace(results.machine, devices=(given,) * 2, complaints=(said,) if complaint else ())
        return answer(replace(results, machine=machine), "got-what-was-asked")

    missing = found("cuda", "cpu", "no-gpu")
    assert missing.answered and missing.verdict.endswith("(run.device cuda, given cpu): Rank 1 has none.")
    there = found("cuda", "cuda:0")
    assert not there.answered and there.figure == "run.device cuda, given cuda"
    for complaint in ("", "shared-cores"):
        nobody = found("auto", "cpu", complaint)
        assert not nobody.answered and nobody.verdict.startswith(
            "No GPU was asked for here (run.device auto, given cpu)"
        )
        assert complaint in nobody.verdict


def test_resources() -> None:
    results = published_samples.usual("mnist-batch-size")
    times = {point.point_id: cpu_times(1e8 * point.point.batch_global) for point in results.points}
    found = published_comparison(published_study("mnist-batch-size"), results, times)
    verdict = next(one for one in found.answers if one.question.name == "hyper-parameters-vs-resources")
    assert verdict.figure.startswith("from batch 64 to 2,048: messages of an epoch 346 MB → 11 MB; memory of a rank")
    assert verdict.verdict.endswith(
        "No meter for energy can be read here, and of all settings this covers batch: others are varied with --set."
    )


def test_resources_by_every_setting_that_varies() -> None:
    overrides = ["train.batch_global=64,128", "train.precision=float32,bfloat16", "run.ranks=1,2"]
    results = published_samples.results_of("mnist-batch-size", overrides=overrides)
    times = {point.point_id: cpu_times(1e8 * point.point.ranks) for point in results.points}
    found = published_comparison(published_study("mnist-batch-size"), results, times)
    verdict = next(one for one in found.answers if one.question.name == "hyper-parameters-vs-resources")
    assert "; from precision float32 to bfloat16: " in verdict.figure
    assert verdict.figure.endswith("memory of a rank 100 MB → 200 MB") and "; from ranks 1 to 2: " in verdict.figure
    assert "this covers batch, precision, ranks" in verdict.verdict


def test_real_user_and_sys() -> None:
    results = published_samples.usual("cifar10-nodes")
    times = {point.point_id: cpu_times(1e9) for point in results.points}
    found = published_comparison(published_study("cifar10-nodes"), results, times)
    verdict = next(one for one in found.answers if one.question.name == "real-user-sys")
    assert verdict.figure in verdict.verdict and verdict.figure in verdict.opening
    assert verdict.verdict.endswith("it waited.") and not verdict.opening.endswith("it waited.")
    assert verdict.answered and verdict.figure == "real 9.00 s, user 8.00 s, sys 1.00 s" and "waited" in verdict.verdict
