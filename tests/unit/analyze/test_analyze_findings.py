"""Each finding where the data show it, and only there."""

from __future__ import annotations

import inspect
import math

import pytest

from paceline.analyze.study import findings as module
from paceline.analyze.study.findings import FINDINGS
from paceline.analyze.study.study_results import study_results
from paceline.records.finding import Finding
from paceline.records.study import Study
from paceline.reporting.wording.finding_words import WORDS, finding_words
from samples.trace_samples import traces_of


@pytest.fixture
def told(point, run, machine, trace):
    """The findings of a study by name; a quiet one of 1 and 2 ranks, five runs each, where nothing is changed."""

    def told(runs=None, **changed) -> dict[str, Finding]:
        points = [point(1), point(2)]
        if runs is None:
            runs = quiet(point, run)
        at = 100_000_000_000
        whole = [("communicate", at, at + 5), ("collective", at, 0)]
        fields = {
            "traces": lambda chosen: traces_of(trace(whole, rank) for rank in range(chosen.ranks))(chosen),
            "machine": machine(),
            "machines": [machine()] * len(runs),
            "expected_runs": 10,
            "commits": ["0123456789abcdef"] * len(runs),
        }
        found = study_results(Study(name="by-hand"), "folder", points, runs, **(fields | changed)).findings
        for finding in found:
            assert finding.severity in ("info", "warning", "error")
            words = finding_words(finding)
            assert all((words.summary, words.cause, words.remedy))
        return {finding.code: finding for finding in found}

    return told


def quiet(point, run, slow: float = 4.0, fast: float = 2.1, **changed) -> list:
    times = (1.0, 1.01, 1.02, 1.0, 1.01)
    return [
        run(point(ranks), n, seconds * factor, **changed)
        for ranks, seconds in ((1, slow), (2, fast))
        for n, factor in enumerate(times, 1)
    ]


def test_a_quiet_study_has_nothing_to_tell(told) -> None:
    assert told() == {}


def test_every_finding_is_listed() -> None:
    written = [
        value
        for value in vars(module).values()
        if inspect.isfunction(value) and value.__annotations__.get("return") == "Finding | None"
    ]
    assert sorted(find.__name__ for find in FINDINGS.values()) == sorted(find.__name__ for find in written)
    assert set(WORDS) == {*FINDINGS, "failed"}


def test_missing_runs(told, point, run) -> None:
    runs = quiet(point, run)[:-3]
    found = told(runs)["missing-runs"]
    assert (found.severity, found.values["finished"], found.values["expected"]) == ("warning", 7, 10)
    failed = told(runs, failures={point(2).point_id: "Rank 1 was killed by SIGKILL.\nSee its log."})["missing-runs"]
    assert (failed.severity, failed.points) == ("error", (point(2).point_id,))
    assert failed.values["failures"] == (("2 ranks", "Rank 1 was killed by SIGKILL."),)


def test_a_baseline_that_was_not_timed(told, point, run) -> None:
    found = told(quiet(point, run)[5:])["baseline-missing"]
    assert found.values == {"used": "2 ranks", "wanted": "1 rank"}


def test_more_ranks_than_cores(told, point, run) -> None:
    runs = quiet(point, run)[:5] + quiet(point, run, oversubscribed=True)[5:]
    found = told(runs)["more-ranks-than-cores"]
    assert found.values == {"cores": 2, "threads": (("2 ranks", 1),)}
    assert found.points == (point(2).point_id,)


def test_hyper_threads_are_not_cores(told, machine) -> None:
    found = told(machines=[machine(cores=1, logical_cores=2)] * 10)["ranks-share-physical-cores"]
    assert found.values == {"cores": 1, "threads": (("2 ranks", 1),)}


def test_on_a_gpu_what_was_only_queued_is_null(told, point, run) -> None:
    found = told(quiet(point, run, device="cuda"))["incomplete-ledger"]
    assert {gap.code for gap in found.values["gaps"]} == {"gpu-step-undivided"}


def test_superlinear(told, point, run) -> None:
    found = told(quiet(point, run, fast=1.5))["superlinear"]
    assert [(label, figure.median) for label, figure in found.values["efficiencies"]] == [
        ("2 ranks", pytest.approx(4 / 3))
    ]
    assert "superlinear" not in told(quiet(point, run, fast=1.95)), "within the drift of a machine"
    assert "superlinear" not in told(quiet(point, run, fast=1.5)[::5]), "one run of each has no interval"


