"""What a look at a study's folder finds, and that it leaves no trace there."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from paceline.errors import FolderError
from paceline.records.live_study import FAILED, FINISHED, KILLED, RUNNING, SILENT, STOPPED
from paceline.records.run import Manifest, RankEnd
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.storage.pulse import PulseWriter
from paceline.studies.expand.expand import schedule
from paceline.studies.folder.bookkeeping import StudyPoints
from paceline.studies.folder.lock import StudyLock
from paceline.studies.folder.lock_holder import Holder, this_process
from paceline.studies.folder.watched_folder import watcher
from paceline.studies.folder.watching import StudyWatcher
from samples.compared_studies import attached_run, timed_study
from samples.finished_study import STUDY, epoch, finished_study, write_curves


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two points with three finished runs each."""
    finished_study(tmp_path / "study", tmp_path / "cache")
    return tmp_path / "study"


def unfinish(folder: Path, runs: int = 1) -> list[RunFolder]:
    """Take the results of the last runs away, as if they were still on or to come; comes back with these, in turn."""
    known = read_record(folder / "points.json", StudyPoints)
    open_runs = [
        StudyFolder(folder).run(run.point.point_id, run.number)
        for run in schedule(known.points, known.study.run.repeats)[-runs:]
    ]
    for number, run in enumerate(open_runs):
        run.result.unlink()
        if number:
            shutil.rmtree(run.path)
    return open_runs


def launch(run: RunFolder, *, at: datetime | None = None) -> Manifest:
    """Make a run look as if it had been launched now."""
    at = at or datetime.now().astimezone()
    manifest = replace(read_record(run.manifest, Manifest), launched_at=at.isoformat(timespec="milliseconds"))
    write_record(run.manifest, manifest)
    return manifest


def hold(folder: Path, **changes: object) -> Holder:
    """A lock of somebody else."""
    holder = replace(this_process(), token="0" * 16, **changes)  # pyright: ignore[reportArgumentType]
    write_record(folder / "lock", holder)
    return holder


