"""What a study has spent, from its folder, and what its next run would: `--budget`."""

import csv
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from study_help import FakeLauncher, failing_at, loaded, result

from paceline.errors import RankError, RequestError
from paceline.launch.launcher import Outcome, Progress
from paceline.records.run import CachedFeatures
from paceline.storage.folder import StudyFolder
from paceline.studies.execute.budget import Budget, attempts, check_budget
from paceline.studies.execute.events import Event, StudyStopped
from paceline.studies.execute.execute import Execution, execute
from paceline.studies.execute.time_left import Pace
from paceline.studies.expand.expand import expand, schedule
from paceline.studies.folder.estimates import Estimates, counted_processes

HOUR_S = 3600


class Timed(FakeLauncher):
    """Every run takes an hour, as far as its result says."""

    def __init__(self, wall_s: float = HOUR_S, **options) -> None:
        super().__init__(**options)
        self.wall_s = wall_s

    def run(self, folder, manifest, *, heartbeat_s, progress=lambda progress: None) -> Outcome:
        outcome = super().run(folder, manifest, heartbeat_s=heartbeat_s, progress=progress)
        return replace(outcome, ended_at_ns=outcome.started_at_ns + round(self.wall_s * 1e9))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def go(tmp_path: Path, folder: Path):
    def go(launcher: FakeLauncher, *overrides: str, events: list[Event] | None = None, **options) -> Execution:
        told = {"preflight": False, "cache": tmp_path / "cache", **options}
        heard = [] if events is None else events
        return execute(loaded(tmp_path, *overrides), folder, events=heard.append, launcher=launcher, **told)

    return go


def spent_h(folder: Path) -> float:
    return Budget(1.0, StudyFolder(folder), Estimates()).spent_h


def test_a_study_stops_before_it_would_spend_more(go, folder: Path) -> None:
    heard: list[Event] = []
    # 1 rank: 1 h, 2 ranks: 2 h, and again 2 h: the fourth run, 1 h more, would make it 6.
    done = go(Timed(), budget_h=5.5, events=heard)
    assert (done.ran, spent_h(folder)) == (3, 5.0)
    assert done.stopped is not None and done.stopped.startswith(
        "Stopped: the budget is 5.5 rank-hours, 5.00 are spent, and the next run would take about 1.00 more."
    )
    (stopped,) = [event for event in heard if isinstance(event, StudyStopped)]
    assert (stopped.index, stopped.run.point.ranks, stopped.reason) == (4, 1, done.stopped)
    assert go(Timed(), budget_h=5.5).ran == 0, "what was spent is known from the folder"
    assert go(Timed(), budget_h=6.0).stopped is None
    assert spent_h(folder) == 6.0


def test_without_a_budget_nothing_is_refused(go) -> None:
    assert go(Timed()).ran == 4
    assert go(Timed()).stopped is None


def test_a_finished_study_is_within_any_budget(go) -> None:
    go(Timed())
    assert go(Timed(), budget_h=0.001).stopped is None


def test_failed_attempts_are_spent_too_and_kept_over_the_next_ones(go, folder: Path) -> None:
    go(Timed(before=failing_at((2, 1))), "run.repeats=1")
    (run,) = folder.glob("points/2-ranks*/runs/1")
    failed = age(run, 5 * HOUR_S)
    assert [attempt.attempt for attempt in failed] == [1]
    assert spent_h(folder) == pytest.approx(1 + 2 * failed[0].wall_s / HOUR_S)
    go(Timed(), "run.repeats=1")
    first, second = attempts(StudyFolder(folder).run(run.parent.parent.name, 1))
    assert (first, second.attempt, second.wall_s) == (failed[0], 2, HOUR_S)
    with (run / "attempts.csv").open() as file:
        assert [line["attempt"] for line in csv.DictReader(file)] == ["1"], "the last one is known by its result"
    assert spent_h(folder) == pytest.approx(3 + 2 * first.wall_s / HOUR_S)


def age(run: Path, seconds: float):
    """Make an attempt look as if its last file had been written so long after its launch."""
    for path in run.rglob("*"):
        at = time.time() + seconds
        os.utime(path, (at, at))
    (run / "failure.json").unlink()
    found = attempts(StudyFolder(run.parents[3]).run(run.parent.parent.name, 1))
    assert [attempt.wall_s for attempt in found] == pytest.approx([seconds], abs=60)
    return found


def test_servers_count_and_coordinators_do_not(tmp_path: Path) -> None:
    study = loaded(tmp_path, "run.strategy=parameter-server", "run.servers=3").study
    one, two = expand(study, data_digest="", model_digest="")
    assert (counted_processes(one), counted_processes(two), two.processes) == (4, 5, 6)