def test_an_interval_that_reaches_below_is_not_superlinear(told, point, run) -> None:
    runs = quiet(point, run)[:5] + [run(point(2), n, s) for n, s in enumerate((1.5, 1.5, 2.2, 1.5, 1.5), 1)]
    assert "superlinear" not in told(runs)


def test_a_loss_that_is_not_finite(told, point, run) -> None:
    runs = quiet(point, run)[:9] + [run(point(2), 5, 2.1, test_loss=math.nan)]
    found = told(runs)["diverged"]
    assert [found.values[name] for name in ("found", "runs", "label")] == [1, 10, "2 ranks"]
    assert (found.values["first"].run, found.values["first"].why.code) == (5, "test-loss-not-finite")
    assert found.points == (point(2).point_id,)


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"versions": {"torch": "2.12", "paceline": "0.1.0"}}, {("torch", 1): {"2.13": 9, "2.12": 1}}),
        ({"cpu": "another"}, {("processor", 1): {"a processor": 9, "another": 1}}),
        ({"hosts": ("there",)}, {("host", 1): {"here": 9, "there": 1}}),
        ({"devices": ("cuda:0", "cuda:1")}, {("device", 1): {"cpu": 9, "cuda": 1}}),
    ],
)
def test_a_mixed_environment(told, machine, changed, shown) -> None:
    found = told(machines=[machine()] * 9 + [machine(**changed)])["mixed-environment"]
    assert found.values["mixed"] == shown


def test_different_commits_are_a_mixed_environment(told) -> None:
    found = told(commits=["0123456789abcdef"] * 9 + ["fedcba9876543210"])["mixed-environment"]
    assert found.values["mixed"] == {("commit", 1): {"0123456789": 9, "fedcba9876": 1}}


def test_unknown_environments_are_no_difference(told) -> None:
    assert told(machines=[None] * 10, commits=[None] * 10) == {}


def test_a_noisy_machine(told, point, run) -> None:
    runs = quiet(point, run)[:5] + [run(point(2), n, s) for n, s in enumerate((2.0, 2.1, 2.1, 2.1, 2.42), 1)]
    found = told(runs)["noisy-machine"]
    assert [found.values[name] for name in ("found", "points", "worst")] == [1, 2, "2 ranks"]
    assert found.values["width"] == pytest.approx(0.2)
    assert found.points == (point(2).point_id,)


def test_few_repeats(told, point, run) -> None:
    runs = quiet(point, run)
    found = told(runs[:3] + runs[5:], expected_runs=8)["few-repeats"]
    assert (found.severity, found.points) == ("info", (point(1).point_id,))
    assert found.values["fewest"] == 3
    assert told(runs[:2] + runs[5:], expected_runs=7)["few-repeats"].severity == "warning"


def test_a_small_timed_part(told, point, run) -> None:
    found = told(quiet(point, run, fast=0.3, slow=0.6))["small-timed-part"]
    assert found.values == {"script": False, "shortest_s": pytest.approx(0.3), "limit_s": 0.5}
    assert found.points == (point(2).point_id,)


def test_warm_up_in_times(told, point, run, epoch) -> None:
    runs = quiet(point, run)[:5] + [run(point(2), n, epochs=(epoch(1, 2.1),)) for n in range(1, 6)]
    assert told(runs)["warm-up-in-times"].points == (point(2).point_id,)


def test_resumed_runs(told, point, run) -> None:
    runs = quiet(point, run)
    resumed = run(point(2), 5, 2.1, total_s=None, resumed_from_step=50)
    found = told([*runs[:9], resumed])["resumed-runs"]
    assert found.severity == "info"
    assert found.values["resumed"] == ({"run": 5, "label": "2 ranks", "step": 50, "note": resumed.resume_note},)
    noted = run(point(2), 5, 2.1, total_s=None, resumed_from_step=50, resume_note="torch 2.12 then, 2.13 now")
    found = told([*runs[:9], noted])["resumed-runs"]
    assert found.severity == "warning"
    assert found.values["resumed"][0]["note"] == "torch 2.12 then, 2.13 now"


def test_an_incomplete_ledger(told, trace) -> None:
    found = told(traces=traces_of(()))["incomplete-ledger"]
    assert [gap.code for gap in found.values["gaps"]] == ["no-spans", "no-spans"]
