"""The verdict, its remarks and the next step: what is claimed, and what is not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from paceline.records.finding import Finding
from paceline.records.results import Interval, StudyResults
from paceline.reporting.wording.next_commands import next_step, repeat_steps
from paceline.reporting.wording.verdict_words import remarks, shown_findings, verdict
from samples import published_samples
from samples import report_samples as samples


def with_speedup(results: StudyResults, median: float, low: float, high: float, **more: object) -> StudyResults:
    """The last point with this speed-up instead of its own."""
    last = results.points[-1]
    ranks = last.point.ranks
    speedup = Interval(median=median, low=low, high=high, n=5, coverage=0.9375)
    efficiency = replace(speedup, median=median / ranks, low=low / ranks, high=high / ranks)
    changed = replace(last, speedup=speedup, efficiency=efficiency, **more)  # type: ignore[arg-type]
    return replace(results, points=(*results.points[:-1], changed))


def test_a_finished_study_is_one_sentence_with_figures_and_interval() -> None:
    assert verdict(samples.two_points()) == (
        "2 ranks train 1.88 times as fast as 1 (interval 1.83 to 1.91): 94 % of the ideal."
    )


def test_the_verdict_is_about_the_most_ranks() -> None:
    assert verdict(samples.typical()).startswith("4 ranks train 3.50 times as fast as 1")


def test_fewer_than_five_repeats_give_a_range_and_one_gives_nothing() -> None:
    assert "(range 1.83 to 1.91)" in verdict(samples.few_repeats())
    assert "interval 1" not in verdict(samples.few_repeats())
    assert "(1 run, no interval)" in verdict(samples.partial())


def test_a_partial_study_says_so_first() -> None:
    assert verdict(samples.partial()).startswith("3 of 15 runs are finished; so far, 2 ranks train")
    assert verdict(samples.nothing_finished()) == "No run is finished yet (0 of 15): there is nothing to report."


def test_slower_and_undecided_are_not_called_faster() -> None:
    slower = verdict(with_speedup(samples.two_points(), 0.71, 0.68, 0.74))
    assert slower == (
        "2 ranks are slower than 1: they train 0.710 times as fast (interval 0.680 to 0.740), 36 % of the ideal."
    )
    undecided = verdict(with_speedup(samples.two_points(), 1.02, 0.97, 1.08))
    assert "no clear difference" in undecided and "51 % of the ideal" in undecided


def test_ranks_that_share_cores_are_left_out_or_owned_up_to() -> None:
    results = samples.oversubscribed()
    assert verdict(results).startswith("2 ranks train 1.88 times as fast as 1")
    assert remarks(results)[-1] == "Runs with 4 ranks had to share cores; the verdict leaves them out."
    alone = with_speedup(samples.two_points(), 1.1, 1.05, 1.2, oversubscribed=True)
    assert "share cores, so this says little" in verdict(alone)
    assert not any("lost" in remark for remark in remarks(alone))


def test_one_point_says_its_throughput() -> None:
    assert verdict(samples.single_point()) == (
        "1 rank processes 1,216 samples/s (interval 1,201 to 1,226): 9.87 s an epoch."
    )
    assert verdict(samples.unmeasured_everywhere()) == "No finished run has a time that counts."


def test_weak_scaling_speaks_of_samples() -> None:
    results = samples.two_points()
    weak = replace(results, study=replace(results.study, run=replace(results.study.run, scaling="weak")))
    assert verdict(weak).startswith("2 ranks process samples 1.88 times as fast as 1")


def test_the_lost_part_is_named_only_where_the_ledgers_support_it() -> None:
    supported = remarks(samples.two_points())[0]
    assert supported == ("The largest part of what was lost is waiting for the slowest rank: 4 % of the training time.")
    # Communication was not measured.
    assert not any("lost" in remark for remark in remarks(samples.diverged()))
    # The ledger shows a loss of 6 %, the epochs one of 40 %: something else is the cause.
    contradicted = with_speedup(samples.two_points(), 1.2, 1.19, 1.21)
    assert not any("lost" in remark for remark in remarks(contradicted))
    # Nothing was lost.
    assert not any("lost" in remark for remark in remarks(with_speedup(samples.two_points(), 2.05, 2.01, 2.08)))


def test_failures_and_findings_come_most_severe_first_and_once() -> None:
    results = samples.failed()
    info = Finding(code="warm-up-in-times", severity="info", values={"found": 1, "points": 2})
    shown = shown_findings(replace(results, findings=(info,)))
    assert [note.severity for note in shown] == ["error", "info"]
    assert shown[0].summary.startswith("Rank 3 on node-a was killed") and shown[0].about == "4 ranks"
    assert shown[0].cause == "Its log: runs/1/logs/rank-0003.log"
    failed = next(point for point in results.points if point.failure)
    values = {"finished": 8, "expected": 9, "failures": ((failed.label, shown[0].summary),), "points": 3}
    missing = Finding(code="missing-runs", severity="error", values=values, points=(failed.point_id,))
    assert [note.name for note in shown_findings(replace(results, findings=(missing,)))] == ["missing-runs"]


def test_next_step_goes_on_with_what_is_unfinished() -> None:
    step = next_step(samples.partial())
    assert step.command == "paceline study studies/mnist-scaling/study.toml --out studies/mnist-scaling"
    assert next_step(samples.failed()).text.startswith("Fix what failed")


def test_next_step_asks_for_repeats_then_for_ranks_then_for_another_strategy() -> None:
    assert "--repeats 5" in next_step(samples.few_repeats()).command
    roomy = samples.two_points()
    assert roomy.machine is not None
    roomy = replace(roomy, machine=replace(roomy.machine, cores=8))
    assert "--ranks 1,2,4" in next_step(roomy).command
    hopeless = with_speedup(roomy, 0.7, 0.6, 0.8)
    assert "--set run.strategy=flat" in next_step(hopeless).command
    assert next_step(samples.two_points()).command.endswith("run.strategy=flat --out studies/mnist-scaling-flat")
    assert next_step(samples.single_point()).command == "paceline doctor"
    lonely = samples.typical(ranks=(4,))
    assert "--ranks 1,4" in next_step(lonely).command


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mnist-mpi", ("2 ranks process samples 1.98 times as fast", "Test accuracy is equal within 0.5 points")),
        ("mnist-mpi-exchange", ("an all-reduce takes 99.9 %", "Reading parts takes 50.0 ms against 50.0 ms")),
        ("mnist-batch-size", ("Test accuracy falls: 95.96", "messages of an epoch 346 MB → 11 MB")),
        ("fashion-sequential", ("8.12 s an epoch", "cannot be seen in 5 epochs", "87.4 % and 96.6 %")),
        ("flowers-cloud", ("2 workers and 1 server take 50.7 %", "says little about scaling")),
        ("flowers-cloud-controlled", ("each changed alone: workers 2: 50.5 %",)),
        ("cifar10-nodes", ("18.3 s [18.2, 18.3] in all on two ranks", "with 3 ranks")),
        ("cifar10-nodes-efficientnet", ("No, sharing pays", "Fine-tuning made it better by +1.00 points")),
        ("cifar10-nodes-resnet50", ("1.98 times as fast", "Fine-tuning made it better by +1.00 points")),
        ("fruits-gpus", ("1.98 times as fast", "No interval lies above the ideal")),
        ("caltech256-gpus", ("epoch 11 [10, 13] on 2", "The first to be stable: 4 ranks")),
        ("averaging", ("No, equal within 0.5 points",)),
        ("transfer-cifar10", ("it reaches 96.26", "where chance among 10 classes is 10 %")),
        ("fine-tuning", ("Fine-tuning made it better by +1.00 points",)),
        ("large-batch", ("A larger batch need not cost accuracy: 96.06", "equal within 0.5 points")),
        ("large-batch-causes", ("Nothing that was changed alone at the same batch of 1,024",)),
        ("batch-sizes", ("A larger batch costs accuracy with a recipe that fits it, too: 95.96",)),
    ],
)
def test_a_study_of_a_published_one_answers_its_own_question(name: str, said: tuple[str, ...]) -> None:
    text = verdict_of(published_samples.usual(name))
    assert all(part in text for part in said), text
    assert len(re.split(r"(?<=\.) ", text)) <= 3, text


def verdict_of(results: StudyResults) -> str:
    return published_samples.model_of(results).verdict


def test_where_nothing_was_measured_for_its_question_the_times_answer() -> None:
    few = verdict_of(published_samples.results_of("mnist-batch-size", repeats=3))
    assert few.count("With 3 repeats that is no test") == 1 and "Test accuracy is " in few
    one = published_samples.results_of("mnist-batch-size", failed=lambda point: point.batch_global != 64)
    assert verdict_of(one).startswith("5 of 30 runs are finished; so far, test accuracy is ")
    assert "with 2 ranks, batch global 64" in verdict_of(one)
    part = published_samples.results_of("mnist-batch-size", failed=lambda point: point.batch_global == 128)
    assert verdict_of(part).startswith("25 of 30 runs are finished; so far, test accuracy falls: ")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("cifar10-nodes", "paceline study cifar10-nodes-efficientnet"),
        ("cifar10-nodes-efficientnet", "paceline study cifar10-nodes-resnet50"),
        ("cifar10-nodes-resnet50", "paceline study transfer-cifar10"),
        ("mnist-mpi", "paceline study large-batch-causes"),
        ("mnist-batch-size", "paceline study batch-sizes"),
        ("flowers-cloud", "paceline study flowers-cloud-controlled"),
        ("fruits-gpus", "paceline study averaging"),
        ("caltech256-gpus", "paceline study averaging"),
    ],
)
def test_next_is_what_the_published_study_has_in_another(name: str, command: str) -> None:
    assert published_samples.model_of(published_samples.usual(name)).next_step.command == command


@pytest.mark.parametrize("name", ["mnist-mpi-exchange", "flowers-cloud-controlled"])
def test_next_is_the_full_size_after_the_last_of_them(name: str) -> None:
    step = published_samples.model_of(published_samples.usual(name)).next_step
    assert f"runs/{name}/study.toml --size full --dry-run" in step.command


def test_commands_are_quoted_for_a_shell() -> None:
    results = replace(samples.partial(), folder="my study; rm -rf x")
    assert next_step(results).command == "paceline study 'my study; rm -rf x/study.toml' --out 'my study; rm -rf x'"
    assert repeat_steps(results)[-1].command == "paceline report 'my study; rm -rf x'"