def listing(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every file and folder, with all that reading leaves as it is."""
    found = {}
    for path in sorted((folder, *folder.rglob("*"))):
        status = path.lstat()
        found[str(path)] = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def test_looking_changes_nothing_in_the_folder_and_leaves_the_lock_alone(folder: Path) -> None:
    (run,) = unfinish(folder)
    launch(run)
    pulse = PulseWriter(run.rank_pulse(0))
    pulse.beat(step=3, total_steps=16, phase="compute")
    with StudyLock(folder / "lock", beat_s=3600) as lock:
        before = listing(folder)
        view = watcher(folder)
        for _ in range(3):
            assert view.look().state == RUNNING
        watcher(run.path).look()
        assert listing(folder) == before
        lock.check()
    assert not (folder / "lock").exists()


def test_a_finished_study_is_said_to_be_with_its_report(folder: Path) -> None:
    seen = watcher(folder).look()
    assert (seen.state, seen.told, seen.run) == (FINISHED, "All 6 runs are finished.", None)
    assert [(point.label, len(point.results), point.of) for point in seen.points] == [
        ("1 rank", 3, 3),
        ("2 ranks", 3, 3),
    ]
    assert seen.report is None, "none was made"
    (folder / "report.html").write_text("made")
    assert watcher(folder).look().report == str(folder / "report.html")
    os.utime(folder / "report.html", (1, time.time() - 60))
    assert watcher(folder).look().report is None, "it is older than the last result, which is new"


def test_the_run_that_is_on_is_the_first_that_can_be(folder: Path) -> None:
    first, _, _ = unfinish(folder, 3)
    launch(first)
    PulseWriter(first.rank_pulse(0)).beat(step=3, total_steps=16, phase="compute")
    write_curves(first, (epoch(1, 0.5),))
    with StudyLock(folder / "lock"):
        view = watcher(folder)
        seen = view.look()
        assert seen.run is not None and (seen.run.number, seen.run.label) == (2, "1 rank")
        assert seen.run.ranks[0].pulse is not None and seen.run.ranks[0].pulse.step == 3
        assert [each.epoch for each in seen.run.epochs] == [1]
        assert seen.run.batch_per_rank == 8 and seen.pending_unknown == 0 and seen.pending_s > 0
    assert f"process {os.getpid()}" in seen.told


def test_a_run_that_ends_while_it_is_watched_is_counted(folder: Path) -> None:
    (run,) = unfinish(folder)
    launch(run)
    with StudyLock(folder / "lock"):
        view = watcher(folder)
        assert sum(len(point.results) for point in view.look().points) == 5
        result = json.loads((run.path.parent / "1" / "result.json").read_text())
        manifest = read_record(run.manifest, Manifest)
        result |= {"run": manifest.run, "seed": manifest.seed, "point_id": manifest.point_id}
        run.result.write_text(json.dumps(result))
        seen = view.look()
        assert sum(len(point.results) for point in seen.points) == 6 and seen.run is None
    assert view.look().state == FINISHED


def test_what_an_earlier_attempt_left_is_not_taken_for_this_one(folder: Path) -> None:
    (run,) = unfinish(folder)
    PulseWriter(run.rank_pulse(0)).beat(step=9, total_steps=16)
    old = time.time() - 100
    for path in (run.rank_pulse(0), run.curves):
        os.utime(path, (old, old))
    launch(run)
    with StudyLock(folder / "lock"):
        seen = watcher(folder).look()
    assert seen.run is not None and seen.run.ranks[0].pulse is None and seen.run.epochs == ()


def test_a_run_of_before_this_process_is_not_on(folder: Path) -> None:
    (run,) = unfinish(folder)
    launch(run, at=datetime.now().astimezone() - timedelta(hours=1))
    with StudyLock(folder / "lock"):
        assert watcher(folder).look().run is None


def test_a_killed_study_is_named_with_its_process_and_what_to_do(folder: Path) -> None:
    (run,) = unfinish(folder)
    launch(run)
    hold(folder, pid=2**22 + 12345, command="paceline study x")  # more than Linux counts to
    seen = watcher(folder).look()
    assert seen.state == KILLED and seen.next == f"paceline study {folder / 'study.toml'} --out {folder}"
    assert "process 4206649" in seen.told and "is no more" in seen.told and "5 of 6 runs are finished" in seen.told
    assert seen.run is not None and seen.run.number == 3, "the run that it was in"


def test_a_lock_that_was_left_in_a_finished_study_is_no_death(folder: Path) -> None:
    hold(folder, pid=2**22 + 12345)
    assert watcher(folder).look().state == FINISHED


def test_another_host_without_a_heartbeat_is_silent_and_then_gone(folder: Path) -> None:
    unfinish(folder)
    hold(folder, host="elsewhere", boot_id="another")
    for silent_s, state in ((2, RUNNING), (30, SILENT), (120, KILLED)):
        at = time.time() - silent_s
        os.utime(folder / "lock", (at, at))
        seen = watcher(folder).look()
        assert seen.state == state and "elsewhere" in seen.told
    assert "2 min 0 s ago" in seen.told


def test_a_study_that_nobody_goes_on_with_is_stopped_or_has_failed(tmp_path: Path) -> None:
    finished_study(tmp_path / "study", tmp_path / "cache", fails_at=2)
    seen = watcher(tmp_path / "study").look()
    assert seen.state == FAILED and "1 point failed" in seen.told
    assert [point.failure is not None for point in seen.points] == [False, True]
    assert "Rank 0 of 2 died." in (seen.points[1].failure or "")
    for place in (tmp_path / "study").rglob("failure.json"):
        place.unlink()
    assert watcher(tmp_path / "study").look().state == STOPPED


def test_a_failure_of_before_is_tried_again(tmp_path: Path) -> None:
    finished_study(tmp_path / "study", tmp_path / "cache", fails_at=2)
    time.sleep(1.1)  # instants of a failure and of a lock are whole seconds
    with StudyLock(tmp_path / "study" / "lock"):
        seen = watcher(tmp_path / "study").look()
    assert seen.state == RUNNING and [point.failure for point in seen.points] == [None, None]


def test_another_study_in_its_place_is_seen(folder: Path, tmp_path: Path) -> None:
    view = watcher(folder)
    assert len(view.look().points) == 2
    shutil.move(folder, tmp_path / "old")
    assert len(view.look().points) == 2, "what was known stays until there is something new"
    timed_study(folder, tmp_path / "cache", "run.ranks=[1,2,4]", "run.repeats=1")
    seen = view.look()
    assert [(point.label, len(point.results)) for point in seen.points] == [
        ("1 rank", 1),
        ("2 ranks", 1),
        ("4 ranks", 1),
    ]


def test_damaged_and_half_written_files_are_left_out(folder: Path) -> None:
    runs = unfinish(folder, 2)
    launch(run := runs[0])
    for path in (run.rank_pulse(0), run.curves, run.rank_spans(0), run.rank_end(1), run.allocation_check):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b'{"half')
    (folder / "points" / runs[0].path.parent.parent.name / "runs" / "1" / "result.json").write_text("{")
    with StudyLock(folder / "lock"):
        view = watcher(folder)
        for _ in range(2):
            seen = view.look()
            assert seen.state == RUNNING and sum(len(point.results) for point in seen.points) == 3


def test_a_point_of_a_thousand_runs_is_read_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.studies.folder.watching._RESULTS_A_LOOK", 4)
    view = StudyWatcher(folder)
    first, second = view.look(), view.look()
    assert (first.unread, second.unread) == (2, 0)
    assert first.state == FINISHED, "that they are there is known before they are read"
    assert StudyWatcher(folder).look(whole=True).unread == 0


def test_only_the_runs_that_can_be_next_are_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = read_record(folder / "points.json", StudyPoints)
    many = replace(known, study=replace(known.study, run=replace(known.study.run, repeats=5000)))
    write_record(folder / "points.json", many)
    with StudyLock(folder / "lock"):
        view = StudyWatcher(folder)
        assert sum(point.of for point in view.look().points) == 10_000
        asked: list[Path] = []
        exists = Path.exists
        monkeypatch.setattr(Path, "exists", lambda path, **more: asked.append(path) or exists(path, **more))
        view.look()
    assert 0 < len(asked) < 500


def test_ranks_that_ended_are_said_to_have(folder: Path) -> None:
    (run,) = unfinish(folder)
    launch(run)
    write_record(run.rank_end(0), RankEnd(rank=0, host="here", code=-9, ended_at_ns=1))
    write_record(run.rank_end(1), RankEnd(rank=1, host="here", code=0, ended_at_ns=1))
    with StudyLock(folder / "lock"):
        seen = watcher(folder).look()
        assert seen.run is not None
        assert [rank.ended for rank in seen.run.ranks] == ["ended by signal 9", "done"][: len(seen.run.ranks)]


def test_ranks_of_another_program_are_watched_by_their_folder(tmp_path: Path) -> None:
    view = watcher(attached_run(tmp_path / "attached"))
    first, second = view.look(), view.look()
    assert first.state == RUNNING and first.points == () and first.run is not None and second.run is not None
    assert len(first.run.ranks) == 2 and len(first.run.spans) == 2 and second.run.spans == ()
    assert first.next == f"paceline trace {tmp_path / 'attached'}"


def test_the_folder_of_one_run_of_a_study_is_watched_by_itself(folder: Path) -> None:
    (run,) = unfinish(folder)
    launch(run)
    with StudyLock(folder / "lock"):
        assert watcher(run.path).look().state == RUNNING
    assert watcher(run.path).look().state == STOPPED
    assert watcher(run.path.with_name("1")).look().state == FINISHED


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda folder: None, "There is no folder"),
        (lambda folder: folder.mkdir(), "is neither a study nor a run"),
        (lambda folder: (folder.mkdir(), (folder / "study.toml").write_text(STUDY)), "has not begun its first run"),
    ],
    ids=["nowhere", "empty", "begun"],
)
def test_what_is_no_study_yet_is_refused_with_what_to_do(tmp_path: Path, made, told: str) -> None:
    made(tmp_path / "later")
    with pytest.raises(FolderError, match=told) as refused:
        watcher(tmp_path / "later").look()
    assert "paceline study NAME --out" in refused.value.next
