"""Open questions: verdicts follow the results, whichever way they come out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import published_samples
from paceline.analyze.published.answers import VERDICTS
from paceline.analyze.published.beside import beside
from paceline.records.counters import CpuTime, CpuTimes
from paceline.records.given import Complaint
from paceline.records.published import Answer
from paceline.records.results import Interval, PointResult, StudyResults
from paceline.records.study import Point
from paceline.studies.load import load_study, shipped_studies
from paceline.studies.published_tables import published_names, published_study

QUESTIONS = {q.name: q for name in published_names() for q in published_study(name).questions}


def answer(results: StudyResults, name: str) -> Answer:
    assert results.published is not None
    return next(one for one in results.published.answers if one.question.name == name)


def test_every_open_question_is_there_by_name() -> None:
    named = {
        *("transfer-at-chance", "fine-tune-worse", "two-nodes-slower", "same-time-any-nodes", "got-what-was-asked"),
        *("real-user-sys", "too-complex-models", "accuracy-falls-with-batch", "message-log"),
        *("hyper-parameters-vs-resources", "more-cores-slower", "overfitting", "what-made-the-cloud-faster"),
        *("checkpoint-cost", "best-split", "averaging-loses-precision", "epochs-to-stable-vs-ranks", "sixteen-gpus"),
        *("v100-equals-t4", "superlinear", "which-size-first", "accuracy-falls-with-ranks", "allreduce-instead"),
        *("partial-reads", "gpu", "model-parallel", "nodes-or-processes", "table-contradicts-itself"),
    }
    own = {"how-much-sooner"}  # what the printed table itself asks
    assert set(QUESTIONS) == named | own


@pytest.mark.parametrize("name", published_names())
def test_a_study_that_answers_a_question_has_it_in_its_own_report(name: str) -> None:
    """Whichever file asks it: a study that is named as answering has the question in the file that it names."""
    for question in published_study(name).questions:
        for study in question.studies:
            published = published_study(load_study(study).study.published)
            own = next((one for one in published.questions if one.name == question.name), None)
            assert own is not None and study in own.studies, (question.name, study)


def test_each_is_answered_by_a_shipped_study_or_says_what_it_waits_for() -> None:
    shipped = {study.name: study for study in shipped_studies()}
    for question in QUESTIONS.values():
        assert bool(question.studies) != bool(question.missing), question.name
        assert set(question.studies) <= set(shipped)
        assert bool(question.studies) == (question.name in VERDICTS)
    assert {QUESTIONS[name].missing != "" for name in ("sixteen-gpus", "model-parallel", "best-split")} == {True}


def test_other_studies_are_named_with_their_command() -> None:
    found = answer(published_samples.usual("fruits-gpus"), "averaging-loses-precision")
    assert not found.answered and found.command == "paceline study averaging"


@pytest.mark.parametrize(
    ("change", "word", "answered"),
    [(-0.03, "Yes, it fell", True), (0.0, "No: ", True), (0.03, "No, it rose", True)],
)
def test_accuracy_and_ranks(change: float, word: str, answered: bool) -> None:
    def accuracy(point: Point, run: int) -> float:
        return 0.95 + 0.0005 * run + (change + 0.0001 * (run % 3) if point.ranks > 1 else 0.0)

    found = answer(published_samples.results_of("mnist-mpi", accuracy=accuracy), "accuracy-falls-with-ranks")
    assert found.verdict.startswith(word) and found.answered == answered, found.verdict


def test_too_few_repeats_answer_nothing() -> None:
    found = answer(published_samples.results_of("mnist-batch-size", repeats=3), "accuracy-falls-with-batch")
    assert not found.answered and "five are needed" in found.verdict and found.figure


def test_noise_is_neither() -> None:
    def accuracy(point: Point, run: int) -> float:
        return 0.9 + 0.05 * ((run * point.batch_global) % 7) / 7

    found = answer(published_samples.results_of("mnist-batch-size", accuracy=accuracy), "accuracy-falls-with-batch")
    assert not found.answered and "neither different nor equal" in found.verdict


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
    beyond = published_samples.results_of("fruits-gpus", cores=4, epoch_s=lambda point: 8.0 / point.ranks**1.3)
    assert answer(beyond, "superlinear").verdict.startswith("It can")
    below = published_samples.results_of("fruits-gpus", cores=4, epoch_s=lambda point: 8.0 / point.ranks**0.9)
    assert answer(below, "superlinear").verdict.startswith("Not here")
    shared = published_samples.results_of("fruits-gpus", cores=1, epoch_s=lambda point: 8.0)
    assert not answer(shared, "superlinear").answered


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


def transfer(*overrides: str) -> Answer:
    """transfer-cifar10 where pixels that are scaled twice leave the head at chance, and small images do not."""

    def accuracy(point: Point, run: int) -> float:
        options = point.model.options
        usual = 0.85 if options["image_size"] == 112 else 0.52
        return (0.12 if options.get("preprocessing") == "twice" else usual) + 0.0001 * run

    results = published_samples.results_of("transfer-cifar10", accuracy=accuracy, overrides=overrides)
    return answer(results, "transfer-at-chance")


def test_what_leads_to_chance() -> None:
    whole = transfer()
    assert whole.answered and whole.figure == "12.03 ± 0.02 % in place of 85.03 ± 0.02 %"
    assert whole.verdict.startswith("Preprocessing twice in place of own leads to chance, all else equal")
    assert "Not so image size 32, which alone leaves 52.03" in whole.verdict
    one_size, right, wrong = "model.image_size=112", "model.preprocessing=own", "model.preprocessing=twice"
    assert transfer('model.preprocessing=["own","twice"]', one_size).verdict.endswith("Nothing else was changed.")
    for alone in (transfer(right, one_size), transfer(wrong, "model.image_size=32")):
        assert not alone.answered and "--set 'model.preprocessing" in alone.verdict and alone.lead == alone.verdict


def test_fine_tuning_has_a_study_of_its_own() -> None:
    found = answer(published_samples.usual("fine-tuning"), "fine-tune-worse")
    assert found.lead == "Fine-tuning made it better by +1.00 points [+1.00, +1.00] over 5 repeats."


@pytest.mark.parametrize("name", published_samples.ASKED)
def test_studies_that_repeat_no_row_have_their_questions_alone(name: str) -> None:
    published = published_samples.usual(name).published
    assert published is not None and published.tables == () == published.contradictions
    assert published.answers and all(name in one.question.studies for one in published.answers)


def test_how_much_sooner() -> None:
    def seconds(point: Point) -> float:
        return 8.0 / point.ranks * (1.2 if point.servers else 1.0)

    found = answer(published_samples.results_of("flowers-cloud", cores=4, epoch_s=seconds), "how-much-sooner")
    assert found.answered and found.verdict.startswith("It is over sooner: 2 workers and 1 server take 60.")
    assert "without servers take 49.8 %" in found.verdict and "says little" not in found.lead
    slow = published_samples.results_of("flowers-cloud", epoch_s=lambda point: 8.0 + 4 * point.servers)
    assert answer(slow, "how-much-sooner").lead.startswith("It takes longer")
    assert answer(slow, "how-much-sooner").lead.endswith("says little about scaling.")


@pytest.mark.parametrize(("gpu_s", "worth"), [(4.0, "2 CPU ranks"), (0.5, "more than 8 CPU ranks")])
def test_what_a_gpu_is_worth(gpu_s: float, worth: str) -> None:
    def seconds(point: Point) -> float:
        return gpu_s if point.device == "cuda" else 8.0 / point.ranks

    results = published_samples.results_of(
        "mnist-mpi", cores=4, epoch_s=seconds, overrides=["run.device=cpu,cuda", "run.hosts=1"]
    )
    assert results.machine is not None
    results = replace(results, machine=replace(results.machine, gpus=("Tesla V100",)))
    found = answer(published_samples.with_published(results), "gpu")
    assert found.answered and found.figure == worth and "] in all on " in found.verdict, found.verdict


def test_more_cores() -> None:
    slower = published_samples.results_of("fashion-parameters", epoch_s=lambda point: 2.0 + 0.2 * point.threads)
    assert answer(slower, "more-cores-slower").verdict.startswith("It is so")
    faster = published_samples.results_of("fashion-parameters", cores=4, epoch_s=lambda point: 2.0 / point.threads)
    assert answer(faster, "more-cores-slower").verdict.startswith("It pays")
    same = published_samples.results_of("fashion-parameters", cores=4, epoch_s=lambda point: 2.0)
    assert answer(same, "more-cores-slower").verdict.startswith("No difference can be shown")


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


def test_hosts_of_one_machine_may_be_faster_than_what_they_are_compared_with() -> None:
    results = on_hosts(0.8)
    (compared,) = (one for one in results.comparisons if one.ranks == 2)
    fastest, first = compared.points
    ratios = {first: compared.ratios[fastest], fastest: Interval(median=1.25, low=1.2, high=1.3, n=5, coverage=0.9375)}
    turned = replace(results, comparisons=(replace(compared, points=(first, fastest), ratios=ratios),))
    found = answer(published_samples.with_published(turned), "nodes-or-processes")
    assert found.figure.startswith("1.25 [1.20, 1.30] of the throughput on 2 hosts")


def test_got_what_was_asked() -> None:
    results = published_samples.usual("cifar10-nodes")
    assert "nothing differed" in answer(results, "got-what-was-asked").verdict
    assert results.machine is not None
    complaint = Complaint(name="no-gpu", severity="warning", what="It asked for a GPU.", right="", next="")
    wrong = replace(results, machine=replace(results.machine, complaints=(complaint,)))
    found = answer(published_samples.with_published(wrong), "got-what-was-asked")
    assert "no-gpu" in found.figure and "It asked for a GPU." in found.verdict


def test_stable_and_overfitting() -> None:
    results = published_samples.results_of("caltech256-gpus", cores=4)
    assert "epoch" in answer(results, "epochs-to-stable-vs-ranks").figure
    assert answer(results, "which-size-first").figure.startswith("8 ranks after")
    whole = answer(published_samples.usual("fashion-sequential"), "overfitting")
    assert whole.answered and whole.verdict.startswith("Not within 5 epochs")


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
    found = beside(published_study("caltech256-gpus"), results, {})
    return next(one for one in found.answers if one.question.name == "epochs-to-stable-vs-ranks")


def _stable_within(point: PointResult, low: int, high: int | None) -> PointResult:
    assert point.learning is not None and point.learning.stable is not None
    stable = replace(point.learning.stable, epoch=low, low=low, high=high)
    return replace(point, learning=replace(point.learning, stable=stable))


def test_resources() -> None:
    results = published_samples.usual("mnist-batch-size")
    times = {point.point_id: cpu_times(1e8 * point.point.batch_global) for point in results.points}
    found = beside(published_study("mnist-batch-size"), results, times)
    verdict = next(one for one in found.answers if one.question.name == "hyper-parameters-vs-resources")
    assert "messages of an epoch 346 MB → 11 MB" in verdict.figure and "→" in verdict.verdict
    assert "no meter" in verdict.verdict


def cpu_times(peak: float) -> CpuTimes:
    whole = CpuTime(
        **dict.fromkeys(field for field in CpuTime.__slots__ if field != "real_s"),
        real_s=9.0,
    )
    whole = replace(whole, user_s=8.0, system_s=1.0, peak_bytes=int(peak))
    said = "Real 9.00 s, user 8.00 s, sys 1.00 s: user and sys together are as long as real; it waited."
    return CpuTimes(whole=whole, processes=(), energy=(), sentence=said)


def test_real_user_and_sys() -> None:
    results = published_samples.usual("cifar10-nodes")
    times = {point.point_id: cpu_times(1e9) for point in results.points}
    found = beside(published_study("cifar10-nodes"), results, times)
    verdict = next(one for one in found.answers if one.question.name == "real-user-sys")
    said = f"{verdict.figure}. User and sys together are as long as real; it waited."
    assert verdict.verdict.partition(": ")[2] == said
    assert verdict.answered and verdict.figure == "real 9.00 s, user 8.00 s, sys 1.00 s" and "waited" in verdict.verdict


@pytest.mark.parametrize("repeats", [3, 5])
@pytest.mark.parametrize("cores", [2, 8])
@pytest.mark.parametrize("name", [*published_samples.STUDIES, *published_samples.ASKED])
def test_a_verdict_has_two_sentences_at_most(name: str, cores: int, repeats: int) -> None:
    results = published_samples.results_of(name, cores=cores, repeats=repeats)
    times = {point.point_id: cpu_times(1e9) for point in results.points}
    for one in beside(published_study(results.study.published), results, times).answers:
        assert one.verdict.endswith((".", "cuda")), one.verdict
        assert len(re.split(r"(?<=[.?]) ", one.verdict)) <= 2, one.verdict
        assert len(re.split(r"(?<=[.?]) ", one.lead)) <= 2, one.lead