def test_time_in_a_queue_is_not_spent(go, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("paceline.studies.execute.execute.Pace", lambda estimates: Pace(estimates, clock=lambda: now))

    class Queued(FakeLauncher):
        def run(self, folder, manifest, *, heartbeat_s, progress=lambda progress: None) -> Outcome:
            nonlocal now
            now += 100 * HOUR_S
            progress(Progress(step=0, total_steps=0, phase="queued (Resources)"))
            now += HOUR_S
            raise RankError("Rank 0 of 1 died.")

    done = go(Queued(), "run.ranks=1", "run.threads=1,2", "run.repeats=1", budget_h=1.5)
    assert len(done.failures) == 2 and done.stopped is None, "an hour was spent before the second run, not a hundred"


def test_files_that_somebody_spoilt_are_no_obstacle(go, folder: Path) -> None:
    go(Timed(), "run.repeats=1")
    for run in folder.glob("points/*/runs/1"):
        (run / "attempts.csv").write_bytes(b"\xff\xfe" if "1-rank-" in str(run) else b"launched_at,attempt\nx,y\n")
        (run / "manifest.json").write_text("{")
    assert spent_h(folder) == 0.0


@pytest.mark.parametrize("limit_h", [0.0, -1.0, float("nan"), float("inf")])
def test_a_budget_is_a_number_of_hours(limit_h: float, go, folder: Path) -> None:
    with pytest.raises(RequestError, match="is not a number of rank-hours"):
        check_budget(limit_h)
    with pytest.raises(RequestError):
        go(Timed(), budget_h=limit_h)
    assert not folder.exists()


class TestEstimates:
    @pytest.fixture
    def runs(self, tmp_path: Path):
        study = loaded(tmp_path, "run.ranks=1,2,4", "train.batch_global=8").study
        return schedule(expand(study, data_digest="", model_digest=""), 1)

    def test_a_point_takes_what_it_took(self, runs) -> None:
        estimates = Estimates(lambda data: 60)
        assert estimates.wall_s(runs[0].point) is None and not estimates.measured
        for wall_s in (10.0, 30.0, 20.0):
            estimates.add(runs[0].point, result(runs[0], wall_s=wall_s))
        assert (estimates.wall_s(runs[0].point), estimates.rank_s(runs[0].point)) == (20.0, 20.0)

    @pytest.mark.parametrize(("found", "next_s"), [(False, 20.0), (True, 300.0)])
    def test_features_that_a_run_has_computed_are_there_for_the_next(self, runs, found, next_s) -> None:
        estimates = Estimates(lambda data: 60)
        made = CachedFeatures(samples=70, size=8, ready_s=280.0, found=found)
        estimates.add(runs[0].point, replace(result(runs[0], wall_s=300.0), features=made))
        assert estimates.wall_s(runs[0].point) == next_s

    def test_a_point_that_never_ran_is_scaled_from_others_by_the_work_of_a_rank(self, runs) -> None:
        estimates = Estimates(lambda data: 60)
        one, two, four = (run.point for run in runs)
        assert estimates.wall_s(two) is None
        estimates.add(one, result(runs[0], wall_s=11.0, trained_s=8.0))
        assert (estimates.wall_s(two), estimates.wall_s(four)) == (3 + 4, 3 + 2)
        assert estimates.rank_s(four) == 20
        estimates.add(two, result(runs[1], wall_s=9.0, trained_s=4.0))
        assert estimates.wall_s(four) == (5 + 7) / 2

    def test_twice_the_steps_are_twice_the_work(self, tmp_path: Path) -> None:
        study = loaded(tmp_path, "train.steps=10,20", "run.ranks=2").study
        short, long = schedule(expand(study, data_digest="", model_digest=""), 1)
        estimates = Estimates()
        estimates.add(short.point, result(short, wall_s=5.0, trained_s=4.0))
        assert estimates.wall_s(long.point) == 1 + 8

    def test_before_the_first_run_a_few_steps_tell(self, runs) -> None:
        estimates = Estimates(lambda data: 60, sample_s=lambda point: 0.5)
        one, two, _ = (run.point for run in runs)
        assert (estimates.wall_s(one), estimates.wall_s(two), estimates.rank_s(two)) == (60.0, 30.0, 60.0)
        assert not estimates.measured

    def test_a_run_that_went_on_from_a_checkpoint_tells_nothing(self, runs) -> None:
        estimates = Estimates(lambda data: 60)
        estimates.add(runs[0].point, replace(result(runs[0], wall_s=1.0), resumed_from_step=8))
        assert not estimates.measured
