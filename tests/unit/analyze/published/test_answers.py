"""Open questions: verdicts follow the results, whichever way they come out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import published_samples
from paceline.analyze.published.answers import VERDICTS
from paceline.analyze.published.beside import beside
from paceline.records.counters import CpuTime, CpuTimes
from paceline.records.given import Complaint
from paceline.records.learning import Turn
from paceline.records.published import Answer
from paceline.records.results import Interval, PointResult, StudyResults
from paceline.records.study import Point
from paceline.report.phase_tables import gain_sentences
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
    ("change", "word"), [(-0.03, "It falls here: "), (0.0, "It does not fall here: "), (0.03, "It rises here: ")]
)
def test_accuracy_and_ranks(change: float, word: str) -> None:
    """Whether it falls is said; whether the batch is to blame is left to the study that separates the two."""

    def accuracy(point: Point, run: int) -> float:
        return 0.95 + 0.0005 * run + (change + 0.0001 * (run % 3) if point.ranks > 1 else 0.0)

    found = answer(published_samples.results_of("mnist-mpi", accuracy=accuracy), "accuracy-falls-with-ranks")
    assert found.verdict.startswith(word) and not found.answered, found.verdict
    assert "paceline study large-batch-causes" in found.verdict and found.lead.startswith("Test accuracy ")
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
    assert found.answered and found.verdict.startswith(word) and found.lead.startswith(word), found.verdict
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
    assert found.verdict.endswith("nothing is shown for train.schedule cosine.") and found.lead == found.verdict
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


def test_what_leads_to_chance_takes_five_repeats_and_every_run() -> None:
    def accuracy(point: Point, run: int) -> float:
        return (0.12 if point.model.options.get("preprocessing") == "twice" else 0.85) + 0.0001 * run

    few = published_samples.results_of("transfer-cifar10", accuracy=accuracy, repeats=4)
    found = answer(few, "transfer-at-chance")
    assert not found.answered and found.verdict.endswith(
        "With 4 repeats that is no test: five are needed (--repeats 5)."
    )

    def one_learns(point: Point, run: int) -> float:
        return 0.22 if run == 1 and accuracy(point, run) < 0.2 else accuracy(point, run)

    mixed = answer(published_samples.results_of("transfer-cifar10", accuracy=one_learns), "transfer-at-chance")
    assert not mixed.answered and "some runs with 112 pixels and preprocessing twice may be there" in mixed.verdict

    def one_dies(point: Point, run: int) -> float:
        return 0.1 if run == 1 else accuracy(point, run)

    dying = answer(published_samples.results_of("transfer-cifar10", accuracy=one_dies), "transfer-at-chance")
    assert not dying.answered, "no point is free of runs at chance"


def test_fine_tuning_names_the_point_that_the_report_speaks_of() -> None:
    results = published_samples.usual("fruits-gpus")
    asked = replace(published_study("cifar10-nodes"), asked_alone=("fruits-gpus",))
    questions = tuple(replace(q, studies=("fruits-gpus",)) for q in asked.questions if q.name == "fine-tune-worse")
    (found,) = beside(replace(asked, questions=questions), results).answers
    (said,) = gain_sentences(results)
    assert "over 5 repeats with 1 rank." in found.verdict and "test accuracy of 1 rank by" in said


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

    results = published_samples.results_of("flowers-cloud", cores=4, epoch_s=seconds, overrides=["run.ranks=1,2"])
    found = answer(results, "how-much-sooner")
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
        return answer(published_samples.with_published(with_four), "nodes-or-processes")

    picked = said(0.9375)
    assert not picked.answered and "of 3 pairs one may be so by chance with 5 repeats" in picked.verdict
    assert said(0.984).answered and said(0.984).verdict.startswith("It matters: 0.700")


def test_hosts_of_one_machine_may_be_faster_than_what_they_are_compared_with() -> None:
    results = on_hosts(0.8)
    (compared,) = (one for one in results.comparisons if one.ranks == 2)
    fastest, first = compared.points
    ratios = {first: compared.ratios[fastest], fastest: Interval(median=1.25, low=1.2, high=1.3, n=5, coverage=0.9375)}
    turned = replace(results, comparisons=(replace(compared, points=(first, fastest), ratios=ratios),))
    found = answer(published_samples.with_published(turned), "nodes-or-processes")
    assert found.figure.startswith("1.25 [1.20, 1.30] of the throughput on 2 hosts")


def test_got_what_was_asked() -> None:
    """Only where a GPU was asked for and missing do the runs show whether one is told."""

    def found(device: str, given: str, complaint: str = "") -> Answer:
        results = published_samples.results_of("cifar10-nodes", overrides=[f"run.device={device}"])
        assert results.machine is not None
        said = Complaint(name=complaint, severity="warning", what="Rank 1 has none.", right="", next="")
        machine = replace(results.machine, devices=(given,) * 2, complaints=(said,) if complaint else ())
        return answer(published_samples.with_published(replace(results, machine=machine)), "got-what-was-asked")

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
        shown = answer(published_samples.with_published(wide), "which-size-first")
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
    return answer(published_samples.with_published(replace(results, points=(narrow, wide))), "overfitting")


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
    assert verdict.figure.startswith("from batch 64 to 2,048: messages of an epoch 346 MB → 11 MB; memory of a rank")
    assert verdict.verdict.endswith(
        "No meter for energy can be read here, and of all settings this covers batch: others are varied with --set."
    )


def test_resources_by_every_setting_that_varies() -> None:
    overrides = ["train.batch_global=64,128", "train.precision=float32,bfloat16", "run.ranks=1,2"]
    results = published_samples.results_of("mnist-batch-size", overrides=overrides)
    times = {point.point_id: cpu_times(1e8 * point.point.ranks) for point in results.points}
    found = beside(published_study("mnist-batch-size"), results, times)
    verdict = next(one for one in found.answers if one.question.name == "hyper-parameters-vs-resources")
    assert "; from precision float32 to bfloat16: " in verdict.figure
    assert verdict.figure.endswith("memory of a rank 100 MB → 200 MB") and "; from ranks 1 to 2: " in verdict.figure
    assert "this covers batch, precision, ranks" in verdict.verdict


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
@pytest.mark.parametrize("name", [*published_samples.STUDIES, *published_samples.ASKED, *published_samples.OTHERWISE])
def test_a_verdict_has_two_sentences_at_most(name: str, cores: int, repeats: int) -> None:
    results = published_samples.results_of(name, cores=cores, repeats=repeats)
    times = {point.point_id: cpu_times(1e9) for point in results.points}
    for one in beside(published_study(results.study.published), results, times).answers:
        assert one.verdict.endswith((".", "cuda")), one.verdict
        assert len(re.split(r"(?<=[.?]) ", one.verdict)) <= 2, one.verdict
        assert len(re.split(r"(?<=[.?]) ", one.lead)) <= 2, one.lead
