import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from study_help import FakeLauncher, changed, failing_at, loaded, results

from paceline.errors import DataError, FolderError, ModelError, RequestError, StorageError
from paceline.records.run import Machine, Manifest, RunResult
from paceline.storage.codec import read_record
from paceline.storage.folder import StudyFolder
from paceline.studies.execute import execute as execute_module
from paceline.studies.execute import job as job_module
from paceline.studies.execute.events import (
    DataReady,
    Event,
    Note,
    RunFailed,
    RunFinished,
    RunProgress,
    RunSkipped,
    RunStarted,
    StudyStarted,
)
from paceline.studies.execute.execute import Execution, execute
from paceline.studies.execute.preflight import Built
from paceline.studies.folder.bookkeeping import Failure, StudyPoints
from paceline.studies.folder.lock import StudyLock
from paceline.studies.load.load import load_study

IN_ORDER = [(1, 1), (2, 1), (2, 2), (1, 2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def go(tmp_path: Path, folder: Path) -> Callable[..., Execution]:
    """Executes the tiny study, with no preflight and a cache of its own."""

    def run(launcher: FakeLauncher, *overrides: str, events: list[Event] | None = None, **options) -> Execution:
        heard = [] if events is None else events
        told = {"preflight": False, "cache": tmp_path / "cache", **options}
        return execute(loaded(tmp_path, *overrides), folder, events=heard.append, launcher=launcher, **told)

    return run


def run_folders(folder: Path):
    return [
        StudyFolder(folder).run(path.parts[-4], int(path.parts[-2]))
        for path in folder.glob("points/*/runs/*/result.json")
    ]


def test_every_run_is_executed_once_interleaved_over_points(go, folder: Path) -> None:
    launcher = FakeLauncher()
    done = go(launcher)
    assert launcher.order == IN_ORDER
    assert (done.ran, done.skipped, done.failures, done.folder) == (4, 0, {}, folder)
    assert len(results(folder)) == 4
    for place in run_folders(folder):
        manifest, result = read_record(place.manifest, Manifest), read_record(place.result, RunResult)
        assert (result.point_id, result.run, result.seed) == (manifest.point_id, manifest.run, 9 + manifest.run)
        assert read_record(place.machine, Machine).affinity == tuple((rank,) for rank in range(result.ranks))
        assert manifest.attempt == 1 and Path(manifest.data_folder, "dataset.json").exists()
    assert not (folder / "lock").exists()


def test_the_folder_says_what_was_run(go, folder: Path, tmp_path: Path) -> None:
    go(FakeLauncher(), "train.lr=0.5")
    assert load_study(folder / "study.toml").study == loaded(tmp_path, "train.lr=0.5").study
    record = read_record(folder / "points.json", StudyPoints)
    assert record.study.train.lr == 0.5 and [point.ranks for point in record.points] == [1, 2]
    assert {point.point_id for point in record.points} == {path.name for path in (folder / "points").iterdir()}


def test_a_finished_study_is_left_as_it_is(go, folder: Path) -> None:
    go(FakeLauncher())
    before, again = results(folder), FakeLauncher()
    done = go(again)
    assert (done.ran, done.skipped, again.order) == (0, 4, [])
    assert results(folder) == before


def test_a_study_that_was_stopped_goes_on_with_what_is_missing(go, folder: Path) -> None:
    def stop(manifest: Manifest) -> None:
        if (manifest.point.ranks, manifest.run) == (2, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(FakeLauncher(before=stop))
    assert not (folder / "lock").exists()
    before, again = results(folder), FakeLauncher()
    done = go(again)
    assert (again.order, done.ran, done.skipped) == ([(2, 2), (1, 2)], 2, 2)
    assert [manifest.attempt for manifest in again.manifests] == [2, 1]
    assert before.items() <= results(folder).items()


def test_checkpoints_of_an_earlier_attempt_are_left_for_the_ranks(go, folder: Path) -> None:
    def stop(manifest: Manifest) -> None:
        place = StudyFolder(folder).run(manifest.point_id, manifest.run)
        (place.checkpoints / "step-000004").mkdir(parents=True)
        (place.path / ".result.json.abc.tmp").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(FakeLauncher(before=stop))

    def look(manifest: Manifest) -> None:
        place = StudyFolder(folder).run(manifest.point_id, manifest.run)
        assert place.checkpoints.exists() == (manifest.attempt == 2)
        assert not list(place.path.glob(".*.tmp"))

    go(FakeLauncher(before=look))


def test_more_repeats_and_more_ranks_add_to_what_is_there(go, folder: Path) -> None:
    go(FakeLauncher())
    before, again = results(folder), FakeLauncher()
    go(again, "run.ranks=1,2,4", "run.repeats=3")
    assert sorted(again.order) == [(1, 3), (2, 3), (4, 1), (4, 2), (4, 3)]
    assert before.items() <= results(folder).items()
    assert len(read_record(folder / "points.json", StudyPoints).points) == 3


def test_other_settings_are_other_points_and_leave_the_old_ones_alone(go, folder: Path) -> None:
    go(FakeLauncher())
    before, again = results(folder), FakeLauncher()
    go(again, "train.lr=0.5")
    assert len(again.order) == 4 and before.items() <= results(folder).items() and len(results(folder)) == 8
    assert not {manifest.point_id for manifest in again.manifests} & {Path(name).parts[1] for name in before}


def test_a_failed_run_ends_its_point_and_not_the_study(go, folder: Path) -> None:
    events: list[Event] = []
    launcher = FakeLauncher(before=failing_at((2, 1)))
    done = go(launcher, "run.repeats=3", events=events)
    assert launcher.order == [(1, 1), (2, 1), (1, 2), (1, 3)]
    ((point_id, message),) = done.failures.items()
    assert point_id.startswith("2-ranks-") and message == "Rank 0 of 1 died.\nRanks live.\nLook at its log."
    assert (done.ran, done.skipped) == (3, 0)
    failure = read_record(StudyFolder(folder).run(point_id, 1).failure, Failure)
    assert (failure.message, failure.attempt) == (message, 1)
    assert [event.run.number for event in events if isinstance(event, RunFailed)] == [1]
    assert [event.run.number for event in events if isinstance(event, RunSkipped)] == [2, 3]

    again = FakeLauncher()
    done = go(again, "run.repeats=3")
    assert (again.order, done.failures) == ([(2, 1), (2, 2), (2, 3)], {})
    assert again.manifests[0].attempt == 2
    assert not StudyFolder(folder).run(point_id, 1).failure.exists()


def test_ranks_that_end_with_different_weights_fail_their_run(go, folder: Path) -> None:
    def differ(reports):
        return [changed(report, weights_sha256=f"{report.rank}") for report in reports]

    done = go(FakeLauncher(change=differ))
    assert len(results(folder)) == 2
    (message,) = done.failures.values()
    assert "other weights" in message


def test_a_full_disk_stops_the_study_at_once(go, folder: Path) -> None:
    def full(manifest: Manifest) -> None:
        if manifest.point.ranks == 2:
            raise StorageError("No space left while writing x.")

    launcher = FakeLauncher(before=full)
    with pytest.raises(StorageError, match="No space left"):
        go(launcher)
    assert launcher.order == [(1, 1), (2, 1)]
    assert len(results(folder)) == 1 and not (folder / "lock").exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "foreign", "of another run", "no manifest", "damaged manifest"])
def test_a_damaged_run_is_moved_aside_and_run_again(go, folder: Path, damage: str) -> None:
    go(FakeLauncher())
    place = next(place for place in run_folders(folder) if place.path.name == "1")
    contents = place.result.read_bytes()
    other = next(other for other in run_folders(folder) if other.path.name == "2")
    {
        "empty": lambda: place.result.write_bytes(b""),
        "cut": lambda: place.result.write_bytes(contents[:100]),
        "foreign": lambda: place.result.write_text(json.dumps({"schema": "else/1"})),
        "of another run": lambda: place.result.write_bytes(other.result.read_bytes()),
        "no manifest": place.manifest.unlink,
        "damaged manifest": lambda: place.manifest.write_bytes(b"{"),
    }[damage]()
    left = place.result.read_bytes()
    events: list[Event] = []
    launcher = FakeLauncher()
    done = go(launcher, events=events)
    assert (done.ran, done.skipped, done.failures) == (1, 3, {})
    assert (place.path.with_name("1.damaged-1") / "result.json").read_bytes() == left
    (note,) = [event.text for event in events if isinstance(event, Note)]
    assert "1.damaged-1" in note and "run again" in note
    assert go(FakeLauncher()).skipped == 4


def test_a_damaged_manifest_of_an_unfinished_run_does_no_harm(go, folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(FakeLauncher(before=lambda manifest: (_ for _ in ()).throw(KeyboardInterrupt)))
    (manifest,) = folder.glob("points/*/runs/1/manifest.json")
    manifest.write_text("{")
    assert go(FakeLauncher()).ran == 4


def test_events_tell_the_whole_story(go) -> None:
    events: list[Event] = []
    go(FakeLauncher(), events=events)
    names = [type(event) for event in events]
    assert names == [DataReady, StudyStarted] + [RunStarted, RunProgress, RunFinished] * 4
    started = events[1]
    assert isinstance(started, StudyStarted)
    assert (started.total, started.finished, started.placements) == (4, 0, ("1 nowhere", "2 nowhere"))
    progress = [event for event in events if isinstance(event, RunProgress)]
    assert [event.fraction for event in progress] == [0.5] * 4
    assert progress[0].left_s is None and all(event.left_s is not None for event in progress[1:])
    assert [(event.index, event.total) for event in progress] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    again: list[Event] = []
    go(FakeLauncher(), events=again)
    assert [type(event) for event in again] == [DataReady, StudyStarted] + [RunSkipped] * 4
    assert isinstance(again[1], StudyStarted) and again[1].finished == 4


def test_oversubscription_is_kept_with_the_result(go, folder: Path) -> None:
    go(FakeLauncher(), "run.ranks=[2, 4]", "run.repeats=1")
    found = {
        read_record(place.result, RunResult).ranks: read_record(place.result, RunResult)
        for place in run_folders(folder)
    }
    assert (found[2].oversubscribed, found[4].oversubscribed) == (False, True)


class TestFolders:
    def test_an_empty_folder_will_do(self, go, folder: Path) -> None:
        folder.mkdir()
        assert go(FakeLauncher()).ran == 4

    @pytest.mark.parametrize("fresh", [False, True])
    def test_a_folder_that_is_not_a_study_is_left_alone(self, go, folder: Path, fresh: bool) -> None:
        folder.mkdir()
        (folder / "thesis.tex").write_text("x")
        launcher = FakeLauncher()
        with pytest.raises(FolderError, match="is not a study"):
            go(launcher, fresh=fresh)
        assert [path.name for path in folder.iterdir()] == ["thesis.tex"] and not launcher.order

    def test_a_file_is_no_folder(self, go, folder: Path) -> None:
        folder.write_text("x")
        with pytest.raises(FolderError, match="is a file"):
            go(FakeLauncher())

    def test_what_a_study_leaves_that_was_killed_at_its_very_start_is_no_obstacle(self, go, folder: Path) -> None:
        folder.mkdir()
        token = 16 * "a"
        for name in (f".lock.{token}.tmp", f"..lock.{token}.tmp.x1.tmp", f"lock.{token}", ".study.toml.x.tmp"):
            (folder / name).touch()
        assert go(FakeLauncher()).ran == 4
        left = {path.name for path in folder.iterdir()} - {"points", "points.json", "study.toml"}
        assert left == {f".lock.{token}.tmp", f"..lock.{token}.tmp.x1.tmp"}, "drafts may be of a process that lives"

    @pytest.mark.parametrize("name", ["lock", "lock.txt", "lock.step", ".lock.x", "lock.0123"])
    def test_files_that_look_a_little_like_ours_are_not_touched(self, go, folder: Path, name: str) -> None:
        folder.mkdir()
        (folder / name).write_text("mine")
        os.utime(folder / name, (1, 1))
        with pytest.raises(FolderError, match="is not a study"):
            go(FakeLauncher())
        assert {path.name: path.read_text() for path in folder.iterdir()} == {name: "mine"}

    def test_a_second_study_at_the_same_time_is_refused_before_anything_happens(self, go, folder: Path) -> None:
        go(FakeLauncher())
        before, events = sorted(folder.rglob("*")), list[Event]()
        with StudyLock(folder / "lock"), pytest.raises(FolderError, match="is in use"):
            go(FakeLauncher(), "train.lr=0.5", events=events)
        assert sorted(folder.rglob("*")) == before and events == []

    def test_a_study_started_while_another_prepares_is_refused(self, go, folder: Path) -> None:
        """The lock is looked at early to save time, and taken later: what counts is the taking."""
        holding = StudyLock(folder / "lock")

        def hold(event: Event) -> None:
            if isinstance(event, DataReady):
                holding.__enter__()

        class Listener(list):
            def append(self, event: Event) -> None:
                hold(event)

        with pytest.raises(FolderError, match="is in use"):
            go(FakeLauncher(), events=Listener())
        holding.__exit__(None, None, None)
        assert list(folder.iterdir()) == []

    def test_fresh_moves_the_old_study_aside(self, go, folder: Path) -> None:
        go(FakeLauncher())
        before, events = results(folder), list[Event]()
        launcher = FakeLauncher()
        assert go(launcher, fresh=True, events=events).ran == 4
        old = folder.with_name("out.old-1")
        assert results(old) == before and not (old / "lock").exists()
        assert [event.text for event in events if isinstance(event, Note)] == [f"The old study was moved to {old}."]
        go(FakeLauncher(), fresh=True)
        assert folder.with_name("out.old-2").exists() and results(old) == before

    def test_fresh_in_a_new_folder_moves_nothing(self, go, folder: Path) -> None:
        assert go(FakeLauncher(), fresh=True).ran == 4
        assert [path.name for path in folder.parent.glob("out*")] == ["out"]

    def test_fresh_does_not_pull_the_folder_from_under_a_running_study(self, go, folder: Path) -> None:
        go(FakeLauncher())
        with StudyLock(folder / "lock"), pytest.raises(FolderError, match="is in use"):
            go(FakeLauncher(), fresh=True)
        assert [path.name for path in folder.parent.glob("out*")] == ["out"]

    def test_a_lost_lock_stops_the_study_before_the_next_result(self, go, folder: Path, monkeypatch) -> None:
        monkeypatch.setattr(execute_module, "StudyLock", lambda path, say: StudyLock(path, say=say, beat_s=0.01))

        def lose(manifest: Manifest) -> None:
            if manifest.point.ranks == 2:
                (folder / "lock").unlink()
                time.sleep(0.3)

        with pytest.raises(FolderError, match="removed or taken over"):
            go(FakeLauncher(before=lose))
        assert len(results(folder)) == 1


class TestDataAndModel:
    def test_own_files_are_named_absolutely(self, tmp_path: Path, folder: Path, monkeypatch) -> None:
        (tmp_path / "net.py").write_text("x = 1")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "tiny.toml").touch()
        study = loaded(tmp_path, "model.name=net.py:build")
        launcher = FakeLauncher()
        execute(study, Path("out"), launcher=launcher, preflight=False, cache=tmp_path / "cache")
        assert {manifest.model_file for manifest in launcher.manifests} == {str(tmp_path / "net.py")}
        assert {manifest.point.model.name for manifest in launcher.manifests} == {f"{tmp_path}/net.py:build"}
        monkeypatch.chdir("/")
        again = load_study(folder / "study.toml")
        assert again.study.model.name == f"{tmp_path}/net.py:build"
        done = execute(again, folder, launcher=FakeLauncher(), preflight=False, cache=tmp_path / "cache")
        assert done.skipped == 4
        (tmp_path / "net.py").write_text("x = 2")
        done = execute(again, folder, launcher=FakeLauncher(), preflight=False, cache=tmp_path / "cache")
        assert done.ran == 4

    def test_more_samples_than_there_are_is_refused_before_the_folder_is_made(self, go, folder: Path) -> None:
        with pytest.raises(DataError, match="train_samples"):
            go(FakeLauncher(), "data.train_samples=1000")
        assert not folder.exists()

    def test_a_model_is_checked_before_anything_is_written(self, go, folder: Path, monkeypatch) -> None:
        checked: list[Manifest] = []

        def refuse(manifests: list[Manifest], timed: bool) -> None:
            checked.extend(manifests)
            raise ModelError("The model does not fit.")

        monkeypatch.setattr(job_module, "check_model", refuse)
        with pytest.raises(ModelError, match="does not fit"):
            go(FakeLauncher(), preflight=True)
        assert [manifest.point.ranks for manifest in checked] == [2], "the most ranks ask for the most GPUs"
        assert not folder.exists()
        go(FakeLauncher(), preflight=False)
        go(FakeLauncher(), preflight=True)
        assert len(checked) == 1, "nothing is left to run, so nothing is checked"
        with pytest.raises(ModelError):
            go(FakeLauncher(), preflight=True, fresh=True)
        assert len(results(folder)) == 4, "a refused study moves nothing aside"

    def test_more_ranks_than_fit_here_are_refused_before_anything_is_written(self, go, folder: Path) -> None:
        small = FakeLauncher(most=2)
        with pytest.raises(RequestError, match="no room for 3 ranks"):
            go(small, "run.ranks=1,3")
        assert not folder.exists() and not small.manifests
        go(FakeLauncher(), "run.ranks=1,3")
        assert go(small, "run.ranks=1,3").skipped == 4, "what is finished needs no room"


def test_factors_are_points_of_one_study(go, folder: Path) -> None:
    launcher = FakeLauncher()
    done = go(launcher, "run.strategy=flat,ddp", "run.threads=1,2", "run.repeats=1")
    assert done.ran == 6, "one rank is run once for both strategies"
    assert [(m.point.ranks, m.point.strategy, m.point.threads) for m in launcher.manifests] == [
        (1, "flat", 1),
        (2, "flat", 1),
        (1, "flat", 2),
        (2, "flat", 2),
        (2, "ddp", 1),
        (2, "ddp", 2),
    ]
    again = load_study(folder / "study.toml")
    assert again.study.vary == {"run.strategy": ("flat", "ddp"), "run.threads": (1, 2)}
    assert execute(again, folder, launcher=launcher, preflight=False, cache=folder.parent / "cache").skipped == 6


def test_every_kind_of_point_is_checked_with_its_most_ranks(go, monkeypatch) -> None:
    checked: list[tuple[int, str]] = []

    def check(manifests, timed) -> tuple[Built, ...]:
        checked.extend((m.point.ranks, m.point.strategy) for m in manifests)
        return (Built(),) * len(manifests)

    monkeypatch.setattr(job_module, "check_model", check)
    go(FakeLauncher(), "run.strategy=flat,ddp", "run.ranks=1,3,2", preflight=True)
    assert checked == [(3, "flat"), (3, "ddp")]


def test_samples_that_only_some_points_ask_for_are_refused_before_anything_starts(go, folder: Path) -> None:
    with pytest.raises(DataError):
        go(FakeLauncher(), "data.train_samples=50,5000")
    assert not folder.exists()


@pytest.mark.parametrize("force", [True, False])
def test_the_ranks_are_told_whether_to_go_on_regardless(go, force: bool) -> None:
    launcher = FakeLauncher()
    go(launcher, "run.repeats=1", force=force)
    assert {manifest.force for manifest in launcher.manifests} == {force}


def test_the_bookkeeping_imports_no_torch() -> None:
    modules = "sys, paceline.studies.execute.execute, paceline.studies.folder.collect"
    code = f"import {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
